//! Signs: int32 has no compare but EQ, so "below zero" is a shift that spreads the sign, and EQ.

use super::Lower;
use crate::aiv::Pipe;
use crate::tape::{Code, Op, Value};

impl Lower<'_> {
    /// Whether a choice is max(x, 0): 0 where x is negative, else x.
    pub(super) fn cuts_at_zero(&self, a: &[Value]) -> bool {
        let code = |v: Value| self.defs.get(&v).map(|op| (op.code, op.args.first().copied()));
        code(a[0]) == Some((Code::Neg, Some(a[2])))
            && matches!(code(a[1]), Some((Code::Splat(0), _)))
    }

    /// A lifetime, and the scalar that it lies below where this difference is negative.
    pub(super) fn below(&self, difference: Value) -> Option<(Value, String)> {
        let Op { code: Code::SubScalar, args, .. } = self.defs.get(&difference)? else {
            return None;
        };
        self.halves.contains(&args[0]).then(|| (args[0], self.bare(args[1])))
    }

    /// How often a sign test is used only by a `!`.
    pub(super) fn turned(&self, mask: Option<Value>) -> usize {
        let not = |op: &&Op| op.code == Code::MaskNot && Some(op.args[0]) == mask;
        self.defs.values().filter(not).count()
    }

    /// Lanes whose sign, spread over the word, is `sign`: the only int32 compare is EQ.
    pub(super) fn sign(&mut self, out: Option<Value>, value: Value, sign: i32) {
        let known = self.signs.get(&value).cloned();
        let (spread, to) = known.unwrap_or_else(|| {
            let (text, place) = self.operand(value);
            let (spread, to) = self.temp(false, "sign");
            let call = format!("ShiftRight({spread}, {text}, 31, lanes);");
            self.call(Pipe::V, call, vec![place], vec![to.clone()]);
            self.signs.insert(value, (spread.clone(), to.clone()));
            (spread, to)
        });
        let (mask, place) = self.temp(true, &self.called(out));
        let call = format!("CompareScalar({mask}, {spread}, {sign}, CMPMODE::EQ, whole);");
        self.call(Pipe::V, call, vec![to], vec![place.clone()]);
        self.at.extend(out.map(|out| (out, (mask, place))));
    }
}
