//! Lists that live in another one's storage: one that grows while another is swept and then becomes
//! it is that other one closed up, and never overtakes the sweep.

use crate::check::{Refused, Why};
use crate::tape::{Block, Code, ColumnId, Op, Tape, Value};
use std::collections::BTreeMap;

/// For every list that is `take`n, the list that takes it.
///
/// # Errors
/// If one grows elsewhere, or its sweep still reads what it wrote over.
pub fn find(tape: &Tape) -> Result<BTreeMap<ColumnId, ColumnId>, Refused> {
    let mut found = BTreeMap::new();
    takes(&tape.body, &mut |op| {
        found.insert(op.columns[1], op.columns[0]);
    });
    let mut wrong = None;
    appends(&tape.body, &mut |sweep, op| {
        if let (Some(body), Some(&to)) = (&sweep.body, found.get(&op.columns[0]))
            && !closes_up(body, op, to)
        {
            wrong.get_or_insert_with(|| Refused::new(tape, op, Why::Storage));
        }
    });
    wrong.map_or(Ok(found), Err)
}

fn takes(block: &Block, run: &mut impl FnMut(&Op)) {
    for op in &block.ops {
        if op.code == Code::Take {
            run(op);
        }
        if let Some(body) = &op.body {
            takes(body, run);
        }
    }
}

fn appends(block: &Block, run: &mut impl FnMut(&Op, &Op)) {
    for op in &block.ops {
        let Some(body) = &op.body else { continue };
        if op.code == Code::Sweep {
            body.ops.iter().filter(|o| o.code == Code::Append).for_each(|o| run(op, o));
        } else {
            appends(body, run);
        }
    }
}

/// Columns that may begin where another one ends: list and column that grow, and list and column that
/// are swept meanwhile and not read again behind the append.
pub fn overlays(tape: &Tape) -> Vec<[(ColumnId, usize); 2]> {
    let mut found = Vec::new();
    appends(&tape.body, &mut |sweep, append| {
        let Some(body) = &sweep.body else { return };
        let at = body.ops.iter().position(|op| op == append).unwrap_or(0);
        for op in &body.ops[..at] {
            let (Code::Item(column), Some(item)) = (op.code, op.out) else { continue };
            let later = body.ops[at + 1..].iter().any(|op| op.args.contains(&item));
            for c in 0..append.args.len() - 2 {
                let own = append.args[2 + c + 1..].contains(&item);
                if !later && !own && op.columns[0] != append.columns[0] {
                    found.push([(append.columns[0], c), (op.columns[0], column)]);
                }
            }
        }
    });
    found
}

/// Whether `append` only moves lanes of `list` down: column c of it to column c, and nothing reads a
/// column after it was written.
fn closes_up(body: &Block, append: &Op, list: ColumnId) -> bool {
    let items: BTreeMap<Value, usize> = body
        .ops
        .iter()
        .filter_map(|op| match op.code {
            Code::Item(column) if op.columns[0] == list => Some((op.out?, column)),
            _ => None,
        })
        .collect();
    let at = body.ops.iter().position(|op| op == append).unwrap_or(0);
    let later = body.ops[at + 1..].iter().flat_map(|op| &op.args);
    let own = append.args[2..].iter().enumerate();
    !items.is_empty()
        && own.clone().all(|(c, v)| items.get(v).is_none_or(|&item| item >= c))
        && later.copied().all(|v| !items.contains_key(&v))
}
