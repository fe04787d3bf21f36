//! Operands in memory: buffers of UB, and arrays in global memory.

use super::act::{Part, Place};
use super::expr::Expr;

/// What a buffer's elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// 32-bit numbers.
    Word,
    /// 16-bit floats.
    Half,
    /// 16-bit numbers.
    Short,
    /// 16-bit numbers without a sign.
    Bits,
    /// Eight lanes of a mask.
    Mask,
    /// 8-bit numbers.
    Byte,
}

impl Element {
    /// Bytes of one.
    pub fn size(self) -> u32 {
        match self {
            Self::Word => 4,
            Self::Half | Self::Short | Self::Bits => 2,
            Self::Mask | Self::Byte => 1,
        }
    }
}

/// Which memory a tensor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// A buffer that the kernel declares.
    Named(String),
    /// A tile's temporary that has no register yet.
    Temp(usize),
    /// The start of a buffer that is not declared, by its address.
    Placed {
        /// The buffer.
        name: String,
        /// Its elements.
        element: Element,
        /// How many of them.
        len: Expr,
    },
}

/// As what type a tensor's bits are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Its own.
    Own,
    /// 32-bit numbers.
    I32,
    /// 32-bit numbers without a sign.
    U32,
    /// 16-bit numbers without a sign.
    U16,
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
}

/// An operand in UB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its memory.
    pub buffer: Buffer,
    /// Whether it is the tile at hand, not the whole buffer.
    pub tile: bool,
    /// How its bits are taken.
    pub view: View,
}

impl Tensor {
    /// A whole buffer.
    pub fn named(name: impl Into<String>) -> Self {
        Self { buffer: Buffer::Named(name.into()), tile: false, view: View::Own }
    }

    /// The tile at hand of a buffer.
    pub fn tile(name: impl Into<String>) -> Self {
        Self { tile: true, ..Self::named(name) }
    }

    /// A temporary.
    pub fn temp(number: usize) -> Self {
        Self { buffer: Buffer::Temp(number), tile: false, view: View::Own }
    }

    /// A buffer that is not declared.
    pub fn placed(name: &str, element: Element, len: Expr) -> Self {
        let buffer = Buffer::Placed { name: name.into(), element, len };
        Self { buffer, tile: false, view: View::Own }
    }

    /// The same bits as another type.
    #[must_use]
    pub fn seen_as(self, view: View) -> Self {
        Self { view, ..self }
    }

    /// The memory that it touches.
    pub fn place(&self) -> Place {
        let part = if self.tile { Part::Tile } else { Part::Whole };
        match &self.buffer {
            Buffer::Named(name) | Buffer::Placed { name, .. } => Place::Ub(name.clone(), part),
            Buffer::Temp(n) => Place::Temp(*n),
        }
    }

    /// The column whose tile it is.
    pub fn column(&self) -> Option<&str> {
        match &self.buffer {
            Buffer::Named(name) if self.tile => Some(name),
            _ => None,
        }
    }

    /// The temporary that it is.
    pub fn as_temp(&self) -> Option<usize> {
        if let Buffer::Temp(n) = self.buffer { Some(n) } else { None }
    }
}

/// An operand in global memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// The array.
    pub array: String,
    /// Which of its planes: they do not overlap.
    pub plane: Option<&'static str>,
    /// Its first element; `None`: the array as it is.
    pub at: Option<Expr>,
}

impl Global {
    /// An array from an element on.
    pub fn at(array: impl Into<String>, at: Expr) -> Self {
        Self { array: array.into(), plane: None, at: Some(at) }
    }

    /// An array as it is.
    pub fn array(array: impl Into<String>) -> Self {
        Self { array: array.into(), plane: None, at: None }
    }

    /// The memory that it touches.
    pub fn place(&self) -> Place {
        match self.plane {
            Some(plane) => Place::Gm(format!("{}.{plane}", self.array)),
            None => Place::Gm(self.array.clone()),
        }
    }
}
