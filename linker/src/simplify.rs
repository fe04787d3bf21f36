//! Simplifies a tape: removes repeated pure operations and operations without effect, so that the
//! text has no lines for them.

use crate::tape::{Block, OpCode, Tape, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the tape without common subexpressions and dead operations.
pub fn simplify(tape: &Tape) -> Tape {
    let mut tape = tape.clone();
    merge(&mut tape.body, &mut BTreeMap::new(), &mut BTreeMap::new());
    remove_dead(&mut tape.body, &mut BTreeSet::new());
    tape
}

/// Returns whether the value of an operation depends only on its operands.
fn pure(code: OpCode) -> bool {
    let signature = code.signature();
    signature.columns().next().is_none() && signature.binds.is_none()
}

fn merge(block: &mut Block, seen: &mut BTreeMap<String, Value>, same: &mut BTreeMap<Value, Value>) {
    block.ops.retain_mut(|op| {
        for arg in &mut op.args {
            *arg = *same.get(arg).unwrap_or(arg);
        }
        if let Some(body) = &mut op.body {
            merge(body, &mut seen.clone(), same);
        }
        let Some(out) = op.out.filter(|_| pure(op.code)) else { return true };
        let first = *seen.entry(format!("{:?} {:?}", op.code, op.args)).or_insert(out);
        same.insert(out, first);
        first == out
    });
    if let Some(yields) = &mut block.yields {
        *yields = *same.get(yields).unwrap_or(yields);
    }
}

fn remove_dead(block: &mut Block, used: &mut BTreeSet<Value>) {
    used.extend(block.yields);
    // In reverse order each use comes before the operation that defines the value.
    block.ops.reverse();
    block.ops.retain_mut(|op| {
        let has_effect = op.body.is_some() || op.code.writes();
        let kept = has_effect || op.out.is_none_or(|out| used.contains(&out));
        if kept {
            op.body.iter_mut().for_each(|body| remove_dead(body, used));
            used.extend(&op.args);
        }
        kept
    });
    block.ops.reverse();
}
