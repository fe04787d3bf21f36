//! Lowers hashes, which are sums of two products, and the probe sequences that are made of them.

use super::Lower;
use crate::ascend::functions::mix;
use crate::tape::{Op, OpCode, Value};

impl Lower<'_> {
    /// Lowers a sum of two products to one emitted function, which need not mask the high bits of a word
    /// below 2^24.
    pub(super) fn madd(&mut self, op: &Op, p: i32, q: i32) {
        let range = self.ranges[op.args[0].0 as usize];
        let bits = if range.lo >= 0 && range.hi < 1 << 24 { 24 } else { 32 };
        let x = self.operand(op.args[0]);
        let sum = self.temp_of(op.out, false);
        let high = self.temp(false, "high");
        self.call(mix::mix(sum.clone(), x, bits, [p, q], high));
        self.at.extend(op.out.map(|out| (out, sum)));
    }

    /// Lowers the last operation of a probe sequence to one emitted function. Those before it are removed
    /// if nothing else reads their results. Returns false if the operation is another one.
    pub(super) fn sequence(&mut self, op: &Op) -> bool {
        let Some((mixed, bits)) = self.sequence_of(&op.args) else { return false };
        let mixed = self.operand(mixed);
        let to = self.temp_of(op.out, false);
        let scratch = ["stride", "high"].map(|name| self.temp(false, name));
        self.call(mix::sequence(to.clone(), mixed, scratch, bits));
        self.at.extend(op.out.map(|out| (out, to)));
        true
    }

    /// Returns the hash that the operands of an `or` are made of, and the bits of a position, if the result
    /// is a probe sequence of the links that the tape searches.
    fn sequence_of(&self, operands: &[Value]) -> Option<(Value, u32)> {
        let made = |v: Value| self.defs.get(&v).and_then(|op| Some((op.code, *op.args.first()?)));
        let bits_of = |v| match made(v)? {
            (OpCode::AndTo(mask), high) => match made(high)? {
                (OpCode::Shr(by), of) => Some((of, by, mask)),
                _ => None,
            },
            _ => None,
        };
        let (OpCode::MulTo(unit), odd) = made(operands[0])? else { return None };
        let (OpCode::OrTo(1), even) = made(odd)? else { return None };
        let (hash, by, mask) = bits_of(even)?;
        let (OpCode::Madd(p, q), mixed) = made(hash)? else { return None };
        let bits = mix::sequence_bits(by, mask, unit, (p, q))?;
        let searched = self.tape.body.all().any(|op| match op.code {
            OpCode::Find(links) | OpCode::FindFree(links) => links.position_bits == bits,
            _ => false,
        });
        (searched && bits_of(operands[1])? == (mixed, by, mask)).then_some((mixed, bits))
    }
}
