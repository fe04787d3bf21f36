//! Reading and writing NumPy files: one array in an `.npy`, named arrays in an `.npz`, a ZIP archive
//! of `.npy` files.
//!
//! Headers are untrusted input, so their size and shape are checked.

use std::io::{self, Cursor, Read, Write};
use std::path::Path;

use zip::{ZipArchive, ZipWriter};

use crate::array::Array;
use crate::checks::require;
use crate::output_file;
use avsg::{Error, Result};

/// Bytes of the largest file and of the largest array that are read; 8 million steps of 64 ids fit.
pub(crate) const MAX_BYTES: u64 = 1 << 31;
/// Bytes of the largest header that is read. NumPy writes 118 bytes for a plain array; a longer header
/// belongs to another kind of array.
const MAX_HEADER: usize = 1024;
/// Bytes before the header: the magic, the version and the length.
const PREAMBLE: usize = 10;

/// Returns the names of the arrays of an `.npz` file, and those arrays that `is_read` chooses. `file` is its name.
pub(crate) fn arrays(
    file: &str,
    bytes: Vec<u8>,
    is_read: impl Fn(&str) -> bool,
) -> Result<(Vec<String>, Vec<Array>)> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| {
        let limit = format!("it is not a complete .npz archive ({e})");
        Error::invalid("trace", file, limit, "copy or write the file again")
    })?;
    let names = archive.file_names().filter_map(|name| name.strip_suffix(".npy"));
    let names: Vec<String> = names.map(str::to_owned).collect();
    let read = |name: &String| {
        let broken = |e: &dyn std::fmt::Display| {
            let limit = format!("the archive's entry is damaged ({e})");
            let remedy = "copy or write the file again";
            Error::invalid("trace", format!("array {name}"), limit, remedy)
        };
        let entry = archive.by_name(&format!("{name}.npy")).map_err(|e| broken(&e))?;
        let mut bytes = Vec::new();
        entry.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| broken(&e))?;
        let limit = format!("an array has at most {MAX_BYTES} bytes");
        let fits = bytes.len() as u64 <= MAX_BYTES;
        require(fits, "trace", format!("array {name}"), limit, "split the trace")?;
        parse(name, &bytes)
    };
    let arrays = names.iter().filter(|name| is_read(name)).map(read).collect::<Result<_>>()?;
    Ok((names, arrays))
}

/// Parses the bytes of one `.npy` file.
pub(crate) fn parse(name: &str, bytes: &[u8]) -> Result<Array> {
    let (kind, is_fortran, shape, start) = header(bytes).map_err(|why| {
        let limit = format!("its .npy header is unusable ({why})");
        Error::invalid("trace", format!("array {name}"), limit, "save it again")
    })?;
    // The two orders are the same for an array of one dimension.
    let is_c = !is_fortran || shape.len() <= 1;
    let (value, remedy) = (format!("Fortran (array {name})"), "save numpy.ascontiguousarray of it");
    require(is_c, "order", value, "it must be C", remedy)?;
    Array::new(name, shape, kind, &bytes[start..])
}

/// The type of a header, whether its order is Fortran's, the shape, and the byte at which the values begin.
type Header<'a> = (&'a str, bool, Vec<usize>, usize);

/// Parses the header of an `.npy` file, which is untrusted, or says what is wrong with it. It is the text of a Python
/// dictionary: `{'descr': '<i4', 'fortran_order': False, 'shape': (64, 4, 256), }`.
fn header(bytes: &[u8]) -> std::result::Result<Header<'_>, String> {
    const CUT: &str = "it is cut short";
    let (first, length) = match bytes.get(6).ok_or(CUT)? {
        1 => (10, bytes.get(8..10)),
        2 | 3 => (12, bytes.get(8..12)),
        v => return Err(format!("version {v} is unknown")),
    };
    let len = length.ok_or(CUT)?.iter().rev().fold(0, |v, &b| v << 8 | usize::from(b));
    if len > MAX_HEADER {
        return Err(format!("{len} bytes, at most {MAX_HEADER} are expected"));
    }
    let text = bytes.get(first..first + len).ok_or(CUT)?;
    let text = std::str::from_utf8(text).map_err(|e| e.to_string())?;
    let value = |key: &str| {
        let rest = text.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
        rest.ok_or_else(|| format!("it names no {key}"))
    };
    let (shape, order) = (value("shape")?, value("fortran_order")?);
    let kind = value("descr")?.strip_prefix('\'').and_then(|rest| rest.split_once('\''));
    let is_plain =
        |kind: &&str| kind.bytes().all(|b| b.is_ascii_alphanumeric() || b"<>|=".contains(&b));
    let kind = kind.map(|(kind, _)| kind).filter(is_plain).ok_or("its type is no number")?;
    let list = shape.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let (list, _) = list.ok_or("its shape is no list")?;
    let numbers = list.split(',').map(str::trim).filter(|number| !number.is_empty());
    let dim = |number: &str| {
        number.parse::<usize>().map_err(|_| format!("dimension {number:?} is no number"))
    };
    let shape = numbers.map(dim).collect::<std::result::Result<Vec<_>, _>>()?;
    let values = shape.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim.max(1)));
    if values.is_none_or(|values| values as u64 > MAX_BYTES) {
        return Err(format!("its shape {shape:?} makes it over {MAX_BYTES} values"));
    }
    Ok((kind, order.starts_with("True"), shape, first + len))
}

/// Returns the bytes of an `.npy` file.
pub fn array<T: Copy + Into<i128> + TryFrom<i128>>(shape: &[usize], data: &[T]) -> Vec<u8> {
    // A tuple of one has a comma, too.
    let shape: String = shape.iter().map(|dim| format!("{dim}, ")).collect();
    let (size, order) = (size_of::<T>(), if size_of::<T>() == 1 { '|' } else { '<' });
    let letter = if T::try_from(-1).is_ok() { 'i' } else { 'u' };
    let kind = format!("{order}{letter}{size}");
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
    // The values begin at a multiple of 64 bytes.
    let length = (PREAMBLE + header.len() + 1).next_multiple_of(64) - PREAMBLE;
    let mut image = b"\x93NUMPY\x01\x00".to_vec();
    image.extend((length as u16).to_le_bytes());
    image.extend(format!("{header:0$}\n", length - 1).bytes());
    data.iter().for_each(|&value| image.extend(&value.into().to_le_bytes()[..size]));
    image
}

/// Writes an `.npz` file of arrays, each a name and the bytes of an `.npy` file.
pub fn write(path: &Path, arrays: &[(&str, Vec<u8>)]) -> Result<()> {
    let archive = || -> io::Result<Vec<u8>> {
        let mut out = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, image) in arrays {
            out.start_file(format!("{name}.npy"), Default::default())?;
            out.write_all(image)?;
        }
        Ok(out.finish()?.into_inner())
    };
    let bytes = archive().map_err(|source| {
        let what = path.display().to_string();
        Error::Os { call: "serialise", what, source, remedy: "write fewer steps" }
    })?;
    output_file::write(path, &bytes)
}
