//! One statement of a kernel.

use super::act::{Act, Pipe, Place, Sync, ub};
use super::expr::Expr;
use super::helper::{Argument, HelperCall, Outcome};
use super::tensor::{Global, Tensor};
use super::vector::{Length, Vector};

/// A transfer between global memory and UB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Whether it goes to global memory.
    pub out: bool,
    /// The end in UB.
    pub ub: Tensor,
    /// The end in global memory.
    pub gm: Global,
    /// Elements.
    pub n: Expr,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new variable.
    Let(String, Expr),
    /// A variable gets another value.
    Assign(String, Expr),
    /// A word of a line in UB gets another value.
    SetWord {
        /// The line.
        line: String,
        /// Which word.
        at: Expr,
        /// The value.
        value: Expr,
    },
    /// An instruction of the vector unit.
    Vector(Vector),
    /// A transfer.
    Copy(Copy),
    /// A helper.
    Helper(HelperCall),
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What it does.
    pub operation: Operation,
    /// Synchronisation before it.
    pub sync: Vec<Sync>,
}

impl From<Operation> for Call {
    fn from(operation: Operation) -> Self {
        Self { operation, sync: Vec::new() }
    }
}

impl Call {
    /// What happens.
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
            Operation::Helper(call) => (call.helper.acts)(call),
        }
    }

    /// The helper that it calls.
    pub fn helper(&self) -> Option<&HelperCall> {
        if let Operation::Helper(call) = &self.operation { Some(call) } else { None }
    }

    /// Whether it may write where it reads.
    pub fn in_place(&self) -> bool {
        match &self.operation {
            Operation::Vector(vector) => vector.op.in_place(),
            Operation::Helper(call) => call.helper.in_place,
            _ => false,
        }
    }

    /// The tensors among its operands.
    pub fn tensors(&self) -> Vec<&Tensor> {
        match &self.operation {
            Operation::Vector(vector) => [&vector.to].into_iter().chain(&vector.from).collect(),
            Operation::Copy(copy) => vec![&copy.ub],
            Operation::Helper(call) => call.args.iter().filter_map(Argument::tensor).collect(),
            _ => Vec::new(),
        }
    }

    /// The same, to be changed.
    pub fn tensors_mut(&mut self) -> Vec<&mut Tensor> {
        match &mut self.operation {
            Operation::Vector(vector) => {
                [&mut vector.to].into_iter().chain(&mut vector.from).collect()
            }
            Operation::Copy(copy) => vec![&mut copy.ub],
            Operation::Helper(call) => {
                call.args.iter_mut().filter_map(Argument::tensor_mut).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether it is one instruction, or a helper of one, whose result is this temporary.
    pub fn makes(&self, temp: usize) -> bool {
        matches!(&self.acts()[..], [Act::Use { writes, .. }] if writes[0] == Place::Temp(temp))
    }

    /// Puts a tensor into the place of a temporary; its bits are taken as the temporary's were.
    pub fn put(&mut self, temp: usize, tensor: &Tensor) {
        for operand in self.tensors_mut() {
            if operand.as_temp() == Some(temp) {
                *operand = tensor.clone().seen_as(operand.view);
            }
        }
    }

    /// The lengths among its operands.
    pub fn lengths(&self) -> Vec<&Length> {
        match &self.operation {
            Operation::Vector(vector) => vec![&vector.over],
            Operation::Helper(call) => call.args.iter().filter_map(Argument::length).collect(),
            _ => Vec::new(),
        }
    }

    /// The words whose blocks it reads.
    pub fn words(&self) -> Vec<u32> {
        let Some(call) = self.helper() else { return Vec::new() };
        call.args.iter().filter_map(Argument::word).chain(call.words.iter().copied()).collect()
    }

    /// The scalar expressions in it.
    pub fn expressions(&self) -> Vec<&Expr> {
        let mut all = Vec::new();
        match &self.operation {
            Operation::Let(_, value) | Operation::Assign(_, value) => all.push(value),
            Operation::SetWord { at, value, .. } => all.extend([at, value]),
            Operation::Vector(vector) => all.extend(vector.scalar.as_ref().map(|s| &s.value)),
            Operation::Copy(Copy { gm: Global { at, .. }, n, .. }) => {
                all.extend(at.as_ref().into_iter().chain([n]));
            }
            Operation::Helper(call) => {
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

    /// The line of words that it sets one of.
    pub fn line(&self) -> Option<&str> {
        if let Operation::SetWord { line, .. } = &self.operation { Some(line) } else { None }
    }

    /// The variable that it sets.
    pub fn sets(&self) -> Option<&str> {
        match &self.operation {
            Operation::Let(name, _) | Operation::Assign(name, _) => Some(name),
            Operation::Helper(HelperCall { outcome, .. }) => match outcome {
                Outcome::Let(name) | Outcome::Assign(name) | Outcome::Increase(name) => Some(name),
                Outcome::None | Outcome::Return => None,
            },
            _ => None,
        }
    }
}
