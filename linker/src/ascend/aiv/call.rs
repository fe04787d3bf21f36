//! The operands of a statement.

use super::expr::Expr;
use super::node::{Argument, Call, Function, FunctionCall, Operation, Set};
use super::tensor::{Buffer, Global, Tensor};
use super::vector::Vector;

impl From<Operation> for Call {
    fn from(operation: Operation) -> Self {
        Self { operation, sync: Vec::new() }
    }
}

impl From<Vector> for Call {
    fn from(vector: Vector) -> Self {
        Self::from(Operation::Vector(vector))
    }
}

impl Call {
    /// Returns a call of a function whose result is not used.
    pub fn of(function: &'static Function, args: Vec<Argument>) -> Self {
        let (outcome, words) = (None, Vec::new());
        Self::from(Operation::Function(FunctionCall { function, args, outcome, words }))
    }

    /// Sets a variable to the result of the function.
    #[must_use]
    pub fn sets_to(mut self, how: Set, variable: String) -> Self {
        if let Operation::Function(call) = &mut self.operation {
            call.outcome = Some((how, variable));
        }
        self
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

    /// Returns the tensors among the operands.
    pub fn tensors(&self) -> Vec<&Tensor> {
        match &self.operation {
            Operation::Vector(vector) => [&vector.to].into_iter().chain(&vector.from).collect(),
            Operation::Copy { ub: tensor, .. }
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
            Operation::Copy { ub, .. } => vec![ub],
            Operation::Function(call) => {
                call.args.iter_mut().filter_map(Argument::tensor_mut).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the scalar expressions of the statement.
    pub fn expressions(&self) -> Vec<&Expr> {
        let mut all = Vec::new();
        match &self.operation {
            Operation::Set(.., value) | Operation::Return(value) => all.push(value),
            Operation::Read { at, .. } => all.push(at),
            Operation::Write { at, value, .. } => all.extend([at, value]),
            Operation::Count(_) | Operation::Leave | Operation::Order | Operation::WaitForAll => {}
            Operation::Vector(vector) => {
                all.extend(vector.scalar.iter().map(|s| &s.value).chain([&vector.n]));
            }
            Operation::Copy { gm: Global { at, .. }, n, .. } => {
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
        all
    }

    /// Returns the variable that the statement sets.
    pub fn sets(&self) -> Option<&str> {
        match &self.operation {
            Operation::Set(_, name, _) | Operation::Count(name) => Some(name),
            Operation::Read { name, .. } => Some(name),
            Operation::Function(call) => Some(&call.outcome.as_ref()?.1),
            _ => None,
        }
    }
}
