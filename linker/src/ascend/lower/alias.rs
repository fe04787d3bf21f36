//! Finds lists that can use the storage of another list. A list that grows while another one is
//! swept, and then replaces it, is a compaction of that list, and its end never passes the lanes
//! that the sweep reads.

use crate::check::{Refused, Why};
use crate::tape::{Block, ColumnId, Op, OpCode, Tape, Value};
use std::collections::BTreeMap;

/// Returns, for every list that another one replaces (`move_list`), that other list.
///
/// # Errors
/// If such a list grows in another sweep, or its sweep reads lanes after it has overwritten them.
pub fn find(tape: &Tape) -> Result<BTreeMap<ColumnId, ColumnId>, Refused> {
    let takes = tape.body.all().filter(|op| op.code == OpCode::MoveList);
    let takers: BTreeMap<_, _> = takes.map(|op| (op.columns[1], op.columns[0])).collect();
    for (body, at) in swept(tape, |code| code == OpCode::Append) {
        let to = takers.get(&body.ops[at].columns[0]);
        if to.is_some_and(|&to| !only_compacts(body, at, to)) {
            return Err(Refused::new(tape, &body.ops[at], Why::Storage));
        }
    }
    Ok(takers)
}

/// Returns every such operation in a sweep: the block of the sweep, and its index in the block.
fn swept(tape: &Tape, which: fn(OpCode) -> bool) -> impl Iterator<Item = (&Block, usize)> {
    let sweeps = tape.body.all().filter(|op| op.code == OpCode::Sweep);
    sweeps.flat_map(|op| &op.blocks).flat_map(move |body| {
        (0..body.ops.len()).filter(move |&at| which(body.ops[at].code)).map(move |at| (body, at))
    })
}

/// Returns pairs of columns of which the first may use the address of the second: the first is
/// written in the order of the lanes, while the sweep reads the second and does not read it after
/// the write.
pub fn overlays(tape: &Tape) -> Vec<[(ColumnId, usize); 2]> {
    // A search writes an entry after it has read that entry's probe sequence.
    let search = |op: &Op| {
        let found = matches!(op.code, OpCode::FindFree(_));
        found.then(|| [(op.columns[0], 0), (op.columns[1], 0)])
    };
    let mut pairs: Vec<_> = tape.body.all().filter_map(search).collect();
    for (body, at) in swept(tape, |code| matches!(code, OpCode::Append | OpCode::Store)) {
        let write = &body.ops[at];
        // The values come after the tile, and in an append after the mask.
        let values = if write.code == OpCode::Append { 2 } else { 1 };
        for op in &body.ops[..at] {
            let (OpCode::Item(column), Some(item)) = (op.code, op.out) else { continue };
            let later = body.ops[at + 1..].iter().any(|op| op.args.contains(&item));
            for c in 0..write.args.len() - values {
                let own = write.args[values + c + 1..].contains(&item);
                if !later && !own && op.columns[0] != write.columns[0] {
                    pairs.push([(write.columns[0], c), (op.columns[0], column)]);
                }
            }
        }
    }
    pairs
}

/// Returns whether an append only compacts `list`: column c of the list goes to a column up to c,
/// and no operation reads a column after it is written.
fn only_compacts(body: &Block, at: usize, list: ColumnId) -> bool {
    let items: BTreeMap<Value, usize> = body
        .ops
        .iter()
        .filter_map(|op| match op.code {
            OpCode::Item(column) if op.columns[0] == list => Some((op.out?, column)),
            _ => None,
        })
        .collect();
    let later = body.ops[at + 1..].iter().flat_map(|op| &op.args);
    let mut own = body.ops[at].args[2..].iter().enumerate();
    !items.is_empty()
        && own.all(|(c, v)| items.get(v).is_none_or(|&item| item >= c))
        && later.copied().all(|v| !items.contains_key(&v))
}
