//! The arrays of a trace file, or of standard input, in any of the forms that are read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use safetensors::{Dtype, SafeTensors};

use crate::array::{Array, NumberKind, wrong_kind};
use crate::checks::require;
use crate::npz::{self, Archive, MAX_BYTES, first_line};
use avsg::{Error, Result};

/// The content of a file. An `.npy` holds one array without a name, which is returned for any name.
pub(super) enum Source {
    Npy(Vec<u8>),
    Npz(Box<Archive>),
    Safetensors(Vec<u8>),
}

impl Source {
    /// Reads a file, or standard input if the path is `-`. The first bytes tell the format.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let name = super::name_of(path);
        let bytes = read(path, &name)?;
        if bytes.starts_with(b"\x93NUMPY") {
            return Ok(Self::Npy(bytes));
        }
        // A .safetensors file begins with the length of its header in 8 bytes, and a header is JSON.
        if bytes.get(8) == Some(&b'{') && bytes[4..8] == [0; 4] {
            tensors(&name, &bytes)?;
            return Ok(Self::Safetensors(bytes));
        }
        if bytes.starts_with(b"PK") {
            return Ok(Self::Npz(Box::new(Archive::new(&name, bytes)?)));
        }
        let limit =
            format!("its {} bytes do not start as a .npy, .npz or .safetensors file", bytes.len());
        Err(npz::invalid(limit, name, "write it with numpy.save or numpy.savez"))
    }

    /// Returns whether the file has an array of this name. The array of an `.npy` has no name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names().iter().any(|other| other == name)
    }

    /// Returns the names of the arrays in ascending order.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names = match self {
            Self::Npy(_) => Vec::new(),
            Self::Npz(archive) => archive.names(),
            Self::Safetensors(bytes) => SafeTensors::deserialize(bytes).map_or_else(
                |_| Vec::new(),
                |all| all.names().into_iter().map(str::to_owned).collect(),
            ),
        };
        names.sort_unstable();
        names
    }

    /// Reads one array. That of an `.npy` can be read once.
    pub(super) fn array(&mut self, name: &str) -> Result<Array> {
        match self {
            Self::Npy(bytes) => npz::parse(name, std::mem::take(bytes)),
            Self::Npz(archive) => archive.array(name),
            Self::Safetensors(bytes) => tensor(name, bytes),
        }
    }
}

/// Parses the header of a `.safetensors` file, and checks that its tensors fill the file.
fn tensors<'a>(name: &str, bytes: &'a [u8]) -> Result<SafeTensors<'a>> {
    SafeTensors::deserialize(bytes).map_err(|e| {
        let limit = format!("it is not a complete .safetensors file ({})", first_line(&e));
        npz::invalid(limit, name, "copy or write the file again")
    })
}

/// Reads one tensor of a `.safetensors` file.
fn tensor(name: &str, bytes: &[u8]) -> Result<Array> {
    let missing = |_| {
        let limit = "the file has no such tensor";
        npz::invalid(limit, format!("array {name}"), "save it under this name")
    };
    let view = tensors(name, bytes)?.tensor(name).map_err(missing)?;
    let kind = match view.dtype() {
        Dtype::U8 => NumberKind::U8,
        Dtype::I32 => NumberKind::I32,
        Dtype::U32 => NumberKind::U32,
        Dtype::I64 => NumberKind::I64,
        Dtype::U64 => NumberKind::U64,
        other => return Err(wrong_kind(name, &format!("{other:?}"), &NumberKind::NUMBERS)),
    };
    Array::new(name, view.shape().to_vec(), kind, view.data().to_vec(), 0)
}

fn read(path: &Path, name: &str) -> Result<Vec<u8>> {
    let os = |call, source| Error::Os {
        call,
        what: name.to_owned(),
        source,
        remedy: "check that the path is a readable .npy, .npz or .safetensors file, or - for standard input",
    };
    let mut bytes = Vec::new();
    let limit = MAX_BYTES + 1;
    if path.as_os_str() == "-" {
        io::stdin().take(limit).read_to_end(&mut bytes).map_err(|e| os("read", e))?;
    } else {
        let file = File::open(path).map_err(|e| os("open", e))?;
        file.take(limit).read_to_end(&mut bytes).map_err(|e| os("read", e))?;
    }
    let limit = format!("a trace has at most {MAX_BYTES} bytes");
    require(bytes.len() as u64 <= MAX_BYTES, "trace", name, limit, "split the trace")?;
    Ok(bytes)
}
