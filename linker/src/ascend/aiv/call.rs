//! The operands of a statement.

use super::node::{Argument, Call, Copy, Function, FunctionCall, Operation, Outcome};
use super::tensor::{Buffer, Global, Tensor};
use super::vector::Length;
use crate::expr::Expr;

impl From<Operation> for Call {
    fn from(operation: Operation) -> Self {
        Self { operation, sync: Vec::new() }
    }
}

impl Call {
    /// Returns a call of a function.
    pub fn of(function: &'static Function, args: Vec<Argument>, outcome: Outcome) -> Self {
        let words = Vec::new();
        Self::from(Operation::Function(FunctionCall { function, args, outcome, words }))
    }

    /// Adds words whose blocks the function reads by the names of constants.
    #[must_use]
    pub fn reading(mut self, words: impl IntoIterator<Item = u32>) -> Self {
        if let Operation::Function(call) = &mut self.operation {
            call.words.extend(words);
        }
        self
    }

    /// Returns the call of a function, if the statement is one.
    pub fn function(&self) -> Option<&FunctionCall> {
        if let Operation::Function(call) = &self.operation { Some(call) } else { None }
    }

    /// Returns whether the destination may be one of the sources.
    pub fn in_place(&self) -> bool {
        match &self.operation {
            Operation::Vector(vector) => vector.op.in_place(),
            _ => false,
        }
    }

    /// Returns the tensors among the operands.
    pub fn tensors(&self) -> Vec<&Tensor> {
        match &self.operation {
            Operation::Vector(vector) => [&vector.to].into_iter().chain(&vector.from).collect(),
            Operation::Copy(Copy { ub: tensor, .. })
            | Operation::Read { from: tensor, .. }
            | Operation::Write { to: tensor, .. } => vec![tensor],
            Operation::Function(call) => call.args.iter().filter_map(Argument::tensor).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the tensors among the operands for changing them.
    pub fn tensors_mut(&mut self) -> Vec<&mut Tensor> {
        match &mut self.operation {
            Operation::Vector(vector) => {
                [&mut vector.to].into_iter().chain(&mut vector.from).collect()
            }
            Operation::Copy(copy) => vec![&mut copy.ub],
            Operation::Function(call) => {
                call.args.iter_mut().filter_map(Argument::tensor_mut).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the lengths among the operands.
    pub fn lengths(&self) -> Vec<&Length> {
        match &self.operation {
            Operation::Vector(vector) => vec![&vector.over],
            Operation::Function(call) => call.args.iter().filter_map(Argument::length).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the words whose blocks the statement reads.
    pub fn words(&self) -> Vec<u32> {
        let mut all: Vec<u32> = Vec::new();
        for tensor in self.tensors() {
            all.extend(if let Buffer::Word(bits) = tensor.buffer { Some(bits) } else { None });
        }
        if let Some(call) = self.function() {
            all.extend(call.function.words().into_iter().chain(call.words.iter().copied()));
        }
        all
    }

    /// Returns the scalar expressions of the statement.
    pub fn expressions(&self) -> Vec<&Expr> {
        let mut all = Vec::new();
        match &self.operation {
            Operation::Let(_, value) | Operation::Assign(_, value) => all.push(value),
            Operation::Variable(_, value) => all.push(value),
            Operation::Return(value) | Operation::Read { at: value, .. } => all.push(value),
            Operation::Write { at, value, .. } => all.extend([at, value]),
            Operation::Count(_) | Operation::Leave | Operation::Order => {}
            Operation::WaitForAll => {}
            Operation::Vector(vector) => all.extend(vector.scalar.as_ref().map(|s| &s.value)),
            Operation::Copy(Copy { gm: Global { at, .. }, n, .. }) => {
                all.extend(at.as_ref().into_iter().chain([n]));
            }
            Operation::Function(call) => {
                all.extend(call.args.iter().filter_map(Argument::expression));
            }
        }
        for tensor in self.tensors() {
            all.extend(&tensor.at);
            if let Buffer::Placed { len, .. } = &tensor.buffer {
                all.push(len);
            }
        }
        for length in self.lengths() {
            if let Length::Of(n) = length {
                all.push(n);
            }
        }
        all
    }

    /// Returns the variable that the statement sets.
    pub fn sets(&self) -> Option<&str> {
        match &self.operation {
            Operation::Let(name, _) | Operation::Assign(name, _) => Some(name),
            Operation::Variable(name, _) | Operation::Count(name) => Some(name),
            Operation::Read { name, .. } => Some(name),
            Operation::Function(FunctionCall { outcome, .. }) => match outcome {
                Outcome::Let(name) | Outcome::Assign(name) | Outcome::Increase(name) => Some(name),
                Outcome::None => None,
            },
            _ => None,
        }
    }
}
