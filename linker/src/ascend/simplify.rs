//! Simplifies a tape: removes repeated pure operations and operations without effect, so that the
//! text has no lines for them.

use crate::tape::{Block, Op, OpCode, Range, Tape, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the tape without common subexpressions, dead operations, and masks that change nothing.
/// `ranges` are those of its values, by number.
pub fn simplify(tape: &Tape, ranges: &[Range]) -> Tape {
    let mut tape = tape.clone();
    merge(&mut tape.body, ranges, &mut BTreeMap::new(), &mut BTreeMap::new());
    remove_dead(&mut tape.body, &mut BTreeSet::new());
    tape
}

/// Returns whether the value of an operation depends only on its operands.
fn pure(code: OpCode) -> bool {
    let signature = code.signature();
    signature.columns().next().is_none() && signature.binds.is_none()
}

/// Returns whether a value has no bit that an operation removes.
fn changes_nothing(op: &Op, ranges: &[Range]) -> bool {
    let OpCode::AndTo(mask) = op.code else { return false };
    let Range { lo, hi } = ranges[op.args[0].0 as usize];
    mask & mask.wrapping_add(1) == 0 && lo >= 0 && hi <= mask
}

fn merge(
    block: &mut Block,
    ranges: &[Range],
    seen: &mut BTreeMap<String, Value>,
    same: &mut BTreeMap<Value, Value>,
) {
    block.ops.retain_mut(|op| {
        for arg in &mut op.args {
            *arg = *same.get(arg).unwrap_or(arg);
        }
        for body in &mut op.blocks {
            merge(body, ranges, &mut seen.clone(), same);
        }
        let Some(out) = op.out.filter(|_| pure(op.code)) else { return true };
        let first = if changes_nothing(op, ranges) {
            op.args[0]
        } else {
            *seen.entry(format!("{:?} {:?}", op.code, op.args)).or_insert(out)
        };
        same.insert(out, first);
        first == out
    });
}

fn remove_dead(block: &mut Block, used: &mut BTreeSet<Value>) {
    // In reverse order each use comes before the operation that defines the value.
    block.ops.reverse();
    block.ops.retain_mut(|op| {
        let has_effect = !op.blocks.is_empty() || op.code.writes();
        let kept = has_effect || op.out.is_none_or(|out| used.contains(&out));
        if kept {
            op.blocks.iter_mut().for_each(|body| remove_dead(body, used));
            used.extend(&op.args);
        }
        kept
    });
    block.ops.reverse();
}
