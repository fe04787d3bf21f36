//! Chooses the number of lanes that a sweep takes per iteration.
//!
//! The registers of a tile occupy a fixed part of the unified buffer. A sweep that needs at most
//! two vectors and three masks uses the same bytes for longer vectors, and takes `WIDE` lanes per
//! iteration instead of `TILE`.

use super::registers::{Register, call_mut, each_sweep, needed};
use super::{Lower, Lowered};
use crate::ascend::aiv::{
    Call, Expr, FunctionCall, Loop, Node, Operation, Operator, Set, Step, Tensor, Use, Vector,
    VectorOp, Width, uses,
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
    /// Returns the width of a sweep: wide if the registers of its body allow it, else a tile.
    pub(super) fn fit_width(&self, op: &Op, body: &[Node]) -> Width {
        let [vectors, masks] = needed(body);
        // An append uses memory and constants, but takes any number of lanes.
        let long = |call: &Call| {
            call.function().is_none_or(|c| *c.function == append::APPEND || !by_tile(c))
        };
        let may_be_wide = vectors <= WIDE_VECTORS
            && masks <= WIDE_MASKS
            && appended(op).all(|list| self.empty.contains(&list))
            && body.iter().filter_map(Node::call).all(long);
        let limit = u32::try_from(self.ranges[op.args[0].0 as usize].hi).ok();
        let wide = |limit| Width::Wide { in_one_round: appended(op).next().map(|_| limit) };
        limit.filter(|_| may_be_wide).map_or(Width::Tile, wide)
    }

    /// Updates the set of empty lists after `op`.
    pub(super) fn track_empty(&mut self, op: &Op) {
        let written: Vec<_> = written(op).collect();
        self.empty.retain(|list| !written.contains(list));
        if op.code == OpCode::Clear {
            self.empty.insert(op.columns[0]);
        }
    }
}

impl Lowered {
    /// Turns wide sweeps that must finish in one iteration, but would take several of `wide` lanes,
    /// into sweeps over tiles, whose registers are long enough for a tile, and widens the bodies of the others.
    pub fn set_widths(&mut self, wide: u32) {
        each_sweep(&mut self.body, &mut |Loop { step, body, .. }| match *step {
            Step::Sweep(Width::Wide { in_one_round: Some(n) }) if n > wide => {
                *step = Step::Sweep(Width::Tile);
            }
            Step::Sweep(width @ Width::Wide { .. }) => {
                body.iter_mut().filter_map(call_mut).for_each(|call| widen(call, width));
            }
            _ => {}
        });
    }
}

/// Changes a call in the sweep over a tile to one in a wide sweep: the definition of `lanes`, and the numbers
/// of the lanes.
fn widen(call: &mut Call, width: Width) {
    match &mut call.operation {
        Operation::Set(Set::Let, name, Expr::Binary(Operator::Min, _, limit))
            if name == "lanes" =>
        {
            (**limit).clone_from(width.constant());
        }
        Operation::Vector(Vector { op: VectorOp::Adds, to, from, scalar: Some(base), .. })
            if from[0] == Tensor::named("iota") =>
        {
            *call = words::indices(to.clone(), base.value.clone());
        }
        _ => {}
    }
}

/// Returns whether a function uses memory that has the length of a tile.
fn by_tile(call: &FunctionCall) -> bool {
    let uses = uses(&call.function.definition.nodes);
    uses.iter().any(|used| matches!(used, Use::Buffer(_) | Use::Constant(_)))
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
