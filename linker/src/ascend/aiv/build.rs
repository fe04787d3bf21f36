//! Builds the body of an emitted function: a method for each kind of statement.

use super::act::Sync;
use super::expr::{Expr, Operator, arithmetic};
use super::node::{
    Argument, Call, Definition, Function, Loop, Node, Operation, Param, ParamType, Set,
};
use super::tensor::{Buffer, Global, Tensor};
use super::types::Type;
use super::vector::{Comparison, Scalar};

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

/// Returns the arguments of a call. The name of a buffer stands for the buffer.
macro_rules! args {
    ($($arg:expr),* $(,)?) => { vec![$($crate::ascend::aiv::Argument::from($arg.clone())),*] };
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

    fn tensor(&mut self, name: &'static str, element: Type) -> Tensor {
        self.param(name, ParamType::Ub(element));
        Tensor::named(name)
    }

    /// Adds a parameter of 32-bit words in UB.
    pub fn words(&mut self, name: &'static str) -> Tensor {
        self.tensor(name, Type::I32)
    }

    /// Adds a parameter of 16-bit floats in UB.
    pub fn halves(&mut self, name: &'static str) -> Tensor {
        self.tensor(name, Type::F16)
    }

    /// Adds a parameter that is the mask of an instruction.
    pub fn mask(&mut self, name: &'static str) -> Tensor {
        self.tensor(name, Type::U8)
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

    fn scalar(&mut self, name: &'static str, ty: Type) -> Var {
        self.param(name, ParamType::Scalar(ty));
        Var(name)
    }

    /// Adds a parameter that is a 32-bit number.
    pub fn number(&mut self, name: &'static str) -> Var {
        self.scalar(name, Type::I32)
    }

    /// Adds a parameter that is a 16-bit float.
    pub fn half(&mut self, name: &'static str) -> Var {
        self.scalar(name, Type::F16)
    }

    /// Adds a parameter that is a condition.
    pub fn condition(&mut self, name: &'static str) -> Var {
        self.scalar(name, Type::Bool)
    }

    pub(super) fn push(&mut self, operation: Operation) {
        self.0.nodes.push(Node::Call(Call::from(operation)));
    }

    /// Defines a variable.
    pub fn set(&mut self, name: &'static str, value: impl Into<Expr>) -> Var {
        self.push(Operation::Set(Set::Let, name.into(), value.into()));
        Var(name)
    }

    /// Defines a variable that [`Self::assign`] changes.
    pub fn variable(&mut self, name: &'static str, value: impl Into<Expr>) -> Var {
        self.push(Operation::Set(Set::Variable, name.into(), value.into()));
        Var(name)
    }

    /// Assigns a value to a variable.
    pub fn assign(&mut self, to: Var, value: impl Into<Expr>) {
        self.push(Operation::Set(Set::Assign, to.0.into(), value.into()));
    }

    /// Defines a variable as an element of a tensor.
    pub fn read(
        &mut self,
        (name, ty): (&'static str, Type),
        from: &Tensor,
        at: impl Into<Expr>,
    ) -> Var {
        let from = if ty == Type::U64 { from.clone().viewed_as(ty) } else { from.clone() };
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
    pub fn call(&mut self, function: &'static Function, args: Vec<Argument>) {
        self.0.nodes.push(Node::Call(Call::of(function, args)));
    }

    /// Calls another function, and defines a variable as its result.
    pub fn result(
        &mut self,
        name: &'static str,
        function: &'static Function,
        args: Vec<Argument>,
    ) -> Var {
        let call = Call::of(function, args).sets_to(Set::Let, name.into());
        self.0.nodes.push(Node::Call(call));
        Var(name)
    }

    /// Copies `n` elements of global memory to UB, or back if `out` is set.
    pub fn copy(&mut self, out: bool, ub: Tensor, gm: Global, n: impl Into<Expr>) {
        self.push(Operation::Copy { out, ub, gm, n: n.into() });
    }

    /// Adds synchronisation that the analysis takes as it is.
    pub fn order(&mut self, sync: Sync) {
        self.0.nodes.push(Node::Call(Call { operation: Operation::Order, sync: vec![sync] }));
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
        self.0.nodes.push(Node::If { condition, body, otherwise });
    }

    /// Runs `body` once per round of a loop, with the loop variable.
    pub fn repeat(&mut self, head: Loop, body: impl FnOnce(&mut Self, Var)) {
        let variable = Var(head.variable);
        let body = self.block(|f| body(f, variable));
        self.0.nodes.push(Node::Loop(Loop { body, ..head }));
    }
}

impl Tensor {
    /// Returns a buffer as a function declares it.
    pub fn local(
        called: &'static str,
        name: &'static str,
        element: Type,
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

    /// Returns one of the two 32-bit numbers of a 64-bit variable.
    pub fn lane(self, n: u32) -> Expr {
        Expr::Lane { of: self.0.into(), n }
    }

    /// Returns the condition that the number is above another one.
    pub fn above(self, other: impl Into<Expr>) -> Expr {
        Expr::above(self, other)
    }

    /// Returns the condition that the number is a multiple of `n`.
    pub fn is_multiple_of(self, n: i32) -> Expr {
        Expr::binary(Operator::Equals, self % n, 0)
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

arithmetic!(Var);
