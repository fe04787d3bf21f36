//! A kernel for one vector core (AIV) before it is text: typed calls over named buffers, in loops
//! and branches.
//!
//! A call states what its units read and write, so that `sync` can order the units and
//! [`crate::ascend::ub`] can place the buffers. A call of an emitted function lists all that happens inside
//! the function, including its own synchronisation. An instruction has the name that it has in
//! AscendC; all other C++ spelling is in `print`.

mod act;
mod build;
mod call;
mod effects;
mod function;
mod instructions;
mod node;
mod tensor;
mod vector;
mod walk;

pub use crate::expr::{Expr, Relation};
pub use act::{Act, Part, Pipe, Place, SELECT_SCRATCH, Sync, ub, word};
pub(crate) use build::args;
pub use build::{Builder, SLOTS, TILE, half};
pub use effects::Statements;
pub use node::{
    Argument, Call, Copy, Definition, Function, FunctionCall, If, Loop, Node, Operation, Outcome,
    Param, ParamType, Step, Use, Width,
};
pub use tensor::{Buffer, Element, Global, Temp, Tensor, View};
pub use vector::{Comparison, Length, Rounding, Scalar, Type, Vector, VectorOp};
pub use walk::syncs;
