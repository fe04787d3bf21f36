//! Reading and writing NumPy files: one array in an `.npy`, named arrays in an `.npz`.
//!
//! npyz reads and writes the headers, and the values are converted here in one pass. Headers are
//! untrusted input, so their size and shape are checked before npyz multiplies the dimensions.

use std::fs::File;
use std::io::{Cursor, Read, Write};
use std::path::Path;

use npyz::npz::{NpzArchive, NpzWriter};
use npyz::{AutoSerialize, NpyHeader, Order, WriteOptions, WriterBuilder};

use crate::output_file;
use avsg::{Error, Result};

/// Bytes of the largest file and of the largest array that are read; 8 million steps of 64 ids fit.
const MAX_BYTES: u64 = 1 << 31;
/// Bytes of the largest header that is read. NumPy writes 118 bytes for a plain array; a longer header
/// belongs to another kind of array.
const MAX_HEADER: usize = 1024;

/// A value type that can be read.
pub(crate) trait Value: AutoSerialize + Copy {
    /// Name of the type in a NumPy header.
    const DTYPE: &'static str;
    /// Bytes per value.
    const SIZE: usize;
    /// Converts `SIZE` little-endian bytes.
    fn from_le(bytes: &[u8]) -> Self;
}

impl Value for i32 {
    const DTYPE: &'static str = "<i4";
    const SIZE: usize = 4;
    fn from_le(bytes: &[u8]) -> Self {
        i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

impl Value for u8 {
    const DTYPE: &'static str = "|u1";
    const SIZE: usize = 1;
    fn from_le(bytes: &[u8]) -> Self {
        bytes[0]
    }
}

/// An array in memory, in C order.
pub(crate) struct Array<T> {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<T>,
}

/// The content of a file. An `.npy` holds one array without a name, which is returned for any name.
pub(crate) enum Source {
    Npy(Vec<u8>),
    Npz(Box<NpzArchive<Cursor<Vec<u8>>>>),
}

fn invalid(limit: impl Into<String>, value: impl ToString, remedy: &'static str) -> Error {
    Error::invalid("trace", value, limit, remedy)
}

impl Source {
    /// Reads the file; its first bytes tell whether it is an `.npy` or an `.npz`.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let os = |call, source| Error::Os {
            call,
            what: path.display().to_string(),
            source,
            remedy: "check that the path is a readable .npy or .npz file",
        };
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(|e| os("open", e))?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| os("read", e))?;
        if bytes.len() as u64 > MAX_BYTES {
            let limit = format!("a trace file has at most {MAX_BYTES} bytes");
            return Err(invalid(limit, path.display(), "split the trace"));
        }
        if bytes.starts_with(b"\x93NUMPY") {
            return Ok(Self::Npy(bytes));
        }
        if !bytes.starts_with(b"PK") {
            let limit = format!("its {} bytes do not start as a .npy or .npz file", bytes.len());
            return Err(invalid(limit, path.display(), "write it with numpy.save or numpy.savez"));
        }
        match NpzArchive::new(Cursor::new(bytes)) {
            Ok(archive) => Ok(Self::Npz(Box::new(archive))),
            Err(e) => {
                let limit = format!("it is not a complete .npz archive ({})", first_line(&e));
                Err(invalid(limit, path.display(), "copy or write the file again"))
            }
        }
    }

    /// Returns whether the file is an archive with an array of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Self::Npy(_) => false,
            Self::Npz(archive) => archive.array_names().any(|n| n == name),
        }
    }

    /// Returns the names of the archive's arrays as text for an error message.
    pub(crate) fn names(&self) -> String {
        match self {
            Self::Npy(_) => String::new(),
            Self::Npz(archive) => {
                let mut names: Vec<&str> = archive.array_names().collect();
                names.sort_unstable();
                // Debug formatting escapes line breaks in a name.
                format!("{names:?}")
            }
        }
    }

    /// Reads one array.
    pub(crate) fn array<T: Value>(&mut self, name: &str) -> Result<Array<T>> {
        match self {
            Self::Npy(bytes) => parse(name, bytes),
            Self::Npz(archive) => {
                let broken = |e: &dyn std::fmt::Display| {
                    let limit = format!("the archive's entry is damaged ({})", first_line(e));
                    invalid(limit, format!("array {name}"), "copy or write the file again")
                };
                let zip = archive.zip_archive();
                let entry = zip.by_name(&format!("{name}.npy")).map_err(|e| broken(&e))?;
                let mut bytes = Vec::new();
                entry.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| broken(&e))?;
                if bytes.len() as u64 > MAX_BYTES {
                    let limit = format!("an array has at most {MAX_BYTES} bytes");
                    return Err(invalid(limit, format!("array {name}"), "split the trace"));
                }
                parse(name, &bytes)
            }
        }
    }
}

/// Parses the bytes of one `.npy` file.
fn parse<T: Value>(name: &str, bytes: &[u8]) -> Result<Array<T>> {
    let broken = |why: String| {
        let limit = format!("its .npy header is unusable ({why})");
        invalid(limit, format!("array {name}"), "save it again")
    };
    check_header(bytes).map_err(broken)?;
    let mut rest = bytes;
    let header = NpyHeader::from_reader(&mut rest).map_err(|e| broken(first_line(&e)))?;
    let dtype = header.dtype().descr();
    if dtype.trim_matches('\'') != T::DTYPE {
        let limit = format!("it must be '{}' (little endian)", T::DTYPE);
        let remedy = "convert it with numpy's astype before saving";
        return Err(Error::invalid("dtype", format!("{dtype} (array {name})"), limit, remedy));
    }
    // The two orders are the same for an array of one dimension.
    if header.order() == Order::Fortran && header.shape().len() > 1 {
        let remedy = "save numpy.ascontiguousarray of it";
        let value = format!("Fortran (array {name})");
        return Err(Error::invalid("order", value, "it must be C", remedy));
    }
    let shape: Vec<usize> = header.shape().iter().map(|&d| d as usize).collect();
    let values = shape.iter().product::<usize>();
    if rest.len() < values * T::SIZE {
        let limit = format!("its shape {shape:?} needs {} bytes", values * T::SIZE);
        let value = format!("array {name} with {} bytes of data", rest.len());
        return Err(invalid(limit, value, "the file is cut short: copy or write it again"));
    }
    let data = rest[..values * T::SIZE].chunks_exact(T::SIZE).map(T::from_le).collect();
    Ok(Array { shape, data })
}

/// Returns the first line of a parser's message, without the position that the other lines draw.
fn first_line(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.split("-->").next().unwrap_or_default().trim_end_matches([' ', ':']).to_owned()
}

/// Refuses an oversized header, and a shape whose product overflows; npyz does not check them.
fn check_header(bytes: &[u8]) -> std::result::Result<(), String> {
    let field = |at: usize, n: usize| {
        let raw = bytes.get(at..at + n).ok_or("it is cut short")?;
        Ok::<_, String>(raw.iter().rev().fold(0, |v, &b| v << 8 | usize::from(b)))
    };
    let (start, len) = match field(6, 1)? {
        1 => (10, field(8, 2)?),
        2 | 3 => (12, field(8, 4)?),
        v => return Err(format!("version {v} is unknown")),
    };
    if len > MAX_HEADER {
        return Err(format!("{len} bytes, at most {MAX_HEADER} are expected"));
    }
    let text = bytes.get(start..start + len).ok_or("it is cut short")?;
    let text = std::str::from_utf8(text).map_err(|e| e.to_string())?;
    let (_, shape) = text.split_once("shape").ok_or("it names no shape")?;
    let numbers = shape.split(|c: char| !c.is_ascii_digit()).filter(|s| !s.is_empty());
    // NumPy writes the shape last. Digits of a key after it would only make this check stricter.
    let mut product = 1u64;
    for number in numbers {
        let dim = number.parse::<u64>().map_err(|_| format!("dimension {number} is too large"))?;
        product = product
            .checked_mul(dim.max(1))
            .filter(|&p| p <= MAX_BYTES)
            .ok_or_else(|| format!("dimension {number} makes it over {MAX_BYTES} values"))?;
    }
    Ok(())
}

/// A new `.npz` file, which is in memory until [`Writer::finish`] writes it as a whole.
pub(crate) struct Writer {
    npz: NpzWriter<Cursor<Vec<u8>>>,
}

impl Writer {
    /// Creates an archive without arrays.
    pub(crate) fn new() -> Self {
        Self { npz: NpzWriter::new(Cursor::new(Vec::new())) }
    }

    /// Adds one array. It is serialised first, because the compressor is slow with a write per value.
    pub(crate) fn array<T: AutoSerialize + Copy>(
        &mut self,
        name: &str,
        shape: &[usize],
        data: &[T],
    ) -> Result<()> {
        let failed = |e| unserialised(name, e);
        let shape: Vec<u64> = shape.iter().map(|&d| d as u64).collect();
        let mut image = Vec::with_capacity(size_of_val(data) + 128);
        let options = WriteOptions::new().default_dtype().shape(&shape).writer(&mut image);
        let mut writer = options.begin_nd().map_err(failed)?;
        writer.extend(data.iter().copied()).and_then(|()| writer.finish()).map_err(failed)?;
        let zip = self.npz.zip_writer();
        zip.start_file(format!("{name}.npy"), Default::default()).map_err(|e| failed(e.into()))?;
        zip.write_all(&image).map_err(failed)
    }

    /// Writes the file.
    pub(crate) fn finish(mut self, path: &Path) -> Result<()> {
        let archive = self.npz.zip_writer().finish();
        let bytes = archive.map_err(|e| unserialised("directory", e.into()))?;
        output_file::write(path, bytes.get_ref())
    }
}

fn unserialised(array: &str, source: std::io::Error) -> Error {
    let remedy = "write fewer steps";
    Error::Os { call: "serialise", what: format!("array {array}"), source, remedy }
}
