//! The same tape with no pure op twice and none for nothing: a text has one line for each op.

use crate::tape::{Block, OpCode, Tape, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A tape without common subexpressions and dead ops.
pub fn simplify(tape: &Tape) -> Tape {
    let mut tape = tape.clone();
    merge(&mut tape.body, &mut BTreeMap::new(), &mut BTreeMap::new());
    sweep(&mut tape.body, &mut BTreeSet::new());
    tape
}

/// Whether an op's value depends on its operands alone.
fn pure(code: OpCode) -> bool {
    code.signature().columns.is_empty() && code.signature().binds.is_none()
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

fn sweep(block: &mut Block, used: &mut BTreeSet<Value>) {
    used.extend(block.yields);
    // From the last to the first: uses come before what they use.
    block.ops.reverse();
    block.ops.retain_mut(|op| {
        let acts = op.body.is_some() || op.code.writes();
        let kept = acts || op.out.is_none_or(|out| used.contains(&out));
        if kept {
            op.body.iter_mut().for_each(|body| sweep(body, used));
            used.extend(&op.args);
        }
        kept
    });
    block.ops.reverse();
}
