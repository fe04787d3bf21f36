//! The instructions of the vector unit.

use super::act::{Act, Pipe, Place, SELECT_SCRATCH, ub};
use super::expr::Expr;
use super::tensor::Tensor;
use super::types::Type;

/// A comparison of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    GreaterOrEqual,
    /// The comparison that a parameter of a function names.
    Param(&'static str),
}

/// The rounding of a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// No rounding: the target type represents every value.
    Exact,
    /// To the nearest number, with ties to even.
    Nearest,
}

/// A kind of instruction: the call of the same name, of AscendC or of `avsg_instructions.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorOp {
    /// `to = a + b`.
    Add,
    /// `to = a - b`.
    Sub,
    /// `to = a * b`.
    Mul,
    /// `to = max(a, b)`.
    Max,
    /// `to = from + scalar`.
    Adds,
    /// `to = from * scalar`.
    Muls,
    /// `to = max(from, scalar)`.
    Maxs,
    /// `to = a & b` for 16-bit lanes.
    And,
    /// `to = a | b` for 16-bit lanes.
    Or,
    /// `to = !from` for 16-bit lanes.
    Not,
    /// `to = from & word` for 32-bit lanes, rounded up to 64, with a block that repeats the word.
    AndWord,
    /// `to = from | word`, as `AndWord`.
    OrWord,
    /// `to = from << scalar` for unsigned 32-bit lanes.
    ShiftLeft,
    /// `to = from >> scalar`, which keeps the sign of signed 32-bit lanes.
    ShiftRight,
    /// `to = mask ? a : b`, of which `b` may be a scalar.
    Select,
    /// Copies the elements of `from` under a mask to the start of `to`, in order.
    Compact,
    /// Sets the bits of the mask `to` for the lanes of `a` that compare with those of `b`.
    Compare(Comparison),
    /// Sets the bits of the mask `to` for the lanes of `from` that compare with a scalar.
    Compares(Comparison),
    /// `to = scalar`.
    Duplicate,
    /// `to = from` in the element type of `to`.
    Cast(Rounding),
    /// `to[i] = from[offset[i]]` with offsets in bytes.
    Gather,
}

impl VectorOp {
    /// Returns whether the destination may be one of the sources.
    pub fn in_place(self) -> bool {
        let apart = matches!(self, Self::Compact | Self::Duplicate | Self::Gather);
        !apart && !matches!(self, Self::Compare(_) | Self::Compares(_) | Self::Cast(_))
    }
}

/// Returns the number of live lanes of the tile.
pub fn lanes() -> Expr {
    Expr::name("lanes")
}

/// Returns the number of live lanes, rounded up to whole repeats of an instruction.
pub fn aligned_lanes() -> Expr {
    Expr::name("alignedLanes")
}

/// A scalar operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    pub value: Expr,
    /// The type that the operand is passed as.
    pub ty: Type,
}

impl Scalar {
    /// Returns a scalar operand.
    pub fn new(value: impl Into<Expr>, ty: Type) -> Self {
        Self { value: value.into(), ty }
    }
}

/// An instruction with its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    pub op: VectorOp,
    pub to: Tensor,
    pub from: Vec<Tensor>,
    pub scalar: Option<Scalar>,
    /// The number of elements that it covers.
    pub n: Expr,
}

impl Vector {
    /// Returns the effect of the instruction. `Select` also overwrites the end of UB, and `Compact` the
    /// register of counts.
    pub fn act(&self) -> Act {
        let mut writes = vec![self.to.place_of(Some(&self.n))];
        match self.op {
            VectorOp::Select => writes.push(ub(SELECT_SCRATCH)),
            VectorOp::Compact => writes.push(Place::Count),
            _ => {}
        }
        let n = match self.op {
            // The operands have lengths of their own.
            VectorOp::Gather | VectorOp::Select | VectorOp::Compact => None,
            _ => Some(&self.n),
        };
        let reads = self.from.iter().map(|tensor| tensor.place_of(n)).collect();
        Act::of(Pipe::V, reads, writes)
    }
}

impl<T: Into<Expr>> From<T> for Scalar {
    fn from(value: T) -> Self {
        Self::new(value, Type::I32)
    }
}
