//! Folds the branches that a block of threads decides: it plans its request alone, so no token is shared and
//! no refresh is deferred.

use crate::tape::{Block, Op, OpCode, Tape, Value};
use std::collections::BTreeMap;

/// Returns the tape without the branches that are never taken, and without the tests of those that always
/// are.
pub fn fold_branches(tape: &Tape) -> Tape {
    let mut tape = tape.clone();
    let zero = tape.params.iter().filter(|param| param.sharing);
    let known = zero.map(|param| (param.value, 0)).collect();
    tape.body.ops = decided(std::mem::take(&mut tape.body.ops), known);
    tape
}

fn decided(ops: Vec<Op>, mut known: BTreeMap<Value, i32>) -> Vec<Op> {
    let mut all = Vec::new();
    for mut op in ops {
        if let (Some(out), Some(value)) = (op.out, value(&op, &known)) {
            known.insert(out, value);
        }
        let inside = |block: Block| Block { ops: decided(block.ops, known.clone()), ..block };
        op.blocks = std::mem::take(&mut op.blocks).into_iter().map(inside).collect();
        let taken = op.args.first().filter(|_| op.code == OpCode::When).and_then(|c| known.get(c));
        match taken {
            Some(&condition) => all.append(&mut op.blocks[usize::from(condition == 0)].ops),
            None => all.push(op),
        }
    }
    all
}

/// Returns the result of arithmetic on known scalars.
fn value(op: &Op, known: &BTreeMap<Value, i32>) -> Option<i32> {
    let arg = |n: usize| known.get(op.args.get(n)?).copied();
    match op.code {
        OpCode::Constant(n) => Some(n),
        OpCode::ScalarSub => arg(0)?.checked_sub(arg(1)?),
        OpCode::ScalarGt => Some(i32::from(arg(0)? > arg(1)?)),
        OpCode::ScalarNe => Some(i32::from(arg(0)? != arg(1)?)),
        _ => None,
    }
}
