//! The arrays of a trace file, or of standard input, in any of the forms that are read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use safetensors::tensor::{Metadata, SafeTensors};

use crate::array::{Array, Kind, wrong_kind};
use crate::npz::{self, Archive, MAX_BYTES, first_line};
use avsg::{Error, Result};

/// The content of a file. An `.npy` holds one array without a name, which is returned for any name.
pub(super) enum Source {
    Npy(Vec<u8>),
    Npz(Box<Archive>),
    Safetensors(Tensors),
}

/// The content of a `.safetensors` file.
pub(super) struct Tensors {
    bytes: Vec<u8>,
    /// The byte at which the tensors begin.
    start: usize,
    metadata: Metadata,
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
            return Tensors::new(&name, bytes).map(Self::Safetensors);
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
            Self::Safetensors(tensors) => tensors.metadata.offset_keys(),
        };
        names.sort_unstable();
        names
    }

    /// Reads one array. That of an `.npy` can be read once.
    pub(super) fn array(&mut self, name: &str) -> Result<Array> {
        match self {
            Self::Npy(bytes) => npz::parse(name, std::mem::take(bytes)),
            Self::Npz(archive) => archive.array(name),
            Self::Safetensors(tensors) => tensors.array(name),
        }
    }
}

impl Tensors {
    fn new(name: &str, bytes: Vec<u8>) -> Result<Self> {
        // `deserialize` also checks that the tensors fill the file.
        let parsed =
            SafeTensors::deserialize(&bytes).and_then(|_| SafeTensors::read_metadata(&bytes));
        let (header, metadata) = parsed.map_err(|e| {
            let limit = format!("it is not a complete .safetensors file ({})", first_line(&e));
            npz::invalid(limit, name, "copy or write the file again")
        })?;
        Ok(Self { bytes, start: 8 + header, metadata })
    }

    fn array(&self, name: &str) -> Result<Array> {
        let Some(info) = self.metadata.info(name) else {
            let limit = "the file has no such tensor";
            return Err(npz::invalid(limit, format!("array {name}"), "save it under this name"));
        };
        let kind = match info.dtype {
            safetensors::Dtype::U8 => Kind::U8,
            safetensors::Dtype::I32 => Kind::I32,
            safetensors::Dtype::U32 => Kind::U32,
            safetensors::Dtype::I64 => Kind::I64,
            safetensors::Dtype::U64 => Kind::U64,
            other => return Err(wrong_kind(name, &format!("{other:?}"), &Kind::NUMBERS)),
        };
        let (from, to) = info.data_offsets;
        let bytes = self.bytes[self.start + from..self.start + to].to_vec();
        Array::new(name, info.shape.clone(), kind, bytes, 0)
    }
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
    if bytes.len() as u64 > MAX_BYTES {
        let limit = format!("a trace has at most {MAX_BYTES} bytes");
        return Err(npz::invalid(limit, name, "split the trace"));
    }
    Ok(bytes)
}
