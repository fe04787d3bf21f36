//! Lowers hashes, which are sums of two products, and the probe sequences that are made of them.

use super::Lower;
use crate::ascend::functions::mix;
use crate::tape::Op;

impl Lower<'_> {
    /// Lowers a sum of two products to one emitted function, which need not mask the high bits of a word
    /// below 2^24.
    pub(super) fn madd(&mut self, op: &Op, p: i32, q: i32) {
        let range = self.ranges[op.args[0].0 as usize];
        let bits = if range.lo >= 0 && range.hi < 1 << 24 { 24 } else { 32 };
        let x = self.operand(op.args[0]);
        let sum = self.temp_of(op.out, false);
        let high = self.temp(false, "high");
        self.call(mix::mix(sum, x, bits, [p, q], high));
    }
}
