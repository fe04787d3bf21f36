//! The instructions of the vector unit.

use super::act::{Act, Pipe, Place, SELECT_SCRATCH, ub};
use super::tensor::Tensor;
use crate::expr::Expr;

/// A comparison of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
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

/// Calls a macro with the table of the vector unit's instructions: each is the call of the same name, of
/// AscendC or of `avsg_instructions.h`. The destination of an instruction that is `in_place` may be one of its
/// sources. The first list has those that [`Builder`](super::Builder) has a method for, with the method's
/// operands: the sources, the scalar and its type, and the view of all tensors.
macro_rules! instructions {
    ($with:ident) => {
        $with! {
            {
                /// `to = a + b`.
                in_place Add: add(a, b);
                /// `to = a - b`.
                in_place Sub: sub(a, b);
                /// `to = a * b`.
                in_place Mul: mul(a, b);
                /// `to = max(a, b)`.
                in_place Max: max(a, b);
                /// `to = from + scalar`.
                in_place Adds: adds(from; scalar);
                /// `to = from * scalar`.
                in_place Muls: muls(from; scalar);
                /// `to = max(from, scalar)`.
                in_place Maxs: maxs(from; scalar);
                /// `to = a | b` for 16-bit lanes.
                in_place Or: or(a, b) as U16;
                /// `to = !from` for 16-bit lanes.
                in_place Not: not(from) as U16;
                /// `to = from & word` for 32-bit lanes, rounded up to 64, with a block that repeats the
                /// word.
                in_place AndWord: and_word(from, word);
                /// `to = from | word`, as `AndWord`.
                in_place OrWord: or_word(from, word);
                /// `to = from << by` for unsigned 32-bit lanes.
                in_place ShiftLeft: shift_left(from; by: U32) as U32;
                /// `to = from >> by`, here for unsigned 32-bit lanes.
                in_place ShiftRight: shift_right(from; by: U32) as U32;
                /// Copies the elements of `from` under a mask to the start of `to`, in order.
                apart Compact: compact(from, mask);
            }
            {
                /// `to = a & b` for 16-bit lanes.
                in_place And;
                /// `to = mask ? a : b`, of which `b` may be a scalar.
                in_place Select;
                /// Sets the bits of the mask `to` for the lanes of `a` that compare with those of `b`.
                apart Compare(Comparison);
                /// Sets the bits of the mask `to` for the lanes of `from` that compare with a scalar.
                apart Compares(Comparison);
                /// `to = scalar`.
                apart Duplicate;
                /// `to = from` in the element type of `to`.
                apart Cast(Rounding);
                /// `to[i] = from[offset[i]]` with offsets in bytes.
                apart Gather;
            }
        }
    };
}
pub(super) use instructions;

macro_rules! is_in_place {
    (in_place) => {
        true
    };
    (apart) => {
        false
    };
}

macro_rules! define {
    (
        {$($(#[doc = $doc:literal])* $place:ident $op:ident: $method:ident $operands:tt $(as $view:ident)?;)*}
        {$($(#[doc = $more:literal])* $where:ident $other:ident $(($of:ty))?;)*}
    ) => {
        /// A kind of instruction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum VectorOp {
            $($(#[doc = $doc])* $op,)*
            $($(#[doc = $more])* $other $(($of))?,)*
        }

        impl VectorOp {
            /// Returns the name of the call.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$op => stringify!($op),)*
                    $(Self::$other { .. } => stringify!($other),)*
                }
            }

            /// Returns whether the destination may be one of the sources.
            pub fn in_place(self) -> bool {
                match self {
                    $(Self::$op => is_in_place!($place),)*
                    $(Self::$other { .. } => is_in_place!($where),)*
                }
            }
        }
    };
}
instructions!(define);

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
#[expect(missing_docs, reason = "the names say it")]
pub enum Type {
    I32,
    U32,
    U16,
    F16,
    F32,
    I16,
    U64,
    /// A condition.
    Bool,
}

/// A scalar operand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
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
#[expect(missing_docs, reason = "the names say it")]
pub struct Vector {
    pub op: VectorOp,
    pub to: Tensor,
    pub from: Vec<Tensor>,
    pub scalar: Option<Scalar>,
    pub over: Length,
}

impl Vector {
    /// Returns the effect of the instruction. `Select` also overwrites the end of UB, and `Compact` the
    /// register of counts.
    pub fn act(&self) -> Act {
        let n = if let Length::Of(n) = &self.over { Some(n) } else { None };
        let mut writes = vec![self.to.place_of(n)];
        match self.op {
            VectorOp::Select => writes.push(ub(SELECT_SCRATCH)),
            VectorOp::Compact => writes.push(Place::Count),
            _ => {}
        }
        let reads = match self.op {
            // The operands have lengths of their own.
            VectorOp::Gather | VectorOp::Select | VectorOp::Compact => None,
            _ => n,
        };
        let reads = self.from.iter().map(|tensor| tensor.place_of(reads)).collect();
        Act::Use { pipe: Pipe::V, reads, writes }
    }
}

impl<T: Into<Expr>> From<T> for Scalar {
    fn from(value: T) -> Self {
        Self::new(value, Type::I32)
    }
}
