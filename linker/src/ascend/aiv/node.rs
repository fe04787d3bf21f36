//! The types of a kernel's nodes: statements, loops and branches, and the functions that statements
//! call.

use super::act::Sync;
use super::expr::Expr;
use super::tensor::{Global, Tensor};
use super::types::Type;
use super::vector::{Comparison, Scalar, Vector};
use std::sync::LazyLock;

/// A node of a kernel whose statements have operations of the type `O`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node<O = Operation> {
    /// A statement.
    Call(Call<O>),
    /// A loop.
    Loop(Loop<O>),
    /// A branch on a condition of the run.
    If {
        /// The condition, which reads no memory.
        condition: Expr,
        body: Vec<Self>,
        otherwise: Vec<Self>,
    },
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
pub struct Loop<O = Operation> {
    pub variable: &'static str,
    pub from: Expr,
    pub bound: Expr,
    /// A condition under which each round starts, if there is one besides the bound.
    pub only: Option<Expr>,
    pub step: Step,
    /// Whether the loop runs at least once for all data.
    pub always: bool,
    pub sync: Vec<Sync>,
    pub body: Vec<Node<O>>,
}

/// The operation of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sets a variable.
    Set(Set, String, Expr),
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
    /// Transfers `n` elements from global memory to UB, or back if `out` is set.
    Copy { out: bool, ub: Tensor, gm: Global, n: Expr },
    /// Calls a function.
    Function(FunctionCall),
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<O = Operation> {
    pub operation: O,
    /// The synchronisation before the statement.
    pub sync: Vec<Sync>,
}

/// What a statement does with a value and a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// It defines the variable, which no other statement changes.
    Let,
    /// It defines the variable, which other statements change.
    Variable,
    /// It assigns the value.
    Assign,
    /// It adds the value.
    Increase,
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    pub function: &'static Function,
    pub args: Vec<Argument>,
    /// The variable that the result sets, if it is used.
    pub outcome: Option<(Set, String)>,
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
    /// A comparison of lanes.
    Comparison(Comparison),
}

/// An entity that a text refers to besides its variables and the buffers that it declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The definition, which is made when it is first used.
    pub definition: LazyLock<Definition>,
}

/// The parameters and the statements of a function.
#[derive(Clone, Debug, Default)]
pub struct Definition {
    pub params: Vec<Param>,
    /// The statements, with the synchronisation inside of the function.
    pub nodes: Vec<Node>,
}

/// A parameter of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    pub name: &'static str,
    pub ty: ParamType,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// A tensor in UB.
    Ub(Type),
    /// An array in global memory.
    Gm,
    /// A number or a condition.
    Scalar(Type),
    /// A comparison of lanes.
    Comparison,
}
