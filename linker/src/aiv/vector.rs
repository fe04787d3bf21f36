//! Instructions of the vector unit.

use super::act::{Act, Pipe, SELECT_SCRATCH, ub};
use super::expr::Expr;
use super::tensor::Tensor;

/// How lanes are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Both are the same.
    Equal,
    /// The first one is smaller.
    Less,
}

/// How a cast rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Not at all: every value has its own.
    Exact,
    /// To the nearest number, to the even one of two.
    Nearest,
}

/// Which instruction.
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
    CompareScalar(Comparison),
    Duplicate,
    Cast(Rounding),
    Gather,
    CreateVecIndex,
}

impl VectorOp {
    /// Whether it may write where it reads.
    pub fn in_place(self) -> bool {
        match self {
            Self::Add | Self::Sub | Self::Mul | Self::Adds | Self::Muls | Self::Maxs => true,
            Self::And | Self::Or | Self::Not | Self::ShiftLeft | Self::ShiftRight => true,
            Self::Select => true,
            Self::Compare(_) | Self::CompareScalar(_) | Self::Duplicate => false,
            Self::Cast(_) | Self::Gather | Self::CreateVecIndex => false,
        }
    }
}

/// Over how many elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Length {
    /// The live lanes of the tile.
    Lanes,
    /// Their 16-bit halves.
    HalfLanes,
    /// The lanes up to a whole repeat.
    Repeats,
    /// The 16-bit words of a mask over those.
    MaskWords,
    /// A number of its own.
    Of(Expr),
}

impl Length {
    /// The variable that holds it.
    pub fn variable(&self) -> Option<&'static str> {
        match self {
            Self::Lanes | Self::HalfLanes => Some("lanes"),
            Self::Repeats | Self::MaskWords => Some("alignedLanes"),
            Self::Of(_) => None,
        }
    }

    /// Whether it needs to know where the last repeat ends.
    pub fn whole_repeats(&self) -> bool {
        matches!(self, Self::Repeats | Self::MaskWords)
    }
}

/// The type of a scalar operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A 32-bit number.
    I32,
    /// A 32-bit number without a sign.
    U32,
    /// A 16-bit number without a sign.
    U16,
    /// A 16-bit float.
    F16,
}

/// A scalar operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// Its value.
    pub value: Expr,
    /// The type that it is passed as.
    pub ty: Type,
}

impl Scalar {
    /// A scalar of a type.
    pub fn new(value: impl Into<Expr>, ty: Type) -> Self {
        Self { value: value.into(), ty }
    }
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Which.
    pub op: VectorOp,
    /// What it writes.
    pub to: Tensor,
    /// What it reads.
    pub from: Vec<Tensor>,
    /// Its scalar operand.
    pub scalar: Option<Scalar>,
    /// Its length.
    pub over: Length,
}

impl Vector {
    /// What happens: `Select` writes over the end of UB, too.
    pub fn act(&self) -> Act {
        let mut writes = vec![self.to.place()];
        if self.op == VectorOp::Select {
            writes.push(ub(SELECT_SCRATCH));
        }
        Act::Use { pipe: Pipe::V, reads: self.from.iter().map(Tensor::place).collect(), writes }
    }
}
