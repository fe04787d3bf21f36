//! Helper functions, and calls of them.

use super::act::{Act, Place, ub, word};
use super::expr::Expr;
use super::tensor::{Global, Tensor};
use super::vector::{Comparison, Length, Scalar, Type};

/// What a helper's text refers to besides its arguments.
#[derive(Clone, Copy, Debug)]
pub enum Use {
    /// Another helper.
    Helper(&'static Helper),
    /// A buffer, by its address.
    Buffer(&'static str),
    /// How many slots are numbered at once.
    SlotTile,
    /// How many slots are counted at once.
    LifeTile,
    /// The numbers of searches over all links, and of passes over whole columns.
    Searches,
}

/// Whether a call waits for a number that the vector unit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// It does not.
    Never,
    /// It does.
    Always,
    /// It does where the caller takes the number.
    IfTaken,
}

/// A function that makes what a 910B lacks of what it has.
#[derive(Debug)]
pub struct Helper {
    /// Its name in the text.
    pub name: &'static str,
    /// Its definition.
    pub text: &'static str,
    /// What the definition refers to.
    pub uses: &'static [Use],
    /// What happens in a call of it.
    pub acts: fn(&HelperCall) -> Vec<Act>,
    /// Whether it waits for a count.
    pub asks: Asks,
    /// Whether it may write where it reads.
    pub in_place: bool,
}

impl Helper {
    /// A helper that only others call, or that touches no memory.
    pub const fn inner(name: &'static str, text: &'static str, uses: &'static [Use]) -> Self {
        Self { name, text, uses, acts: |_| Vec::new(), asks: Asks::Never, in_place: false }
    }
}

impl PartialEq for Helper {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Helper {}

/// An argument of a helper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Memory in UB.
    Tensor(Tensor),
    /// Global memory.
    Global(Global),
    /// A number.
    Scalar(Scalar),
    /// How many elements.
    Length(Length),
    /// The block that holds a word.
    Word(u32),
    /// A yes or no.
    Flag(bool),
    /// How to compare.
    Comparison(Comparison),
}

impl Argument {
    /// The tensor that it is.
    pub fn tensor(&self) -> Option<&Tensor> {
        if let Self::Tensor(tensor) = self { Some(tensor) } else { None }
    }

    /// The same, to be changed.
    pub fn tensor_mut(&mut self) -> Option<&mut Tensor> {
        if let Self::Tensor(tensor) = self { Some(tensor) } else { None }
    }

    /// The length that it is.
    pub fn length(&self) -> Option<&Length> {
        if let Self::Length(length) = self { Some(length) } else { None }
    }

    /// The word whose block it is.
    pub fn word(&self) -> Option<u32> {
        if let Self::Word(word) = self { Some(*word) } else { None }
    }

    /// The scalar expression in it.
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

/// What becomes of a helper's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has none, or nobody needs it.
    None,
    /// It is a new variable.
    Let(String),
    /// A variable is set to it.
    Assign(String),
    /// A variable grows by it.
    Increase(String),
    /// The kernel ends if it holds.
    Return,
}

/// A call of a helper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelperCall {
    /// Which.
    pub helper: &'static Helper,
    /// Its arguments.
    pub args: Vec<Argument>,
    /// Its result.
    pub outcome: Outcome,
    /// Words whose blocks it reads besides those among the arguments.
    pub words: Vec<u32>,
}

impl HelperCall {
    /// The memory that an argument is.
    ///
    /// # Panics
    /// If it is none.
    pub fn place(&self, n: usize) -> Place {
        match &self.args[n] {
            Argument::Tensor(tensor) => tensor.place(),
            Argument::Global(global) => global.place(),
            Argument::Word(bits) => ub(&word(*bits)),
            other => panic!("{other:?} is no memory"),
        }
    }
}
