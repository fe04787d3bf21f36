//! An array of whole numbers of a trace file.

use crate::checks::require;
use avsg::{Error, Result};

/// Begins the names of byte planes.
const PLANE: &str = "gap_";

/// An array in C order. A number below those of 32 bits is the least of them.
pub(crate) struct Array {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<i32>,
}

impl Array {
    /// Creates an array from the bytes of its values, behind which others may follow. Its type has the name `kind` in
    /// a NumPy header. The product of the shape must fit the address space.
    pub(crate) fn new(name: &str, shape: Vec<usize>, kind: &str, bytes: &[u8]) -> Result<Self> {
        let kinds = match name.starts_with(PLANE) {
            true => &["|u1"][..],
            false => &["<i4", "<u4", "<i8", "<u8"],
        };
        let limit = format!("it must be '{}' (little endian)", kinds.join("' or '"));
        let (value, remedy) =
            (format!("'{kind}' (array {name})"), "convert it with numpy's astype before saving");
        require(kinds.contains(&kind), "dtype", value, limit, remedy)?;
        let size = usize::from(kind.as_bytes()[2] - b'0');
        let (count, given) = (shape.iter().product::<usize>(), bytes.len());
        let value = format!("array {name} with {given} bytes of data");
        let limit = format!("its shape {shape:?} needs {} bytes", count * size);
        let remedy = "the file is cut short: copy or write it again";
        require(given >= count * size, "trace", value, limit, remedy)?;
        let number = |(at, bytes): (usize, &[u8])| {
            let value = number(kind, bytes);
            i32::try_from(value.max(i32::MIN.into())).map_err(|_| {
                let per_step = count / shape[0];
                let (step, position) = (at / per_step, at % per_step);
                let value = format!("{value} at step {step}, position {position} (array {name})");
                let limit = format!("the largest number is {}", i32::MAX);
                Error::invalid("value", value, limit, "cut the context or renumber the tokens")
            })
        };
        let values = bytes[..count * size].chunks_exact(size).enumerate().map(number);
        Ok(Self { name: name.to_owned(), values: values.collect::<Result<_>>()?, shape })
    }
}

/// Converts the bytes of one value. The largest unsigned value of 32 or 64 bits is what -1, the usual padding,
/// becomes when it is converted to an unsigned type, so it is read as -1.
fn number(kind: &str, bytes: &[u8]) -> i128 {
    let mut word = [0; 16];
    word[..bytes.len()].copy_from_slice(bytes);
    let unused = 128 - 8 * bytes.len() as u32;
    let signed = i128::from_le_bytes(word) << unused >> unused;
    let is_padding = bytes.len() > 1 && signed == -1;
    if kind.contains('i') || is_padding { signed } else { i128::from_le_bytes(word) }
}
