//! Reading and writing NumPy files: one array in an `.npy`, named arrays in an `.npz`, a ZIP archive
//! of `.npy` files.
//!
//! npyz reads and writes the headers. They are untrusted input, so their size and shape are checked
//! before npyz multiplies the dimensions.

use std::io::{Cursor, Read, Write};
use std::path::Path;

use npyz::{AutoSerialize, NpyHeader, Order, WriteOptions, WriterBuilder};
use zip::{ZipArchive, ZipWriter};

use crate::array::{Array, Kind, wrong_kind};
use crate::checks::require;
use crate::output_file;
use avsg::{Error, Result};

/// Bytes of the largest file and of the largest array that are read; 8 million steps of 64 ids fit.
pub(crate) const MAX_BYTES: u64 = 1 << 31;
/// Bytes of the largest header that is read. NumPy writes 118 bytes for a plain array; a longer header
/// belongs to another kind of array.
const MAX_HEADER: usize = 1024;

/// The arrays of an `.npz` file.
pub(crate) struct Archive(ZipArchive<Cursor<Vec<u8>>>);

pub(crate) fn invalid(
    limit: impl Into<String>,
    value: impl ToString,
    remedy: &'static str,
) -> Error {
    Error::invalid("trace", value, limit, remedy)
}

impl Archive {
    /// Opens an archive; `name` is that of its file.
    pub(crate) fn new(name: &str, bytes: Vec<u8>) -> Result<Self> {
        ZipArchive::new(Cursor::new(bytes)).map(Self).map_err(|e| {
            let limit = format!("it is not a complete .npz archive ({})", first_line(&e));
            invalid(limit, name, "copy or write the file again")
        })
    }

    /// Returns the names of the arrays.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0
            .file_names()
            .filter_map(|name| name.strip_suffix(".npy"))
            .map(str::to_owned)
            .collect()
    }

    pub(crate) fn array(&mut self, name: &str) -> Result<Array> {
        let broken = |e: &dyn std::fmt::Display| {
            let limit = format!("the archive's entry is damaged ({})", first_line(e));
            invalid(limit, format!("array {name}"), "copy or write the file again")
        };
        let entry = self.0.by_name(&format!("{name}.npy")).map_err(|e| broken(&e))?;
        let mut bytes = Vec::new();
        entry.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| broken(&e))?;
        let limit = format!("an array has at most {MAX_BYTES} bytes");
        let fits = bytes.len() as u64 <= MAX_BYTES;
        require(fits, "trace", format!("array {name}"), limit, "split the trace")?;
        parse(name, bytes)
    }
}

/// Parses the bytes of one `.npy` file.
pub(crate) fn parse(name: &str, bytes: Vec<u8>) -> Result<Array> {
    let broken = |why: String| {
        let limit = format!("its .npy header is unusable ({why})");
        invalid(limit, format!("array {name}"), "save it again")
    };
    check_header(&bytes).map_err(broken)?;
    let mut rest = bytes.as_slice();
    let header = NpyHeader::from_reader(&mut rest).map_err(|e| broken(first_line(&e)))?;
    let start = bytes.len() - rest.len();
    let dtype = header.dtype().descr();
    let kind = Kind::named(dtype.trim_matches('\''));
    let kind = kind.ok_or_else(|| wrong_kind(name, &dtype, &Kind::NUMBERS))?;
    // The two orders are the same for an array of one dimension.
    let is_c = header.order() == Order::C || header.shape().len() <= 1;
    let (value, remedy) = (format!("Fortran (array {name})"), "save numpy.ascontiguousarray of it");
    require(is_c, "order", value, "it must be C", remedy)?;
    let shape = header.shape().iter().map(|&d| d as usize).collect();
    Array::new(name, shape, kind, bytes, start)
}

/// Returns the first line of a parser's message, without the position that the other lines draw.
pub(crate) fn first_line(error: &dyn std::fmt::Display) -> String {
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
pub struct Writer(ZipWriter<Cursor<Vec<u8>>>);

impl Default for Writer {
    /// Creates an archive without arrays.
    fn default() -> Self {
        Self(ZipWriter::new(Cursor::new(Vec::new())))
    }
}

impl Writer {
    /// Adds one array. It is serialised first, because the compressor is slow with a write per value.
    pub fn array<T: AutoSerialize + Copy>(
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
        let name = format!("{name}.npy");
        self.0.start_file(name, Default::default()).map_err(|e| failed(e.into()))?;
        self.0.write_all(&image).map_err(failed)
    }

    /// Writes the file.
    pub fn finish(mut self, path: &Path) -> Result<()> {
        let archive = self.0.finish();
        let bytes = archive.map_err(|e| unserialised("directory", e.into()))?;
        output_file::write(path, bytes.get_ref())
    }
}

fn unserialised(array: &str, source: std::io::Error) -> Error {
    let remedy = "write fewer steps";
    Error::Os { call: "serialise", what: format!("array {array}"), source, remedy }
}
