//! An array of whole numbers as a file holds it, and its values.

use avsg::{Error, Result};

/// The type of an array's values; every type is little endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    U8,
    I32,
    U32,
    I64,
    U64,
}

impl Kind {
    /// The types that an array of ids or token counts may have.
    pub(crate) const NUMBERS: [Self; 4] = [Self::I32, Self::U32, Self::I64, Self::U64];
    const ALL: [Self; 5] = [Self::U8, Self::I32, Self::U32, Self::I64, Self::U64];

    /// Returns the name in a NumPy header.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::U8 => "|u1",
            Self::I32 => "<i4",
            Self::U32 => "<u4",
            Self::I64 => "<i8",
            Self::U64 => "<u8",
        }
    }

    /// Returns the type with this name in a NumPy header.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the bytes per value.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::I32 | Self::U32 => 4,
            Self::I64 | Self::U64 => 8,
        }
    }

    /// Converts the bytes of one value. The largest unsigned value is what -1, the usual padding,
    /// becomes when it is converted to an unsigned type, so it is read as -1.
    fn value(self, bytes: &[u8]) -> i128 {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        match self {
            Self::U8 => i128::from(word),
            Self::I32 => i128::from(word as i32),
            Self::I64 => i128::from(word as i64),
            Self::U32 if word == u64::from(u32::MAX) => -1,
            Self::U64 if word == u64::MAX => -1,
            Self::U32 | Self::U64 => i128::from(word),
        }
    }
}

/// Returns the error of an array `name` whose values have the type `found` instead of one of `kinds`.
pub(crate) fn wrong_kind(name: &str, found: &str, kinds: &[Kind]) -> Error {
    let names: Vec<String> = kinds.iter().map(|kind| format!("'{}'", kind.name())).collect();
    let limit = format!("it must be {} (little endian)", names.join(" or "));
    let remedy = "convert it with numpy's astype before saving";
    Error::invalid("dtype", format!("{found} (array {name})"), limit, remedy)
}

/// An array in memory, in C order.
pub(crate) struct Array {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    kind: Kind,
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
        kind: Kind,
        bytes: Vec<u8>,
        start: usize,
    ) -> Result<Self> {
        let needed = shape.iter().product::<usize>() * kind.size();
        let given = bytes.len().saturating_sub(start);
        if given < needed {
            let limit = format!("its shape {shape:?} needs {needed} bytes");
            let value = format!("array {name} with {given} bytes of data");
            let remedy = "the file is cut short: copy or write it again";
            return Err(Error::invalid("trace", value, limit, remedy));
        }
        Ok(Self { name: name.to_owned(), shape, kind, bytes, start })
    }

    /// Returns the array if its values have one of these types.
    pub(crate) fn of(self, kinds: &[Kind]) -> Result<Self> {
        if kinds.contains(&self.kind) {
            return Ok(self);
        }
        Err(wrong_kind(&self.name, &format!("'{}'", self.kind.name()), kinds))
    }

    /// Returns `count` values from value number `first` on.
    pub(crate) fn values(&self, first: usize, count: usize) -> impl Iterator<Item = i128> {
        let (kind, size) = (self.kind, self.kind.size());
        let bytes = &self.bytes[self.start + first * size..][..count * size];
        bytes.chunks_exact(size).map(move |bytes| kind.value(bytes))
    }
}
