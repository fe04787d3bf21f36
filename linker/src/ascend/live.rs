//! The operations between which each working column keeps its words, so that columns that are not
//! live at once can share memory.

use crate::tape::{Block, ColumnId, Kind, Op, OpCode, Tape};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Collects operations in execution order. The body of a branch counts operation by operation, because
/// it runs at most once; a loop counts as one operation.
fn flatten<'t>(block: &'t [Op], ops: &mut Vec<&'t Op>) {
    for op in block {
        match op.code {
            OpCode::When => op.blocks.iter().for_each(|block| flatten(&block.ops, ops)),
            _ => ops.push(op),
        }
    }
}

/// A working column, or one column of a working list.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    /// The kind of the working column.
    pub kind: Kind,
    /// The length, a multiple of 128.
    pub len: u32,
    /// The first and the last operation between which it keeps its contents.
    pub from_to: (usize, usize),
}

/// Returns the operations of a tape in their order, and each loop over tokens, whose body counts operation by
/// operation, with its numbers.
fn ordered(tape: &Tape) -> (Vec<&Op>, Vec<(Range<usize>, &Block)>) {
    let (mut ops, mut loops) = (Vec::new(), Vec::new());
    for op in &tape.body.ops {
        let first = ops.len();
        match &op.blocks[..] {
            // One round is no loop.
            [body] if op.code == OpCode::Repeat(1) => flatten(&body.ops, &mut ops),
            [body] if op.code != OpCode::Sweep => {
                flatten(&body.ops, &mut ops);
                loops.push((first..ops.len(), body));
            }
            _ => flatten(std::slice::from_ref(op), &mut ops),
        }
    }
    (ops, loops)
}

/// Returns the name of the phase of each operation, by the numbers of [`Live::from_to`].
pub fn phases(tape: &Tape) -> Vec<String> {
    let mut phase = String::from("start");
    let mut of = |op: &Op| {
        if let OpCode::Phase(next, _) = op.code {
            phase = next.to_string();
        }
        phase.clone()
    };
    ordered(tape).0.into_iter().map(&mut of).collect()
}

/// Returns each working column, and each column of a working list, by its number.
pub fn columns(
    tape: &Tape,
    alias: &BTreeMap<ColumnId, ColumnId>,
) -> BTreeMap<(ColumnId, usize), Live> {
    let (ops, loops) = ordered(tape);
    let storage = |id: &ColumnId| *alias.get(id).unwrap_or(id);
    let mut columns = BTreeMap::new();
    for (n, op) in ops.into_iter().enumerate() {
        for (op, id) in op.all().flat_map(|op| op.columns.iter().map(move |id| (op, storage(id)))) {
            let column = tape.column(id);
            let accessed = match (column.kind, op.code) {
                (Kind::List { .. }, OpCode::Len | OpCode::Clear | OpCode::MoveList) => 0..0,
                (Kind::List { .. }, OpCode::Item(c) | OpCode::CopyOutList(c)) => c..c + 1,
                (Kind::List { width }, _) => 0..width,
                (Kind::Words | Kind::Life, _) if !column.resident => 0..1,
                _ => 0..0,
            };
            for at in accessed {
                let live = columns.entry((id, at)).or_insert(Live {
                    kind: column.kind,
                    len: column.len.next_multiple_of(128),
                    from_to: (n, n),
                });
                live.from_to.1 = n;
            }
        }
    }
    for (all, body) in loops {
        let mut carried = BTreeSet::new();
        find_carried(body, &mut BTreeSet::new(), &mut carried);
        // Lifetimes that no operation of this round has mapped are read by none.
        carried.retain(|id| tape.column(*id).kind != Kind::Life);
        let carried: BTreeSet<_> = carried.iter().map(storage).collect();
        for ((id, _), Live { from_to: live, .. }) in &mut columns {
            let inside = live.0 < all.end && all.start <= live.1;
            let outside = live.0 < all.start || all.end <= live.1;
            if inside && (outside || carried.contains(id)) {
                // A column that is live around a loop leaves no gap among those in the loop.
                let first = if outside { 0 } else { all.start };
                *live = (live.0.min(first), live.1.max(all.end - 1));
            }
        }
    }
    columns
}

/// Finds the columns from which a block may read a word that it has not written before, because it is
/// not among `written`. A loop over the block carries such words from round to round.
fn find_carried(block: &Block, written: &mut BTreeSet<ColumnId>, carried: &mut BTreeSet<ColumnId>) {
    for op in &block.ops {
        match (&op.blocks[..], op.code) {
            ([body], OpCode::Sweep) => find_carried(body, written, carried),
            // A loop may run no round.
            ([body], _) => find_carried(body, &mut written.clone(), carried),
            ([yes, no], _) => {
                let mut other = written.clone();
                find_carried(yes, written, carried);
                find_carried(no, &mut other, carried);
                written.retain(|id| other.contains(id));
            }
            // The list takes the words of the other one.
            (_, OpCode::MoveList) => {
                let known = written.contains(&op.columns[1]);
                written.remove(&op.columns[0]);
                written.extend(op.columns.iter().skip(usize::from(!known)));
            }
            (_, code) => {
                let starts = match code {
                    // What these do not write of their first column is undefined afterwards.
                    OpCode::Store | OpCode::CopyIn | OpCode::Find(_) | OpCode::FindFree(_) => true,
                    _ => code == OpCode::Clear,
                };
                let keeps = matches!(code, OpCode::Len | OpCode::Append | OpCode::AppendLife(_));
                let read = op.columns.iter().skip(usize::from(starts || keeps));
                carried.extend(read.filter(|id| !written.contains(id)));
                written.extend(op.columns.first().filter(|_| starts));
            }
        }
    }
}
