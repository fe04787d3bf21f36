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
pub(crate) mod expr;
mod function;
mod instructions;
mod node;
mod tensor;
mod types;
mod vector;
mod walk;

pub use act::{Act, Part, Pipe, Place, Sync, ub, word};
pub(crate) use build::args;
pub use build::{Builder, SLOTS, TILE, half};
pub use expr::{Expr, Operator};
pub use function::uses;
pub use node::{
    Argument, Call, Definition, Function, FunctionCall, Loop, Node, Operation, Param, ParamType,
    Set, Step, Use, Width,
};
pub use tensor::{Buffer, Global, Temp, Tensor};
pub use types::Type;
pub use vector::{Comparison, Rounding, Scalar, Vector, VectorOp, aligned_lanes, lanes};
pub use walk::{names_read, syncs};
