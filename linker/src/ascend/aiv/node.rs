//! The types of a kernel's nodes: statements, loops and branches, and the functions that statements
//! call.

use super::act::Sync;
use super::tensor::{Element, Global, Tensor};
use super::vector::{Comparison, Length, Scalar, Type, Vector};
use crate::expr::Expr;
use std::sync::OnceLock;

/// A node of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A statement.
    Call(Call),
    /// A loop.
    Loop(Loop),
    /// A branch.
    If(If),
    /// A comment: the heading of a phase.
    Note(String),
}

/// The number of lanes that a sweep processes per round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// `TILE`: the sweep uses all registers.
    Tile,
    /// `WIDE`: the sweep uses few registers, so that two vectors may have the bytes of all vectors
    /// of a tile.
    Wide {
        /// The largest number of lanes of the sweep, if one round must cover it: the sweep appends
        /// to an empty list, and a list that ends inside of a block accepts no more than a tile.
        in_one_round: Option<u32>,
    },
}

/// The change of a loop variable after each round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It grows by a number.
    By(Expr),
    /// It doubles.
    Double,
    /// It grows by the lanes of a round of a sweep.
    Sweep(Width),
}

/// A loop over a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Loop {
    pub variable: &'static str,
    pub from: Expr,
    pub bound: Expr,
    /// A condition under which each round starts, if there is one besides the bound.
    pub only: Option<Expr>,
    pub step: Step,
    /// Whether the loop runs at least once for all data.
    pub always: bool,
    pub sync: Vec<Sync>,
    pub body: Vec<Node>,
}

/// A branch on a condition of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct If {
    /// The condition, which reads no memory.
    pub condition: Expr,
    pub body: Vec<Node>,
    pub otherwise: Vec<Node>,
}

/// A transfer between global memory and UB.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Copy {
    /// Whether the direction is from UB to global memory.
    pub out: bool,
    pub ub: Tensor,
    pub gm: Global,
    pub n: Expr,
}

/// The operation of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Operation {
    /// Defines a variable.
    Let(String, Expr),
    /// Defines a variable that other statements change.
    Variable(String, Expr),
    /// Assigns a value to a variable.
    Assign(String, Expr),
    /// Defines a variable as an element of a tensor.
    Read { name: String, ty: Type, from: Tensor, at: Expr },
    /// Assigns a value to an element of a tensor.
    Write { to: Tensor, at: Expr, value: Expr },
    /// Defines a variable as the number of elements that the last `Compact` kept.
    Count(String),
    /// Returns a value from a function. Only statements without effects may follow.
    Return(Expr),
    /// Ends the function of the kernel.
    Leave,
    /// Nothing but the synchronisation before it.
    Order,
    /// Waits for all cores. Copies to global memory stay before it, and copies from global memory behind
    /// it.
    WaitForAll,
    /// Issues an instruction of the vector unit.
    Vector(Vector),
    /// Issues a transfer.
    Copy(Copy),
    /// Calls a function.
    Function(FunctionCall),
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Call {
    pub operation: Operation,
    /// The synchronisation before the statement.
    pub sync: Vec<Sync>,
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
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct FunctionCall {
    pub function: &'static Function,
    pub args: Vec<Argument>,
    pub outcome: Outcome,
    /// The words whose blocks it reads by the names of constants.
    pub words: Vec<u32>,
}

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
    /// A comparison of lanes.
    Comparison(Comparison),
}

/// An entity that the text of a function refers to besides its arguments.
#[derive(Clone, Copy, Debug)]
pub enum Use {
    /// Another function.
    Function(&'static Function),
    /// A buffer, by its address.
    Buffer(&'static str),
    /// The block that repeats a word.
    Word(u32),
    /// A constant.
    Constant(&'static str),
}

/// A function that the emitted text defines: an operation that the 910B does not have, made from
/// those that it has.
#[derive(Debug)]
pub struct Function {
    /// The name in the text.
    pub name: &'static str,
    /// The comment in the text.
    pub about: &'static str,
    /// Returns the definition.
    pub build: fn() -> Definition,
    pub(super) made: OnceLock<Definition>,
    pub(super) ordered: OnceLock<Vec<Node>>,
}

/// The parameters and the statements of a function.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Definition {
    pub params: Vec<Param>,
    /// The statements, without synchronisation.
    pub nodes: Vec<Node>,
}

/// A parameter of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Param {
    pub name: &'static str,
    pub ty: ParamType,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// A tensor in UB.
    Ub(Element),
    /// An array in global memory.
    Gm,
    /// A number or a condition.
    Scalar(Type),
    /// A comparison of lanes.
    Comparison,
}
