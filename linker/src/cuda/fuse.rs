//! Joins neighbouring work on lanes.
//!
//! A search, a copy from or to global memory and the publication of a list treat each lane on its own, so
//! they become sweeps. Two sweeps of one length become one where the columns that they share are only
//! streamed, or only read: a thread has the same lanes in both, so what it stores it can keep in a
//! register.

use super::access::{Access, By, accesses, apart};
use crate::tape::{Block, ColumnId, Kind, Op, OpCode, Range, Tape, Type, Value};
use std::collections::BTreeMap;

/// Returns the tape with its work on lanes in sweeps, of which neighbours are joined. A sweep may then
/// contain operations on whole columns, each for the lane of a thread. `ranges` are those of its values, by
/// number, to which those of new values are added.
pub fn fuse(tape: &Tape, ranges: &mut Vec<Range>) -> Tape {
    let mut tape = tape.clone();
    let body = std::mem::take(&mut tape.body);
    let mut fuse = Fuse { tape, ranges, same: BTreeMap::new() };
    fuse.tape.body = fuse.block(body, BTreeMap::new());
    fuse.tape
}

struct Fuse<'r> {
    tape: Tape,
    ranges: &'r mut Vec<Range>,
    /// Lengths that equal an earlier one.
    same: BTreeMap<Value, Value>,
}

/// The lengths of lists that did not change since.
type Lengths = BTreeMap<ColumnId, Value>;

impl Fuse<'_> {
    fn block(&mut self, block: Block, mut lengths: Lengths) -> Block {
        let mut out = Vec::new();
        for mut op in block.ops {
            self.replace(&mut op);
            let changed: Vec<_> = op.all().flat_map(changed_lists).copied().collect();
            if op.code == OpCode::Len {
                let n = *lengths.entry(op.columns[0]).or_insert(op.out.unwrap_or(Value(0)));
                if op.out != Some(n) {
                    self.same.extend(op.out.map(|out| (out, n)));
                    continue;
                }
            }
            if matches!(op.code, OpCode::Repeat(_) | OpCode::When) {
                let mut known = lengths.clone();
                known.retain(|id, _| !(changed.contains(id) && op.code != OpCode::When));
                let blocks = std::mem::take(&mut op.blocks);
                op.blocks = blocks.into_iter().map(|b| self.block(b, known.clone())).collect();
            }
            lengths.retain(|id, _| !changed.contains(id));
            if let OpCode::CopyOutList(_) = op.code {
                let list = op.columns[1];
                let n = lengths.get(&list).copied().unwrap_or_else(|| {
                    let most = self.tape.column(list).len.cast_signed();
                    let n = self.value(Type::Scalar, Range::new(0, most));
                    out.push(Op { out: Some(n), ..Op::new(OpCode::Len).column(list) });
                    n
                });
                lengths.insert(list, n);
                out.push(self.sweep(op, n));
            } else if let Some(n) = lanes(&op) {
                out.push(self.sweep(op, n));
            } else {
                out.push(op);
            }
            join_last(&mut out, self.ranges);
        }
        Block { binds: block.binds, ops: out }
    }

    /// Replaces lengths in the operands of an operation and of those in a sweep.
    fn replace(&self, op: &mut Op) {
        let all = op.args.iter_mut();
        all.for_each(|arg| *arg = *self.same.get(arg).unwrap_or(arg));
        op.blocks.iter_mut().flat_map(|b| &mut b.ops).for_each(|op| self.replace(op));
    }

    fn value(&mut self, ty: Type, range: Range) -> Value {
        self.tape.types.push(ty);
        self.ranges.push(range);
        Value(self.tape.types.len() as u32 - 1)
    }

    /// Returns a sweep over n lanes that contains one operation.
    fn sweep(&mut self, op: Op, n: Value) -> Op {
        let body = Block { binds: Some(self.value(Type::Tile, Range::ANY)), ops: vec![op] };
        Op::new(OpCode::Sweep).arg(n).block(body)
    }
}

/// Returns the number of lanes of an operation on a whole column that treats each lane on its own.
fn lanes(op: &Op) -> Option<Value> {
    match op.code {
        OpCode::Find(_) | OpCode::FindFree(_) => op.args.first().copied(),
        OpCode::CopyIn | OpCode::CopyOut => op.args.get(1).copied(),
        _ => None,
    }
}

/// Returns the lists whose length an operation changes.
fn changed_lists(op: &Op) -> &[ColumnId] {
    match op.code {
        OpCode::Append | OpCode::AppendLife(_) | OpCode::Clear => &op.columns[..1],
        OpCode::MoveList => &op.columns,
        _ => &[],
    }
}

/// Joins the last operation to the last sweep before it, if it is a sweep and all between them can be
/// done before both.
fn join_last(ops: &mut Vec<Op>, ranges: &[Range]) {
    let Some(last) = ops.pop() else { return };
    let before = ops.iter().rposition(|op| op.code == OpCode::Sweep);
    let Some(at) = before.filter(|_| last.code == OpCode::Sweep) else { return ops.push(last) };
    let early = ops[at + 1..].iter().all(|op| can_be_before(op, &ops[at]));
    if !early || ops[at].args != last.args || !joins(&ops[at], &last, ranges) {
        return ops.push(last);
    }
    let mut first = ops.remove(at);
    let tile = first.blocks[0].binds;
    for mut body in last.blocks {
        let own = body.binds;
        let args = body.ops.iter_mut().flat_map(|op| &mut op.args);
        args.filter(|arg| Some(**arg) == own).for_each(|arg| *arg = tile.unwrap_or(*arg));
        first.blocks[0].ops.append(&mut body.ops);
    }
    first.blocks.iter_mut().for_each(forward);
    ops.push(first);
}

/// Replaces what a lane loads by what it has stored or loaded before.
fn forward(body: &mut Block) {
    let (mut known, mut same) = (BTreeMap::new(), BTreeMap::new());
    body.ops.retain_mut(|op| {
        op.args.iter_mut().for_each(|arg| *arg = *same.get(arg).unwrap_or(arg));
        match (op.code, op.out) {
            (OpCode::Load, Some(out)) => {
                let value = *known.entry(op.columns[0]).or_insert(out);
                same.insert(out, value);
                return value == out;
            }
            (OpCode::Store, _) => {
                known.insert(op.columns[0], op.args[1]);
            }
            (code, _) if code.writes() => {
                known.remove(&op.columns[0]);
            }
            _ => {}
        }
        true
    });
}

/// Returns whether an operation behind a sweep can be done before it.
fn can_be_before(op: &Op, sweep: &Op) -> bool {
    let touches = |id: &ColumnId| sweep.all().any(|op| op.columns.contains(id));
    op.blocks.is_empty()
        && op.code != OpCode::Synchronise
        && !op.code.on_lanes()
        && !op.columns.iter().any(touches)
}

fn joins(a: &Op, b: &Op, ranges: &[Range]) -> bool {
    let of = |sweep: &Op| -> Vec<Access> {
        let ops = sweep.blocks.iter().flat_map(|block| &block.ops);
        ops.flat_map(|op| accesses(op, ranges)).collect()
    };
    let lanes = ranges[a.args[0].0 as usize].hi;
    let (first, second) = (of(a), of(b));
    first.iter().all(|x| {
        let shared = second.iter().filter(|y| y.column == x.column);
        let streamed = |y: &Access| !(x.write || y.write) || apart(x.by, y.by, lanes);
        shared.into_iter().all(streamed)
    })
}

/// Returns whether the words of a column stay in the registers of threads: one sweep alone accesses it, and
/// stores each word before it reads it.
pub fn in_registers(tape: &Tape, id: ColumnId) -> bool {
    let column = tape.column(id);
    let users = |op: &Op| op.all().filter(|op| op.columns.contains(&id)).count();
    let all: usize = tape.body.ops.iter().map(users).sum();
    let sweep = tape.body.all().find(|op| op.code == OpCode::Sweep && users(op) > 0);
    let alone = sweep.map_or(0, users) == all;
    // Only copies from and to global memory need ranges.
    let ops = sweep.into_iter().flat_map(|sweep| &sweep.blocks[0].ops);
    let touched = ops.flat_map(|op| accesses(op, &[]));
    let mut own = touched.filter(|access| access.column == id);
    let plain = column.kind == Kind::Words && !column.resident;
    // The first access of an operation is its write.
    plain
        && alone
        && own.next().is_none_or(|a| a.write && a.by == By::Lane(0))
        && own.all(|a| a.by == By::Lane(0))
}
