//! Lowers sign tests. int32 has no compare but EQ, so a test is an arithmetic shift by 31 and a
//! compare with 0 or -1.

use super::Lower;
use super::lanes::{number, vector};
use crate::ascend::aiv::{Comparison, Expr, Vector, VectorOp, aligned_lanes};
use crate::tape::{Op, OpCode, Value};

impl Lower<'_> {
    /// Returns a and b if `difference` is a lifetime a minus a scalar b, or the lifetime itself and 0.
    pub(super) fn lifetime_difference(&self, difference: Value) -> Option<(Value, Expr)> {
        if self.halves.contains(&difference) {
            return Some((difference, 0.into()));
        }
        let Op { code: OpCode::SubScalar, args, .. } = self.defs.get(&difference)? else {
            return None;
        };
        self.halves.contains(&args[0]).then(|| (args[0], self.scalar(args[1])))
    }

    /// Returns the number of operations that negate a sign test.
    pub(super) fn negations(&self, mask: Option<Value>) -> usize {
        let not = |op: &&Op| op.code == OpCode::MaskNot && Some(op.args[0]) == mask;
        self.defs.values().filter(not).count()
    }

    /// Returns whether a sign test is false in every lane, because no lane can be negative.
    pub(super) fn is_never_negative(&self, test: Value) -> bool {
        let test = self.defs.get(&test).filter(|op| op.code == OpCode::IsNegative);
        test.is_some_and(|op| {
            !self.halves.contains(&op.args[0]) && self.ranges[op.args[0].0 as usize].lo >= 0
        })
    }

    /// Makes the mask of the lanes whose value shifted right by 31 is `sign`: -1 for negative
    /// lanes, 0 for the others.
    pub(super) fn sign(&mut self, out: Option<Value>, value: Value, sign: i32) {
        let known = self.signs.get(&value).cloned();
        let spread = known.unwrap_or_else(|| {
            let from = self.operand(value);
            let to = self.temp(false, "sign");
            let op = VectorOp::ShiftRight;
            self.call(vector(op, to.clone(), vec![from], number(31)));
            self.signs.insert(value, to.clone());
            to
        });
        let mask = self.temp_of(out, true);
        let op = VectorOp::Compares(Comparison::Equal);
        let compare = vector(op, mask, vec![spread], number(sign));
        self.call(Vector { n: aligned_lanes(), ..compare });
    }
}
