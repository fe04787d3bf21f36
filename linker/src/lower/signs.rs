//! Signs: int32 has no compare but EQ, so "below zero" is a shift that spreads the sign, and EQ.

use super::Lower;
use super::lanes::vector;
use crate::aiv::{Comparison, Expr, Length, Scalar, Type, VectorOp};
use crate::tape::{Op, OpCode, Value};

impl Lower<'_> {
    /// The constant n of a choice that is max(x, n): n where x - n is negative, else x.
    pub(super) fn least(&self, choice: &[Value]) -> Option<i32> {
        let def = |v: Value| self.defs.get(&v);
        let (mask, &Op { code: OpCode::Splat(n), .. }) = (def(choice[0])?, def(choice[1])?) else {
            return None;
        };
        let tested = *mask.args.first()?;
        let is_difference =
            def(tested).is_some_and(|op| op.code == OpCode::AddTo(-n) && op.args[0] == choice[2]);
        let is_below = if n == 0 { tested == choice[2] } else { is_difference };
        (mask.code == OpCode::IsNegative && is_below).then_some(n)
    }

    /// A lifetime, and the scalar that it lies below where this difference is negative.
    pub(super) fn below(&self, difference: Value) -> Option<(Value, Expr)> {
        let Op { code: OpCode::SubScalar, args, .. } = self.defs.get(&difference)? else {
            return None;
        };
        self.halves.contains(&args[0]).then(|| (args[0], self.scalar(args[1])))
    }

    /// How often a sign test is used only by a `!`.
    pub(super) fn turned(&self, mask: Option<Value>) -> usize {
        let not = |op: &&Op| op.code == OpCode::MaskNot && Some(op.args[0]) == mask;
        self.defs.values().filter(not).count()
    }

    /// Whether a sign test holds in no lane, because no lane can be negative.
    pub(super) fn everywhere(&self, test: Value) -> bool {
        let test = self.defs.get(&test).filter(|op| op.code == OpCode::IsNegative);
        test.is_some_and(|op| {
            !self.halves.contains(&op.args[0]) && self.ranges[op.args[0].0 as usize].lo >= 0
        })
    }

    /// Lanes whose sign, spread over the word, is `sign`: the only int32 compare is EQ.
    pub(super) fn sign(&mut self, out: Option<Value>, value: Value, sign: i32) {
        let number = |n: i32| Some(Scalar::new(n, Type::I32));
        let known = self.signs.get(&value).cloned();
        let spread = known.unwrap_or_else(|| {
            let from = self.operand(value);
            let to = self.temp(false, "sign");
            let op = VectorOp::ShiftRight;
            self.call(vector(op, to.clone(), vec![from], number(31), Length::Lanes));
            self.signs.insert(value, to.clone());
            to
        });
        let mask = self.temp_of(out, true);
        let op = VectorOp::CompareScalar(Comparison::Equal);
        self.call(vector(op, mask.clone(), vec![spread], number(sign), Length::Repeats));
        self.at.extend(out.map(|out| (out, mask)));
    }
}
