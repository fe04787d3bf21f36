//! The operands in memory: buffers in UB, and arrays in global memory.

use super::act::{Part, Place};
use crate::expr::Expr;

/// The type of the elements of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Signed 32-bit numbers.
    Word,
    /// 16-bit floats.
    Half,
    /// Signed 16-bit numbers.
    Short,
    /// Unsigned 16-bit numbers.
    Bits,
    /// Bytes of a mask, eight lanes each.
    Mask,
    /// 8-bit numbers.
    Byte,
}

impl Element {
    /// Returns the bytes of one element.
    pub fn size(self) -> u32 {
        match self {
            Self::Word => 4,
            Self::Half | Self::Short | Self::Bits => 2,
            Self::Mask | Self::Byte => 1,
        }
    }
}

/// The memory of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// A buffer that the kernel declares.
    Named(String),
    /// A temporary of a tile that has no register yet.
    Temp(usize),
    /// The start of a buffer that the text does not declare, given by its address.
    Placed {
        /// The name of the buffer.
        name: String,
        /// The type of the elements.
        element: Element,
        /// The number of elements.
        len: Expr,
    },
}

/// The type as which the bits of a tensor are interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The type of its elements.
    Own,
    /// Signed 32-bit numbers.
    I32,
    /// Unsigned 32-bit numbers.
    U32,
    /// Unsigned 16-bit numbers.
    U16,
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
}

/// An operand in UB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The memory.
    pub buffer: Buffer,
    /// Whether the operand is the tile of this round and not the whole buffer.
    pub tile: bool,
    /// The type as which the bits are interpreted.
    pub view: View,
}

impl Tensor {
    /// Returns a whole buffer.
    pub fn named(name: impl Into<String>) -> Self {
        Self { buffer: Buffer::Named(name.into()), tile: false, view: View::Own }
    }

    /// Returns the tile of this round of a buffer.
    pub fn tile(name: impl Into<String>) -> Self {
        Self { tile: true, ..Self::named(name) }
    }

    /// Returns a temporary.
    pub fn temp(number: usize) -> Self {
        Self { buffer: Buffer::Temp(number), tile: false, view: View::Own }
    }

    /// Returns a buffer that the text does not declare.
    pub fn placed(name: &str, element: Element, len: Expr) -> Self {
        let buffer = Buffer::Placed { name: name.into(), element, len };
        Self { buffer, tile: false, view: View::Own }
    }

    /// Returns the tensor with its bits interpreted as another type.
    #[must_use]
    pub fn viewed_as(self, view: View) -> Self {
        Self { view, ..self }
    }

    /// Returns the place that the operand touches.
    pub fn place(&self) -> Place {
        let part = if self.tile { Part::Tile } else { Part::Whole };
        match &self.buffer {
            Buffer::Named(name) | Buffer::Placed { name, .. } => Place::Ub(name.clone(), part),
            Buffer::Temp(n) => Place::Temp(*n),
        }
    }

    /// Returns the column of which the operand is the tile.
    pub fn column(&self) -> Option<&str> {
        match &self.buffer {
            Buffer::Named(name) if self.tile => Some(name),
            _ => None,
        }
    }

    /// Returns the number of the temporary, if the operand is one.
    pub fn as_temp(&self) -> Option<usize> {
        if let Buffer::Temp(n) = self.buffer { Some(n) } else { None }
    }
}

/// An operand in global memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// The name of the array.
    pub array: String,
    /// The plane of the array, if it has planes; planes do not overlap.
    pub plane: Option<&'static str>,
    /// The first element; `None` for the start of the array.
    pub at: Option<Expr>,
}

impl Global {
    /// Returns an array from an element on.
    pub fn at(array: impl Into<String>, at: Expr) -> Self {
        Self { array: array.into(), plane: None, at: Some(at) }
    }

    /// Returns a whole array.
    pub fn array(array: impl Into<String>) -> Self {
        Self { array: array.into(), plane: None, at: None }
    }

    /// Returns the place that the operand touches.
    pub fn place(&self) -> Place {
        match self.plane {
            Some(plane) => Place::Gm(format!("{}.{plane}", self.array)),
            None => Place::Gm(self.array.clone()),
        }
    }
}
