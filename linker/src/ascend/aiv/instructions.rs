//! Instructions of the vector unit in the body of an emitted function.

use super::build::Builder;
use super::expr::Expr;
use super::node::Operation;
use super::tensor::Tensor;
use super::types::Type;
use super::vector::VectorOp::{self, *};
use super::vector::{Comparison, Rounding, Scalar, Vector};

/// Defines a method for each of these instructions, with its sources, its scalar and the type as which that
/// is passed, and the type as which the bits of all its tensors are interpreted.
macro_rules! methods {
    ($($method:ident($($from:ident),+ $(; $scalar:ident $(: $ty:ident)?)?) $(as $view:ident)? = $op:expr;)*) => {
        impl Builder {
            $(/// Issues the instruction on `n` elements.
            pub fn $method(
                &mut self,
                to: impl Into<Tensor>,
                $($from: impl Into<Tensor>,)+
                $($scalar: impl Into<Scalar>,)?
                n: impl Into<Expr>,
            ) {
                let view = |tensor: Tensor| tensor$(.viewed_as(Type::$view))?;
                let from = [$(view($from.into())),+];
                let mut scalars = [$(Scalar { $(ty: Type::$ty,)? ..$scalar.into() })?].into_iter();
                self.vector($op, view(to.into()), from, scalars.next(), n);
            })*
        }
    };
}

methods! {
    add(a, b) = Add;
    sub(a, b) = Sub;
    mul(a, b) = Mul;
    max(a, b) = Max;
    adds(from; scalar) = Adds;
    muls(from; scalar) = Muls;
    maxs(from; scalar) = Maxs;
    or(a, b) as U16 = Or;
    not(from) as U16 = Not;
    and_word(from, word) = AndWord;
    shift_left(from; by: U32) as U32 = ShiftLeft;
    shift_right(from; by: U32) as U32 = ShiftRight;
    select(mask, yes, no) = Select;
    compact(from, mask) = Compact;
    compare_equal(a, b) = Compare(Comparison::Equal);
    cast_exactly(from) = Cast(Rounding::Exact);
    cast_to_nearest(from) = Cast(Rounding::Nearest);
}

impl Builder {
    fn vector<const N: usize>(
        &mut self,
        op: VectorOp,
        to: impl Into<Tensor>,
        from: [Tensor; N],
        scalar: Option<Scalar>,
        n: impl Into<Expr>,
    ) {
        let (to, from, n) = (to.into(), from.into(), n.into());
        self.push(Operation::Vector(Vector { op, to, from, scalar, n }));
    }

    /// `to = scalar`.
    pub fn duplicate(&mut self, to: impl Into<Tensor>, scalar: Scalar, n: impl Into<Expr>) {
        self.vector(Duplicate, to, [], Some(scalar), n);
    }

    /// The sign of each 32-bit lane: -1 or 0.
    pub fn sign(&mut self, to: &Tensor, from: &Tensor, n: impl Into<Expr>) {
        self.vector(ShiftRight, to, [from.clone()], Some(31.into()), n);
    }

    /// `to[i] = from[offset[i]]` with offsets in bytes.
    pub fn gather(
        &mut self,
        to: impl Into<Tensor>,
        from: &Tensor,
        offset: &Tensor,
        n: impl Into<Expr>,
    ) {
        let offset = offset.clone().viewed_as(Type::U32);
        self.vector(Gather, to, [from.clone(), offset], Some(0.into()), n);
    }

    /// Sets the bits of the mask `to` for the lanes of `from` that compare with a scalar.
    pub fn compares(
        &mut self,
        to: impl Into<Tensor>,
        from: impl Into<Tensor>,
        (how, scalar): (Comparison, Scalar),
        n: impl Into<Expr>,
    ) {
        self.vector(Compares(how), to, [from.into()], Some(scalar), n);
    }

    /// `to = mask ? yes : 0` for 32-bit lanes.
    pub fn select_or_zero(&mut self, to: &Tensor, mask: &Tensor, yes: &Tensor, n: impl Into<Expr>) {
        let [to, yes] = [to, yes].map(|t| t.clone().viewed_as(Type::F32));
        let zero = Some(Scalar::new(0, Type::F32));
        self.vector(Select, to, [mask.clone(), yes], zero, n);
    }
}
