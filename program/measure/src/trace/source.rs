//! The arrays of a trace file, or of standard input, in any of the forms that are read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::array::Array;
use crate::checks::require;
use crate::npz::{self, MAX_BYTES};
use avsg::{Error, Result};

/// The names of the arrays that are read: the ids and the stable lengths, plain or compressed.
const READ: [&str; 5] = ["ids", "stable", "gap_lo", "gap_hi", "context_len"];

/// Reads the names of all arrays of a file in ascending order, and those arrays that are read, from standard input if the
/// path is `-`. The first bytes tell the format. The array of an `.npy` has no name, and is taken for the ids.
pub(super) fn arrays(path: &Path) -> Result<(Vec<String>, Vec<Array>)> {
    let file = super::name_of(path);
    let bytes = read(path, &file)?;
    let is_read = |name: &str| READ.contains(&name);
    let (mut names, read) = if bytes.starts_with(b"\x93NUMPY") {
        (Vec::new(), vec![npz::parse(READ[0], &bytes)?])
    } else if bytes.get(8) == Some(&b'{') && bytes[4..8] == [0; 4] {
        // A .safetensors file begins with the length of its header in 8 bytes, and a header is JSON.
        let all = SafeTensors::deserialize(&bytes).map_err(|e| {
            let limit = format!("it is not a complete .safetensors file ({e})");
            Error::invalid("trace", &file, limit, "copy or write the file again")
        })?;
        let read = all.iter().filter(|(name, _)| is_read(name)).map(tensor);
        let read = read.collect::<Result<_>>()?;
        (all.names().into_iter().map(str::to_owned).collect(), read)
    } else if bytes.starts_with(b"PK") {
        npz::arrays(&file, bytes, is_read)?
    } else {
        let start = "do not start as a .npy, .npz or .safetensors file";
        let limit = format!("its {} bytes {start}", bytes.len());
        let remedy = "write it with numpy.save or numpy.savez";
        return Err(Error::invalid("trace", file, limit, remedy));
    };
    names.sort_unstable();
    Ok((names, read))
}

/// Converts one tensor of a `.safetensors` file.
fn tensor((name, view): (&str, TensorView<'_>)) -> Result<Array> {
    let kind = match view.dtype() {
        Dtype::U8 => "|u1",
        Dtype::I32 => "<i4",
        Dtype::U32 => "<u4",
        Dtype::I64 => "<i8",
        Dtype::U64 => "<u8",
        other => &other.to_string(),
    };
    Array::new(name, view.shape().to_vec(), kind, view.data())
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
