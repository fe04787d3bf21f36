//! Functions that the emitted text defines, and calls of them.

use super::act::{Act, Place, ub, word};
use super::tensor::{Global, Tensor};
use super::vector::{Comparison, Length, Scalar, Type};
use crate::expr::Expr;

/// An entity that the text of a function refers to besides its arguments.
#[derive(Clone, Copy, Debug)]
pub enum Use {
    /// Another function.
    Function(&'static Function),
    /// A buffer, by its address.
    Buffer(&'static str),
    /// The constant SLOT_TILE: the number of slots that are numbered at once.
    SlotTile,
    /// The constant LIFE_TILE: the number of slots that are counted at once.
    LifeTile,
    /// The constants of searches over all links.
    Searches,
}

/// A function that the emitted text defines: an operation that the 910B does not have, made from those that it has.
#[derive(Debug)]
pub struct Function {
    /// The name in the text.
    pub name: &'static str,
    /// The definition.
    pub text: &'static str,
    /// The entities that the definition refers to.
    pub uses: &'static [Use],
    /// Returns the effects of a call.
    pub acts: fn(&FunctionCall) -> Vec<Act>,
    /// Whether the destination may be one of the sources.
    pub in_place: bool,
}

impl Function {
    /// Returns a function that only other functions call, or that touches no memory.
    pub const fn inner(name: &'static str, text: &'static str, uses: &'static [Use]) -> Self {
        Self { name, text, uses, acts: |_| Vec::new(), in_place: false }
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Function {}

/// An argument of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// An operand in UB.
    Tensor(Tensor),
    /// An operand in global memory.
    Global(Global),
    /// A number.
    Scalar(Scalar),
    /// A number of elements.
    Length(Length),
    /// The block that repeats a word.
    Word(u32),
    /// The place of a column among those of a list.
    Column {
        /// Whether it is the first column.
        first: bool,
        /// Whether it is the last column.
        last: bool,
    },
    /// A comparison of lanes.
    Comparison(Comparison),
}

impl Argument {
    /// Returns the tensor, if the argument is one.
    pub fn tensor(&self) -> Option<&Tensor> {
        if let Self::Tensor(tensor) = self { Some(tensor) } else { None }
    }

    /// Returns the tensor for changing it, if the argument is one.
    pub fn tensor_mut(&mut self) -> Option<&mut Tensor> {
        if let Self::Tensor(tensor) = self { Some(tensor) } else { None }
    }

    /// Returns the length, if the argument is one.
    pub fn length(&self) -> Option<&Length> {
        if let Self::Length(length) = self { Some(length) } else { None }
    }

    /// Returns the word, if the argument is its block.
    pub fn word(&self) -> Option<u32> {
        if let Self::Word(word) = self { Some(*word) } else { None }
    }

    /// Returns the scalar expression of the argument, if it has one.
    pub fn expression(&self) -> Option<&Expr> {
        match self {
            Self::Scalar(scalar) => Some(&scalar.value),
            Self::Global(gm) => gm.at.as_ref(),
            _ => None,
        }
    }
}

impl From<Tensor> for Argument {
    fn from(tensor: Tensor) -> Self {
        Self::Tensor(tensor)
    }
}

impl From<Expr> for Argument {
    fn from(value: Expr) -> Self {
        Self::Scalar(Scalar::new(value, Type::I32))
    }
}

/// The use of the result of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The function has no result, or the result is not used.
    None,
    /// The result defines a variable.
    Let(String),
    /// The result is assigned to a variable.
    Assign(String),
    /// The result is added to a variable.
    Increase(String),
    /// The kernel ends if the result is true.
    Return,
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    /// The function.
    pub function: &'static Function,
    /// The arguments.
    pub args: Vec<Argument>,
    /// The use of the result.
    pub outcome: Outcome,
    /// The words whose blocks it reads besides those among the arguments.
    pub words: Vec<u32>,
}

impl FunctionCall {
    /// Returns the place of an argument.
    ///
    /// # Panics
    /// If the argument is not in memory.
    pub fn place(&self, n: usize) -> Place {
        match &self.args[n] {
            Argument::Tensor(tensor) => tensor.place(),
            Argument::Global(global) => global.place(),
            Argument::Word(bits) => ub(&word(*bits)),
            other => panic!("{other:?} is no memory"),
        }
    }
}
