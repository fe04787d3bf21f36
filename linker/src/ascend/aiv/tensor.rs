//! The operands in memory: buffers in UB, and arrays in global memory.

use super::act::{Part, Place, ub, word};
use super::expr::Expr;
use super::types::Type;

/// The memory of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// A buffer that the kernel declares.
    Named(String),
    /// A temporary of a sweep that has no register yet.
    Temp(Temp),
    /// The start of a buffer that the kernel does not declare, given by its address.
    Placed {
        /// The name of the buffer.
        name: &'static str,
        /// The type of the elements.
        element: Type,
        /// The number of elements.
        len: Expr,
        /// The name under which a function declares it.
        called: Option<&'static str>,
    },
    /// The block that repeats one word.
    Word(u32),
}

/// A temporary of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Temp {
    /// Its number, which no other temporary of the sweep has.
    pub number: usize,
    /// Whether it is a mask and not a vector.
    pub mask: bool,
    /// What the text calls it, with a number where another value has the name.
    pub name: String,
}

/// An operand in UB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The memory.
    pub buffer: Buffer,
    /// Whether the operand is the part of this round and not the whole buffer.
    pub tile: bool,
    /// The first element, if it is neither that of the buffer nor that of a sweep's tile.
    pub at: Option<Expr>,
    /// The type as which the bits are interpreted, if it is not that of the elements.
    pub view: Option<Type>,
}

impl Tensor {
    fn whole(buffer: Buffer) -> Self {
        Self { buffer, tile: false, at: None, view: None }
    }

    /// Returns a whole buffer.
    pub fn named(name: impl Into<String>) -> Self {
        Self::whole(Buffer::Named(name.into()))
    }

    /// Returns the tile of this round of a buffer.
    pub fn tile(name: impl Into<String>) -> Self {
        Self { tile: true, ..Self::named(name) }
    }

    /// Returns a temporary.
    pub fn temporary(temp: Temp) -> Self {
        Self::whole(Buffer::Temp(temp))
    }

    /// Returns a buffer that the text does not declare.
    pub fn placed(name: &'static str, element: Type, len: impl Into<Expr>) -> Self {
        Self::whole(Buffer::Placed { name, element, len: len.into(), called: None })
    }

    /// Returns the block that repeats a word.
    pub fn word(bits: u32) -> Self {
        Self::whole(Buffer::Word(bits))
    }

    /// Returns the tensor from an element on.
    #[must_use]
    pub fn at(&self, first: impl Into<Expr>) -> Self {
        Self { at: Some(first.into()), ..self.clone() }
    }

    /// Returns the part of the tensor from an element on that one round of the innermost loop touches, and
    /// no other round.
    #[must_use]
    pub fn of_round(&self, first: impl Into<Expr>) -> Self {
        Self { tile: true, ..self.at(first) }
    }

    /// Returns the tensor with its bits interpreted as another type.
    #[must_use]
    pub fn viewed_as(self, view: Type) -> Self {
        Self { view: Some(view), ..self }
    }

    /// Returns the place that the operand touches.
    pub fn place(&self) -> Place {
        self.place_of(None)
    }

    /// Returns the place that an instruction touches that processes `n` elements of the operand.
    pub fn place_of(&self, n: Option<&Expr>) -> Place {
        let part = if self.tile { Part::Tile } else { Part::Whole };
        match &self.buffer {
            Buffer::Named(name) => Place::Ub(name.clone(), part),
            Buffer::Placed { name, .. } if self.tile => Place::Ub((*name).into(), part),
            Buffer::Placed { name, element, .. } => {
                let number = |e: &Expr| e.value(&|_| None).and_then(|n| u32::try_from(n).ok());
                let first = self.at.as_ref().map_or(Some(0), number);
                let n = n.filter(|_| self.view.is_none()).and_then(number);
                let from = first.unwrap_or(0) * element.size();
                let to = first.zip(n).map_or(u32::MAX, |(first, n)| (first + n) * element.size());
                Place::Ub((*name).into(), Part::Bytes(from, to))
            }
            Buffer::Word(bits) => ub(&word(*bits)),
            Buffer::Temp(temp) => Place::Temp(temp.number),
        }
    }

    /// Returns the temporary, if the operand is one.
    pub fn temp(&self) -> Option<&Temp> {
        if let Buffer::Temp(temp) = &self.buffer { Some(temp) } else { None }
    }
}

impl From<&Self> for Tensor {
    fn from(tensor: &Self) -> Self {
        tensor.clone()
    }
}

/// An operand in global memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// The array, as the text names it.
    pub array: String,
    /// The plane of the array, if it has planes; planes do not overlap.
    pub plane: Option<&'static str>,
    /// The first element; `None` for the start of the array.
    pub at: Option<Expr>,
}

impl Global {
    /// Returns an array of the kernel from an element on.
    pub fn at(array: &str, at: Expr) -> Self {
        Self { at: Some(at), ..Self::array(array) }
    }

    /// Returns a whole array of the kernel.
    pub fn array(array: &str) -> Self {
        Self { array: format!("gm.{array}"), plane: None, at: None }
    }

    /// Returns the place that the operand touches.
    pub fn place(&self) -> Place {
        match self.plane {
            Some(plane) => Place::Gm(format!("{}.{plane}", self.array)),
            None => Place::Gm(self.array.clone()),
        }
    }
}
