//! Builds the body of an emitted function: a method for each kind of statement.

use super::node::{
    Argument, Call, Copy, Definition, Function, If, Loop, Node, Operation, Outcome, Param,
    ParamType,
};
use super::tensor::{Buffer, Element, Global, Tensor, View};
use super::vector::{Comparison, Length, Rounding, Scalar, Type, Vector, VectorOp};
use crate::expr::{Expr, Relation};
use std::ops::{Add, Div, Mul, Rem, Sub};

/// A scalar variable of a function.
#[derive(Clone, Copy, Debug)]
pub struct Var(&'static str);

/// A function while it is built. A length counts elements of the destination, as the instruction sees
/// them.
#[derive(Debug, Default)]
pub struct Builder(Definition);

/// The constant with the lanes of a tile.
pub const TILE: Expr = Expr::Constant("TILE");
/// The constant with the slots of a table.
pub const SLOTS: Expr = Expr::Constant("SLOTS");

/// Arguments of a call from tensors and variables.
macro_rules! args {
    ($($arg:expr),*) => { [$($crate::ascend::aiv::Argument::from($arg.clone())),*] };
}
pub(crate) use args;

/// Returns a half as an operand.
pub fn half(value: impl Into<Expr>) -> Scalar {
    Scalar::new(value, Type::F16)
}

impl Builder {
    /// Returns the function that `body` writes.
    pub fn build(body: impl FnOnce(&mut Self)) -> Definition {
        let mut builder = Self::default();
        body(&mut builder);
        builder.0
    }

    fn param(&mut self, name: &'static str, ty: ParamType) {
        self.0.params.push(Param { name, ty });
    }

    /// Adds a comment.
    pub fn note(&mut self, note: &str) {
        self.0.nodes.push(Node::Note(note.into()));
    }

    /// Adds parameters in UB.
    pub fn tensors<const N: usize>(
        &mut self,
        element: Element,
        names: [&'static str; N],
    ) -> [Tensor; N] {
        names.map(|name| {
            self.param(name, ParamType::Ub(element));
            Tensor::named(name)
        })
    }

    /// Adds a parameter of 32-bit words in UB.
    pub fn words(&mut self, name: &'static str) -> Tensor {
        let [tensor] = self.tensors(Element::Word, [name]);
        tensor
    }

    /// Adds a parameter that is the mask of an instruction.
    pub fn mask(&mut self, name: &'static str) -> Tensor {
        let [tensor] = self.tensors(Element::Mask, [name]);
        tensor
    }

    /// Adds a parameter in global memory.
    pub fn global(&mut self, name: &'static str) -> Global {
        self.param(name, ParamType::Gm);
        Global { array: name.into(), plane: None, at: None }
    }

    /// Adds a parameter that is a comparison.
    pub fn comparison(&mut self, name: &'static str) -> Comparison {
        self.param(name, ParamType::Comparison);
        Comparison::Param(name)
    }

    /// Adds a scalar parameter.
    pub fn scalar(&mut self, name: &'static str, ty: Type) -> Var {
        self.param(name, ParamType::Scalar(ty));
        Var(name)
    }

    /// Adds parameters that are 32-bit numbers.
    pub fn numbers<const N: usize>(&mut self, names: [&'static str; N]) -> [Var; N] {
        names.map(|name| self.scalar(name, Type::I32))
    }

    /// Adds a parameter that is a 32-bit number.
    pub fn number(&mut self, name: &'static str) -> Var {
        self.scalar(name, Type::I32)
    }

    fn push(&mut self, operation: Operation) {
        self.0.nodes.push(Node::Call(Call::from(operation)));
    }

    /// Defines a variable.
    pub fn set(&mut self, name: &'static str, value: impl Into<Expr>) -> Var {
        self.push(Operation::Let(name.into(), value.into()));
        Var(name)
    }

    /// Defines a variable that [`Self::assign`] changes.
    pub fn variable(&mut self, name: &'static str, value: impl Into<Expr>) -> Var {
        self.push(Operation::Variable(name.into(), value.into()));
        Var(name)
    }

    /// Assigns a value to a variable.
    pub fn assign(&mut self, to: Var, value: impl Into<Expr>) {
        self.push(Operation::Assign(to.0.into(), value.into()));
    }

    /// Defines a variable as an element of a tensor.
    pub fn read(
        &mut self,
        (name, ty): (&'static str, Type),
        from: &Tensor,
        at: impl Into<Expr>,
    ) -> Var {
        let from = if ty == Type::U64 { from.clone().viewed_as(View::U64) } else { from.clone() };
        self.push(Operation::Read { name: name.into(), ty, from, at: at.into() });
        Var(name)
    }

    /// Assigns a value to an element of a tensor.
    pub fn write(&mut self, to: &Tensor, at: impl Into<Expr>, value: impl Into<Expr>) {
        self.push(Operation::Write { to: to.clone(), at: at.into(), value: value.into() });
    }

    /// Defines the variable `kept`: the number of elements that the last [`Self::compact`] kept.
    pub fn kept(&mut self) -> Var {
        self.push(Operation::Count("kept".into()));
        Var("kept")
    }

    /// Returns a value from the function.
    pub fn give(&mut self, value: impl Into<Expr>) {
        self.push(Operation::Return(value.into()));
    }

    /// Calls another function.
    pub fn call<const N: usize>(&mut self, function: &'static Function, args: [Argument; N]) {
        self.0.nodes.push(Node::Call(Call::of(function, args.into(), Outcome::None)));
    }

    /// Calls another function, and defines a variable as its result.
    pub fn result<const N: usize>(
        &mut self,
        name: &'static str,
        function: &'static Function,
        args: [Argument; N],
    ) -> Var {
        let outcome = Outcome::Let(name.into());
        self.0.nodes.push(Node::Call(Call::of(function, args.into(), outcome)));
        Var(name)
    }

    /// Copies `n` elements of global memory to UB.
    pub fn copy_in(&mut self, ub: Tensor, gm: &Global, at: impl Into<Expr>, n: impl Into<Expr>) {
        let gm = Global { at: Some(at.into()), ..gm.clone() };
        self.push(Operation::Copy(Copy { out: false, ub, gm, n: n.into() }));
    }

    fn block(&mut self, body: impl FnOnce(&mut Self)) -> Vec<Node> {
        let outer = std::mem::take(&mut self.0.nodes);
        body(self);
        std::mem::replace(&mut self.0.nodes, outer)
    }

    /// Runs `body` if a condition holds.
    pub fn when(&mut self, condition: Expr, body: impl FnOnce(&mut Self)) {
        self.choose(condition, body, |_| {});
    }

    /// Runs `body` if a condition holds, and else `otherwise`.
    pub fn choose(
        &mut self,
        condition: Expr,
        body: impl FnOnce(&mut Self),
        otherwise: impl FnOnce(&mut Self),
    ) {
        let (body, otherwise) = (self.block(body), self.block(otherwise));
        self.0.nodes.push(Node::If(If { condition, body, otherwise }));
    }

    /// Runs `body` once per round of a loop, with the loop variable.
    pub fn repeat(&mut self, head: Loop, body: impl FnOnce(&mut Self, Var)) {
        let variable = Var(head.variable);
        let body = self.block(|f| body(f, variable));
        self.0.nodes.push(Node::Loop(Loop { body, ..head }));
    }

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

impl Tensor {
    /// Returns a buffer as a function declares it.
    pub fn local(
        called: &'static str,
        name: &'static str,
        element: Element,
        len: impl Into<Expr>,
    ) -> Self {
        let buffer = Buffer::Placed { name, element, len: len.into(), called: Some(called) };
        Self { buffer, ..Self::named("") }
    }
}

impl Var {
    /// Returns the variable as a condition or number.
    pub fn expr(self) -> Expr {
        Expr::name(self.0)
    }

    /// Returns one of the 16-bit or 32-bit numbers of a 64-bit variable.
    pub fn lane(self, bits: u32, n: u32) -> Expr {
        Expr::Lane { of: self.0.into(), bits, n }
    }

    /// Returns the condition that the number is a multiple of `n`.
    pub fn is_multiple_of(self, n: i32) -> Expr {
        Expr::test(Relation::Equals, self % n, 0)
    }
}

impl From<Var> for Expr {
    fn from(var: Var) -> Self {
        var.expr()
    }
}

impl From<Var> for Argument {
    fn from(var: Var) -> Self {
        var.expr().into()
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident;)*) => {$(
        impl<T: Into<Expr>> $trait<T> for Var {
            type Output = Expr;
            fn $method(self, b: T) -> Expr {
                self.expr().$method(b)
            }
        }
    )*};
}

operators! { Add add; Sub sub; Mul mul; Div div; Rem rem; }
