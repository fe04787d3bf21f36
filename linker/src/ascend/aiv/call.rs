//! The statements of a kernel.

use super::act::{Act, Pipe, Place, Sync, ub};
use super::function::{Argument, FunctionCall, Outcome};
use super::tensor::{Global, Tensor};
use super::vector::{Length, Vector};
use crate::expr::Expr;

/// A transfer between global memory and UB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Whether the direction is from UB to global memory.
    pub out: bool,
    /// The operand in UB.
    pub ub: Tensor,
    /// The operand in global memory.
    pub gm: Global,
    /// The number of elements.
    pub n: Expr,
}

/// The operation of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Defines a variable.
    Let(String, Expr),
    /// Assigns a value to a variable.
    Assign(String, Expr),
    /// Assigns a value to a word of a line in UB.
    SetWord {
        /// The line.
        line: String,
        /// The index of the word.
        at: Expr,
        /// The value.
        value: Expr,
    },
    /// Issues an instruction of the vector unit.
    Vector(Vector),
    /// Issues a transfer.
    Copy(Copy),
    /// Calls a function.
    Function(FunctionCall),
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub operation: Operation,
    /// The synchronisation before the statement.
    pub sync: Vec<Sync>,
}

impl From<Operation> for Call {
    fn from(operation: Operation) -> Self {
        Self { operation, sync: Vec::new() }
    }
}

impl Call {
    /// Returns the effects of the statement, in order.
    pub fn acts(&self) -> Vec<Act> {
        let one = |pipe, reads, writes| vec![Act::Use { pipe, reads, writes }];
        match &self.operation {
            Operation::Let(_, Expr::Word(line, _)) => one(Pipe::S, vec![ub(line)], Vec::new()),
            Operation::Let(..) | Operation::Assign(..) => Vec::new(),
            Operation::SetWord { line, .. } => one(Pipe::S, Vec::new(), vec![ub(line)]),
            Operation::Vector(vector) => vec![vector.act()],
            Operation::Copy(Copy { out, ub, gm, .. }) => {
                let (ub, gm) = (vec![ub.place()], vec![gm.place()]);
                if *out { one(Pipe::Mte3, ub, gm) } else { one(Pipe::Mte2, gm, ub) }
            }
            Operation::Function(call) => (call.function.acts)(call),
        }
    }

    /// Returns the call of a function, if the statement is one.
    pub fn function(&self) -> Option<&FunctionCall> {
        if let Operation::Function(call) = &self.operation { Some(call) } else { None }
    }

    /// Returns whether the destination may be one of the sources.
    pub fn in_place(&self) -> bool {
        match &self.operation {
            Operation::Vector(vector) => vector.op.in_place(),
            Operation::Function(call) => call.function.in_place,
            _ => false,
        }
    }

    /// Returns the tensors among the operands.
    pub fn tensors(&self) -> Vec<&Tensor> {
        match &self.operation {
            Operation::Vector(vector) => [&vector.to].into_iter().chain(&vector.from).collect(),
            Operation::Copy(copy) => vec![&copy.ub],
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

    /// Returns whether the statement has one effect, whose result is this temporary.
    pub fn defines(&self, temp: usize) -> bool {
        matches!(&self.acts()[..], [Act::Use { writes, .. }] if writes[0] == Place::Temp(temp))
    }

    /// Replaces a temporary by a tensor, with the view of the temporary.
    pub fn substitute(&mut self, temp: usize, tensor: &Tensor) {
        for operand in self.tensors_mut() {
            if operand.as_temp() == Some(temp) {
                *operand = tensor.clone().viewed_as(operand.view);
            }
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
        let Some(call) = self.function() else { return Vec::new() };
        call.args.iter().filter_map(Argument::word).chain(call.words.iter().copied()).collect()
    }

    /// Returns the scalar expressions of the statement.
    pub fn expressions(&self) -> Vec<&Expr> {
        let mut all = Vec::new();
        match &self.operation {
            Operation::Let(_, value) | Operation::Assign(_, value) => all.push(value),
            Operation::SetWord { at, value, .. } => all.extend([at, value]),
            Operation::Vector(vector) => all.extend(vector.scalar.as_ref().map(|s| &s.value)),
            Operation::Copy(Copy { gm: Global { at, .. }, n, .. }) => {
                all.extend(at.as_ref().into_iter().chain([n]));
            }
            Operation::Function(call) => {
                all.extend(call.args.iter().filter_map(Argument::expression));
            }
        }
        for length in self.lengths() {
            if let Length::Of(n) = length {
                all.push(n);
            }
        }
        all
    }

    /// Returns the line in UB of which the statement sets a word.
    pub fn line(&self) -> Option<&str> {
        if let Operation::SetWord { line, .. } = &self.operation { Some(line) } else { None }
    }

    /// Returns the variable that the statement sets.
    pub fn sets(&self) -> Option<&str> {
        match &self.operation {
            Operation::Let(name, _) | Operation::Assign(name, _) => Some(name),
            Operation::Function(FunctionCall { outcome, .. }) => match outcome {
                Outcome::Let(name) | Outcome::Assign(name) | Outcome::Increase(name) => Some(name),
                Outcome::None | Outcome::Return => None,
            },
            _ => None,
        }
    }
}
