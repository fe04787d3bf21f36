//! Lists that live in another one's storage: one that grows while another is swept and then becomes
//! it is that other one closed up, and never overtakes the sweep.

use crate::check::{Refused, Why};
use crate::tape::{Block, ColumnId, OpCode, Tape, Value};
use std::collections::BTreeMap;

/// For every list that is `take`n, the list that takes it.
///
/// # Errors
/// If one grows elsewhere, or its sweep still reads what it wrote over.
pub fn find(tape: &Tape) -> Result<BTreeMap<ColumnId, ColumnId>, Refused> {
    let takes = tape.body.all().filter(|op| op.code == OpCode::Take);
    let found: BTreeMap<_, _> = takes.map(|op| (op.columns[1], op.columns[0])).collect();
    for (body, at) in swept(tape, |code| code == OpCode::Append) {
        let to = found.get(&body.ops[at].columns[0]);
        if to.is_some_and(|&to| !closes_up(body, at, to)) {
            return Err(Refused::new(tape, &body.ops[at], Why::Storage));
        }
    }
    Ok(found)
}

/// Every op of these that a sweep has: the sweep's block, and where it stands in it.
fn swept(tape: &Tape, which: fn(OpCode) -> bool) -> impl Iterator<Item = (&Block, usize)> {
    let sweeps = tape.body.all().filter(|op| op.code == OpCode::Sweep);
    sweeps.filter_map(|op| op.body.as_ref()).flat_map(move |body| {
        (0..body.ops.len()).filter(move |&at| which(body.ops[at].code)).map(move |at| (body, at))
    })
}

/// Columns that may begin where another one ends: column, or list and column, that are written in the order
/// of the lanes, and list and column that are swept meanwhile and not read again behind that.
pub fn overlays(tape: &Tape) -> Vec<[(ColumnId, usize); 2]> {
    let mut found = Vec::new();
    for (body, at) in swept(tape, |code| matches!(code, OpCode::Append | OpCode::Store)) {
        let write = &body.ops[at];
        // Behind the tile, and an append's mask.
        let values = if write.code == OpCode::Append { 2 } else { 1 };
        for op in &body.ops[..at] {
            let (OpCode::Item(column), Some(item)) = (op.code, op.out) else { continue };
            let later = body.ops[at + 1..].iter().any(|op| op.args.contains(&item));
            for c in 0..write.args.len() - values {
                let own = write.args[values + c + 1..].contains(&item);
                if !later && !own && op.columns[0] != write.columns[0] {
                    found.push([(write.columns[0], c), (op.columns[0], column)]);
                }
            }
        }
    }
    found
}

/// Whether the append only moves lanes of `list` down: column c of it to column c, and nothing reads a
/// column after it was written.
fn closes_up(body: &Block, at: usize, list: ColumnId) -> bool {
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
