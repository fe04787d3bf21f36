//! Instructions of the vector unit in the body of an emitted function.

use super::build::Builder;
use super::node::Operation;
use super::tensor::{Tensor, View};
use super::vector::{Comparison, Length, Rounding, Scalar, Type, Vector, VectorOp, instructions};
use crate::expr::Expr;

/// Defines a method for each instruction of the first list.
macro_rules! methods {
    (
        {$(
            $(#[doc = $doc:literal])*
            $place:ident $op:ident: $method:ident($($from:ident),+ $(; $scalar:ident $(: $ty:ident)?)?)
                $(as $view:ident)?;
        )*}
        $others:tt
    ) => {
        impl Builder {
            $($(#[doc = $doc])*
            pub fn $method(
                &mut self,
                to: impl Into<Tensor>,
                $($from: impl Into<Tensor>,)+
                $($scalar: impl Into<Scalar>,)?
                n: impl Into<Expr>,
            ) {
                let view = |tensor: Tensor| tensor$(.viewed_as(View::$view))?;
                let from = [$(view($from.into())),+];
                let mut scalars = [$(Scalar { $(ty: Type::$ty,)? ..$scalar.into() })?].into_iter();
                self.vector(VectorOp::$op, view(to.into()), from, scalars.next(), n);
            })*
        }
    };
}
instructions!(methods);

impl Builder {
    fn vector<const N: usize>(
        &mut self,
        op: VectorOp,
        to: impl Into<Tensor>,
        from: [Tensor; N],
        scalar: Option<Scalar>,
        n: impl Into<Expr>,
    ) {
        let (to, from, over) = (to.into(), from.into(), Length::Of(n.into()));
        self.push(Operation::Vector(Vector { op, to, from, scalar, over }));
    }

    /// `to = scalar`.
    pub fn duplicate(&mut self, to: impl Into<Tensor>, scalar: Scalar, n: impl Into<Expr>) {
        self.vector(VectorOp::Duplicate, to, [], Some(scalar), n);
    }

    /// The sign of each 32-bit lane: -1 or 0.
    pub fn sign(&mut self, to: &Tensor, from: &Tensor, n: impl Into<Expr>) {
        self.vector(VectorOp::ShiftRight, to, [from.clone()], Some(31.into()), n);
    }

    /// `to = from` in the element type of `to`.
    pub fn cast(
        &mut self,
        to: impl Into<Tensor>,
        from: impl Into<Tensor>,
        how: Rounding,
        n: impl Into<Expr>,
    ) {
        self.vector(VectorOp::Cast(how), to, [from.into()], None, n);
    }

    /// `to[i] = from[offset[i]]` with offsets in bytes.
    pub fn gather(
        &mut self,
        to: impl Into<Tensor>,
        from: &Tensor,
        offset: &Tensor,
        n: impl Into<Expr>,
    ) {
        let offset = offset.clone().viewed_as(View::U32);
        self.vector(VectorOp::Gather, to, [from.clone(), offset], Some(0.into()), n);
    }

    /// Sets the bits of the mask `to` for the lanes of `from` that compare with a scalar.
    pub fn compares(
        &mut self,
        to: impl Into<Tensor>,
        from: impl Into<Tensor>,
        (how, scalar): (Comparison, Scalar),
        n: impl Into<Expr>,
    ) {
        self.vector(VectorOp::Compares(how), to, [from.into()], Some(scalar), n);
    }

    /// Sets the bits of the mask `to` for the lanes of `a` and `b` that are equal.
    pub fn compare_equal(&mut self, to: &Tensor, a: &Tensor, b: &Tensor, n: impl Into<Expr>) {
        let equal = VectorOp::Compare(Comparison::Equal);
        self.vector(equal, to, [a.clone(), b.clone()], None, n);
    }

    /// `to = mask ? yes : 0` for 32-bit lanes.
    pub fn select_or_zero(&mut self, to: &Tensor, mask: &Tensor, yes: &Tensor, n: impl Into<Expr>) {
        let [to, yes] = [to, yes].map(|t| t.clone().viewed_as(View::F32));
        let zero = Some(Scalar::new(0, Type::F32));
        self.vector(VectorOp::Select, to, [mask.clone(), yes], zero, n);
    }

    /// `to = mask ? yes : no`.
    pub fn select(
        &mut self,
        to: impl Into<Tensor>,
        mask: &Tensor,
        [yes, no]: [Tensor; 2],
        n: impl Into<Expr>,
    ) {
        self.vector(VectorOp::Select, to, [mask.clone(), yes, no], None, n);
    }
}
