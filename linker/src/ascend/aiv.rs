//! A kernel for one vector core (AIV) before it is text: typed calls over named buffers, in loops
//! and branches.
//!
//! A call states what its units read and write, so that `sync` can order the units and
//! [`crate::ascend::ub`] can place the buffers. A call of an emitted function lists all that happens inside
//! the function, including its own synchronisation. This module contains no C++ spelling; `print`
//! prints the calls.

mod act;
mod call;
mod function;
mod node;
mod tensor;
mod vector;

pub use crate::expr::{Expr, Relation};
pub use act::{
    Act, BARRIER, CountRead, FROM_S, Part, Pipe, Place, SELECT_SCRATCH, Sync, TO_S, s, ub, v, word,
};
pub use call::{Call, Copy, Operation};
pub use function::{Argument, Function, FunctionCall, Outcome, Use};
pub use node::{If, Loop, Node, Width, syncs};
pub use tensor::{Buffer, Element, Global, Tensor, View};
pub use vector::{Comparison, Length, Rounding, Scalar, Type, Vector, VectorOp};
