//! An array of whole numbers as a file holds it, and its values.

use crate::checks::require;
use avsg::{Error, Result};

/// The type of an array's values; every type is little endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NumberKind {
    /// The name in a NumPy header.
    pub(crate) name: &'static str,
    /// Bytes per value.
    size: usize,
    signed: bool,
}

impl NumberKind {
    pub(crate) const U8: Self = Self { name: "|u1", size: 1, signed: false };
    pub(crate) const I32: Self = Self { name: "<i4", size: 4, signed: true };
    pub(crate) const U32: Self = Self { name: "<u4", size: 4, signed: false };
    pub(crate) const I64: Self = Self { name: "<i8", size: 8, signed: true };
    pub(crate) const U64: Self = Self { name: "<u8", size: 8, signed: false };
    /// The types that an array of ids or token counts may have.
    pub(crate) const NUMBERS: [Self; 4] = [Self::I32, Self::U32, Self::I64, Self::U64];

    /// Returns the type with this name in a NumPy header.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::NUMBERS.into_iter().chain([Self::U8]).find(|kind| kind.name == name)
    }

    /// Converts the bytes of one value. The largest unsigned value is what -1, the usual padding,
    /// becomes when it is converted to an unsigned type, so it is read as -1.
    fn value(self, bytes: &[u8]) -> i128 {
        let mut word = [0; 16];
        word[..self.size].copy_from_slice(bytes);
        let unused = 128 - 8 * self.size as u32;
        let signed = i128::from_le_bytes(word) << unused >> unused;
        let is_padding = self.size > 1 && signed == -1;
        if self.signed || is_padding { signed } else { i128::from_le_bytes(word) }
    }
}

/// Returns the error of an array `name` whose values have the type `found` instead of one of `kinds`.
pub(crate) fn wrong_kind(name: &str, found: &str, kinds: &[NumberKind]) -> Error {
    let names: Vec<String> = kinds.iter().map(|kind| format!("'{}'", kind.name)).collect();
    let limit = format!("it must be {} (little endian)", names.join(" or "));
    let remedy = "convert it with numpy's astype before saving";
    Error::invalid("dtype", format!("{found} (array {name})"), limit, remedy)
}

/// An array in memory, in C order.
pub(crate) struct Array {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    kind: NumberKind,
    bytes: Vec<u8>,
    /// The byte at which the values begin.
    start: usize,
}

impl Array {
    /// Creates an array from the bytes of a file, in which its values begin at byte `start`; bytes
    /// behind the values are ignored. The product of the shape must fit the address space.
    pub(crate) fn new(
        name: &str,
        shape: Vec<usize>,
        kind: NumberKind,
        bytes: Vec<u8>,
        start: usize,
    ) -> Result<Self> {
        let needed = shape.iter().product::<usize>() * kind.size;
        let given = bytes.len().saturating_sub(start);
        let value = format!("array {name} with {given} bytes of data");
        let limit = format!("its shape {shape:?} needs {needed} bytes");
        let remedy = "the file is cut short: copy or write it again";
        require(given >= needed, "trace", value, limit, remedy)?;
        Ok(Self { name: name.to_owned(), shape, kind, bytes, start })
    }

    /// Returns the array if its values have one of these types.
    pub(crate) fn of(self, kinds: &[NumberKind]) -> Result<Self> {
        if kinds.contains(&self.kind) {
            return Ok(self);
        }
        Err(wrong_kind(&self.name, &format!("'{}'", self.kind.name), kinds))
    }

    /// Returns `count` values from value number `first` on.
    pub(crate) fn values(&self, first: usize, count: usize) -> impl Iterator<Item = i128> {
        let (kind, size) = (self.kind, self.kind.size);
        let bytes = &self.bytes[self.start + first * size..][..count * size];
        bytes.chunks_exact(size).map(move |bytes| kind.value(bytes))
    }
}
