//! The instructions of the vector unit.

use super::act::{Act, Pipe, SELECT_SCRATCH, ub};
use super::tensor::Tensor;
use crate::expr::Expr;

/// A comparison of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The lanes are equal.
    Equal,
    /// The first lane is smaller.
    Less,
}

/// The rounding of a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// No rounding: the target type represents every value.
    Exact,
    /// To the nearest number, with ties to even.
    Nearest,
}

/// A kind of instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the AscendC call of the same name")]
pub enum VectorOp {
    Add,
    Sub,
    Mul,
    Adds,
    Muls,
    Maxs,
    And,
    Or,
    Not,
    ShiftLeft,
    ShiftRight,
    Select,
    Compare(Comparison),
    Compares(Comparison),
    Duplicate,
    Cast(Rounding),
    Gather,
}

impl VectorOp {
    /// Returns whether the destination may be one of the sources.
    pub fn in_place(self) -> bool {
        match self {
            Self::Add | Self::Sub | Self::Mul | Self::Adds | Self::Muls | Self::Maxs => true,
            Self::And | Self::Or | Self::Not | Self::ShiftLeft | Self::ShiftRight => true,
            Self::Select => true,
            Self::Compare(_) | Self::Compares(_) | Self::Duplicate => false,
            Self::Cast(_) | Self::Gather => false,
        }
    }
}

/// The number of elements that an instruction covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Length {
    /// The live lanes of the tile.
    Lanes,
    /// The 16-bit halves of the live lanes.
    HalfLanes,
    /// The live lanes, rounded up to whole repeats.
    Repeats,
    /// The 16-bit words of a mask over whole repeats.
    MaskWords,
    /// A number given by an expression.
    Of(Expr),
}

impl Length {
    /// Returns the variable that holds the number, if there is one.
    pub fn variable(&self) -> Option<&'static str> {
        match self {
            Self::Lanes | Self::HalfLanes => Some("lanes"),
            Self::Repeats | Self::MaskWords => Some("alignedLanes"),
            Self::Of(_) => None,
        }
    }

    /// Returns whether the number is rounded up to whole repeats.
    pub fn whole_repeats(&self) -> bool {
        matches!(self, Self::Repeats | Self::MaskWords)
    }
}

/// The type of a scalar operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A signed 32-bit number.
    I32,
    /// An unsigned 32-bit number.
    U32,
    /// An unsigned 16-bit number.
    U16,
    /// A 16-bit float.
    F16,
}

/// A scalar operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// The value.
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
    /// The kind of instruction.
    pub op: VectorOp,
    /// The destination.
    pub to: Tensor,
    /// The sources.
    pub from: Vec<Tensor>,
    /// The scalar operand.
    pub scalar: Option<Scalar>,
    /// The number of elements.
    pub over: Length,
}

impl Vector {
    /// Returns the effect of the instruction. `Select` also overwrites the end of UB.
    pub fn act(&self) -> Act {
        let mut writes = vec![self.to.place()];
        if self.op == VectorOp::Select {
            writes.push(ub(SELECT_SCRATCH));
        }
        Act::Use { pipe: Pipe::V, reads: self.from.iter().map(Tensor::place).collect(), writes }
    }
}
