//! The types of elements in memory and of scalar operands.

/// A type of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Signed 32-bit numbers: the words of lists and planes.
    I32,
    /// Unsigned 32-bit numbers.
    U32,
    /// Signed 16-bit numbers.
    I16,
    /// Unsigned 16-bit numbers.
    U16,
    /// Signed 8-bit numbers.
    I8,
    /// Bytes; of a mask, each has the bits of eight lanes.
    U8,
    /// 16-bit floats.
    F16,
    /// 32-bit floats.
    F32,
    /// Unsigned 64-bit numbers.
    U64,
    /// A condition.
    Bool,
}

impl Type {
    /// Returns the bytes of one element.
    pub fn size(self) -> u32 {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::U64 => 8,
        }
    }
}
