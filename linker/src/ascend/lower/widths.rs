//! Chooses the number of lanes that a sweep takes per iteration.
//!
//! The registers of a tile occupy a fixed part of the unified buffer. A sweep that needs at most
//! two vectors and three masks uses the same bytes for longer vectors, and takes `WIDE` lanes per
//! iteration instead of `TILE`.

use super::lanes::iota;
use super::registers::{Register, Temp};
use super::{Lower, Lowered};
use crate::ascend::aiv::{
    Call, Expr, Function, FunctionCall, Loop, Node, Operation, Step, Tensor, Use, Vector, VectorOp,
    Width,
};
use crate::ascend::functions::{append, words};
use crate::tape::code::Need;
use crate::tape::{Block, ColumnId, Op, OpCode};

/// Vector registers that a wide sweep may need.
pub const WIDE_VECTORS: usize = 2;
/// Mask registers that a wide sweep may need. They have memory of their own, because masks are
/// short.
const WIDE_MASKS: usize = 3;

impl Lower<'_> {
    /// Names the temporaries of a sweep's body and returns its width: wide if the body's registers
    /// allow it, else a tile.
    pub(super) fn fit_width(&mut self, op: &Op, body: &mut Vec<Node>) -> Width {
        if let Some(width) = self.widen(op, body) {
            return width;
        }
        self.registers.name(body, &self.temps, &mut self.taken);
        Width::Tile
    }

    fn widen(&mut self, op: &Op, body: &mut Vec<Node>) -> Option<Width> {
        let appends = appended(op).next().is_some();
        if !appended(op).all(|list| self.empty.contains(&list)) {
            return None;
        }
        let limit = u32::try_from(self.ranges[op.args[0].0 as usize].hi).ok()?;
        let width = Width::Wide { in_one_round: appends.then_some(limit) };
        let mut wide_body = body.clone();
        for call in wide_body.iter_mut().filter_map(call_mut) {
            if call.function().is_some_and(|c| *c.function != append::APPEND && by_tile(c.function))
            {
                return None;
            }
            widen_call(call, width);
        }
        let (mut names, mut taken) = (self.wide.clone(), self.taken.clone());
        names.name(
            &mut wide_body,
            &self.temps.iter().map(wide_name).collect::<Vec<_>>(),
            &mut taken,
        );
        let registers = |mask: bool| if mask { WIDE_MASKS } else { WIDE_VECTORS };
        if names.registers().iter().any(|r| r.number >= registers(r.mask)) {
            return None;
        }
        (self.wide, self.taken, *body) = (names, taken, wide_body);
        Some(width)
    }

    /// Updates the set of empty lists after `op`.
    pub(super) fn track_empty(&mut self, op: &Op) {
        if op.code == OpCode::Clear {
            self.empty.insert(op.columns[0]);
            return;
        }
        written(op).for_each(|list| {
            self.empty.remove(&list);
        });
    }
}

impl Lowered {
    /// Turns wide sweeps that must finish in one iteration, but would take several of `wide` lanes,
    /// into sweeps over tiles. They keep their registers, which are long enough for a tile.
    pub fn narrow(&mut self, wide: u32) {
        narrow(&mut self.body, wide);
    }
}

fn narrow(nodes: &mut [Node], wide: u32) {
    for node in nodes {
        match node {
            Node::Loop(Loop { step, body, .. }) => {
                if let Step::Sweep(Width::Wide { in_one_round: Some(limit) }) = *step
                    && limit > wide
                {
                    *step = Step::Sweep(Width::Tile);
                    body.iter_mut()
                        .filter_map(call_mut)
                        .for_each(|call| widen_call(call, Width::Tile));
                }
                narrow(body, wide);
            }
            Node::If(branch) => {
                narrow(&mut branch.body, wide);
                narrow(&mut branch.otherwise, wide);
            }
            Node::Call(_) | Node::Note(_) => {}
        }
    }
}

fn call_mut(node: &mut Node) -> Option<&mut Call> {
    if let Node::Call(call) = node { Some(call) } else { None }
}

/// Changes a call to a width: the definition of `lanes`, and the numbers of the lanes.
fn widen_call(call: &mut Call, width: Width) {
    match &mut call.operation {
        Operation::Let(name, Expr::Min(_, limit)) if name == "lanes" => {
            **limit = width.constant();
        }
        Operation::Vector(Vector { op: VectorOp::Adds, to, from, scalar: Some(base), .. })
            if from[0] == Tensor::named("iota") =>
        {
            call.operation = words::indices(to.clone(), base.value.clone()).operation;
        }
        Operation::Function(FunctionCall { function, args, .. })
            if **function == words::INDICES && width == Width::Tile =>
        {
            let to = args[0].tensor().expect("the first argument of Indices is a tensor");
            call.operation = iota(to.clone()).operation;
        }
        _ => {}
    }
}

/// Returns the temporary under the name of a wide register, which differs from the names of a
/// tile's registers.
fn wide_name(temp: &Temp) -> Temp {
    let mut letters = temp.name.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    Temp {
        mask: temp.mask,
        name: format!("wide{}", first.into_iter().chain(letters).collect::<String>()),
    }
}

/// Returns whether a function uses memory that has the length of a tile.
fn by_tile(function: &Function) -> bool {
    function.uses().iter().any(|used| match used {
        Use::Function(other) => by_tile(other),
        Use::Buffer(_) | Use::Constant(_) => true,
        Use::Word(_) => false,
    })
}

/// Returns the lists that a sweep appends to.
fn appended(sweep: &Op) -> impl Iterator<Item = ColumnId> + '_ {
    let ops = sweep.blocks.iter().flat_map(Block::all);
    ops.filter(|op| op.code == OpCode::Append).map(|op| op.columns[0])
}

/// Returns the lists that an operation, or an operation in its body, changes.
fn written(op: &Op) -> impl Iterator<Item = ColumnId> + '_ {
    let all = std::iter::once(op).chain(op.blocks.iter().flat_map(Block::all));
    all.flat_map(|op| {
        let columns = op.columns.iter().zip(op.code.signature().columns());
        columns
            .filter(|(_, (need, role))| matches!(need, Need::List | Need::Single) && role.writes())
            .map(|(&id, _)| id)
    })
}

/// Returns the number of mask registers, or of vector registers, among these.
pub fn count(registers: &[Register], mask: bool) -> u32 {
    let numbers = registers.iter().filter(|r| r.mask == mask).map(|r| r.number as u32 + 1);
    numbers.max().unwrap_or(0)
}
