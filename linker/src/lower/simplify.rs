//! The same tape with no pure op twice and none for nothing: a text has one line for each op.

use crate::tape::code::Role;
use crate::tape::{Block, Code, Op, Tape, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A tape without common subexpressions and dead ops.
pub fn simplify(tape: &Tape) -> Tape {
    let mut tape = tape.clone();
    let mut body = tape.body.clone();
    merge(&mut body, &mut BTreeMap::new(), &mut BTreeMap::new());
    let mut used = BTreeSet::new();
    sweep(&mut body, &mut used);
    tape.body = body;
    tape
}

/// Whether an op's value depends on its operands alone.
fn pure(code: Code) -> bool {
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
    let reads = |role| matches!(role, Role::Gathered | Role::Streamed | Role::WholeRead);
    let idle = |op: &Op| {
        op.body.is_none()
            && op.out.is_some()
            && op.code.signature().columns.iter().all(|&(_, role)| reads(role))
    };
    // From the last to the first: uses come before what they use.
    block.ops.reverse();
    block.ops.retain_mut(|op| {
        let kept = !idle(op) || op.out.is_some_and(|out| used.contains(&out));
        if kept {
            op.body.iter_mut().for_each(|body| sweep(body, used));
            used.extend(&op.args);
        }
        kept
    });
    block.ops.reverse();
}
