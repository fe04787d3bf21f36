//! Instructions of the vector unit in the body of an emitted function.

use super::build::{Builder, Var};
use super::node::Operation;
use super::tensor::{Tensor, View};
use super::vector::{Comparison, Length, Rounding, Scalar, Type, Vector, VectorOp};
use crate::expr::Expr;

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

    /// `to = from + scalar`.
    pub fn adds(
        &mut self,
        to: impl Into<Tensor>,
        from: impl Into<Tensor>,
        scalar: impl Into<Scalar>,
        n: impl Into<Expr>,
    ) {
        self.vector(VectorOp::Adds, to, [from.into()], Some(scalar.into()), n);
    }

    /// `to = from * scalar`.
    pub fn muls(&mut self, to: &Tensor, from: &Tensor, scalar: Var, n: impl Into<Expr>) {
        self.vector(VectorOp::Muls, to, [from.clone()], Some(scalar.into()), n);
    }

    /// `to = max(from, scalar)`.
    pub fn maxs(&mut self, to: &Tensor, from: &Tensor, scalar: Scalar, n: impl Into<Expr>) {
        self.vector(VectorOp::Maxs, to, [from.clone()], Some(scalar), n);
    }

    /// `to = a + b`.
    pub fn add(
        &mut self,
        to: impl Into<Tensor>,
        a: impl Into<Tensor>,
        b: impl Into<Tensor>,
        n: impl Into<Expr>,
    ) {
        self.vector(VectorOp::Add, to, [a.into(), b.into()], None, n);
    }

    /// `to = a - b`.
    pub fn sub(
        &mut self,
        to: impl Into<Tensor>,
        a: impl Into<Tensor>,
        b: impl Into<Tensor>,
        n: impl Into<Expr>,
    ) {
        self.vector(VectorOp::Sub, to, [a.into(), b.into()], None, n);
    }

    /// `to = a * b`.
    pub fn mul(&mut self, to: &Tensor, a: &Tensor, b: &Tensor, n: impl Into<Expr>) {
        self.vector(VectorOp::Mul, to, [a.clone(), b.clone()], None, n);
    }

    /// `to = max(a, b)`.
    pub fn max(&mut self, to: &Tensor, a: &Tensor, b: Tensor, n: impl Into<Expr>) {
        self.vector(VectorOp::Max, to, [a.clone(), b], None, n);
    }

    /// `to = from & word` for 32-bit lanes, rounded up to 64, with a block that repeats the word.
    pub fn and_word(&mut self, to: &Tensor, from: &Tensor, word: &Tensor, n: impl Into<Expr>) {
        self.vector(VectorOp::AndWord, to, [from.clone(), word.clone()], None, n);
    }

    /// `to = a | b` for 16-bit lanes.
    pub fn or(&mut self, to: Tensor, [a, b]: [&Tensor; 2], n: impl Into<Expr>) {
        let [to, a, b] = [&to, a, b].map(|t| t.clone().viewed_as(View::U16));
        self.vector(VectorOp::Or, to, [a, b], None, n);
    }

    /// `to = !from` for 16-bit lanes.
    pub fn not(&mut self, to: &Tensor, from: &Tensor, n: impl Into<Expr>) {
        let [to, from] = [to, from].map(|t| t.clone().viewed_as(View::U16));
        self.vector(VectorOp::Not, to, [from], None, n);
    }

    /// `to = from << by` for unsigned 32-bit lanes.
    pub fn shift_left(
        &mut self,
        to: &Tensor,
        from: &Tensor,
        by: impl Into<Expr>,
        n: impl Into<Expr>,
    ) {
        self.shift(VectorOp::ShiftLeft, [to, from], by, n);
    }

    /// `to = from >> by` for unsigned 32-bit lanes.
    pub fn shift_right(
        &mut self,
        to: &Tensor,
        from: &Tensor,
        by: impl Into<Expr>,
        n: impl Into<Expr>,
    ) {
        self.shift(VectorOp::ShiftRight, [to, from], by, n);
    }

    fn shift(
        &mut self,
        op: VectorOp,
        operands: [&Tensor; 2],
        by: impl Into<Expr>,
        n: impl Into<Expr>,
    ) {
        let [to, from] = operands.map(|t| t.clone().viewed_as(View::U32));
        self.vector(op, to, [from], Some(Scalar::new(by, Type::U32)), n);
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

    /// Copies the elements of `from` under a mask to the start of `to`, in order.
    pub fn compact(
        &mut self,
        to: impl Into<Tensor>,
        from: &Tensor,
        mask: &Tensor,
        n: impl Into<Expr>,
    ) {
        self.vector(VectorOp::Compact, to, [from.clone(), mask.clone()], None, n);
    }
}
