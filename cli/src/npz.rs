//! NumPy files: one array of an `.npy`, named arrays of an `.npz`, refused with a reason.
//!
//! npyz reads and writes headers; the values are converted here in one pass. Headers come from
//! strangers, so their size and the announced shape are checked before npyz multiplies them.

use std::fs::File;
use std::io::{Cursor, Read, Write};
use std::path::Path;

use npyz::npz::{NpzArchive, NpzWriter};
use npyz::{AutoSerialize, NpyHeader, Order, WriteOptions, WriterBuilder};

use avsg::{Error, Result};

/// No array and no file above this is read: a trace of 8 million steps of 64 ids fits.
const MAX_BYTES: u64 = 1 << 31;
/// NumPy's header of a plain array takes 118 bytes; a long one is another kind of array.
const MAX_HEADER: usize = 1024;

/// A value type and its name in a NumPy header.
pub(crate) trait Value: AutoSerialize + Copy {
    const DTYPE: &'static str;
    const SIZE: usize;
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

/// An array in memory, C order.
pub(crate) struct Array<T> {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<T>,
}

/// Where a file comes from: an `.npy` holds one array, which has every name.
pub(crate) enum Source {
    Npy(Vec<u8>),
    Npz(Box<NpzArchive<Cursor<Vec<u8>>>>),
}

fn invalid(limit: impl Into<String>, value: impl ToString, remedy: &'static str) -> Error {
    Error::invalid("trace", value, limit, remedy)
}

impl Source {
    /// Reads the file and tells the two forms apart by their first bytes.
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

    /// Whether the archive holds an array of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Self::Npy(_) => false,
            Self::Npz(archive) => archive.array_names().any(|n| n == name),
        }
    }

    /// The names in the archive, for the error that lists them.
    pub(crate) fn names(&self) -> String {
        match self {
            Self::Npy(_) => String::new(),
            Self::Npz(archive) => {
                let mut names: Vec<&str> = archive.array_names().collect();
                names.sort_unstable();
                // Debug quotes, so that a name cannot break the line.
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

/// Interprets one `.npy` image.
fn parse<T: Value>(name: &str, bytes: &[u8]) -> Result<Array<T>> {
    let of = || format!("array {name}");
    let broken = |why: String| {
        invalid(format!("its .npy header is unusable ({why})"), of(), "save it again")
    };
    check_header(bytes).map_err(broken)?;
    let mut rest = bytes;
    let header = NpyHeader::from_reader(&mut rest).map_err(|e| broken(first_line(&e)))?;
    let found = header.dtype().descr();
    if found.trim_matches('\'') != T::DTYPE {
        let limit = format!("it must be '{}' (little endian)", T::DTYPE);
        let remedy = "convert it with numpy's astype before saving";
        return Err(Error::invalid("dtype", format!("{found} (array {name})"), limit, remedy));
    }
    // In one dimension the two orders are the same.
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

/// A parser's message draws its position on lines of its own; errors here have one line.
fn first_line(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.split("-->").next().unwrap_or_default().trim_end_matches([' ', ':']).to_owned()
}

/// Refuses what npyz would trust: an oversized header, and a shape whose product overflows.
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
    // Digits of a later dict key would only make the check stricter; numpy puts shape last.
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

/// A new `.npz` file; [`Writer::finish`] reports what a drop would swallow.
pub(crate) struct Writer {
    npz: NpzWriter<std::io::BufWriter<File>>,
    path: String,
}

impl Writer {
    /// Creates or replaces the file.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let npz = NpzWriter::create(path).map_err(|e| write_error("create", &name, e))?;
        Ok(Self { npz, path: name })
    }

    /// Adds one array. It is laid out in memory first: the compressor gets one write, not one a value.
    pub(crate) fn array<T: AutoSerialize + Copy>(
        &mut self,
        name: &str,
        shape: &[usize],
        data: &[T],
    ) -> Result<()> {
        let failed = |e| write_error("write", &self.path, e);
        let shape: Vec<u64> = shape.iter().map(|&d| d as u64).collect();
        let mut image = Vec::with_capacity(size_of_val(data) + 128);
        let options = WriteOptions::new().default_dtype().shape(&shape).writer(&mut image);
        let mut writer = options.begin_nd().map_err(failed)?;
        writer.extend(data.iter().copied()).and_then(|()| writer.finish()).map_err(failed)?;
        let zip = self.npz.zip_writer();
        zip.start_file(format!("{name}.npy"), Default::default())
            .map_err(|e| write_error("write", &self.path, e.into()))?;
        zip.write_all(&image).map_err(failed)
    }

    /// Writes the directory of the archive and flushes.
    pub(crate) fn finish(mut self) -> Result<()> {
        let failed = |e| write_error("write", &self.path, e);
        let mut file = self.npz.zip_writer().finish().map_err(|e| failed(e.into()))?;
        file.flush().map_err(failed)
    }
}

fn write_error(call: &'static str, path: &str, source: std::io::Error) -> Error {
    let remedy = "check that the folder exists, is writable and has room";
    Error::Os { call, what: path.to_owned(), source, remedy }
}
