//! Hashes: sums of products.

use super::Lower;
use super::lanes::{BARRIER, v};
use crate::tape::Op;

impl Lower<'_> {
    /// A sum of products, in one helper. An id has no bits above the 22 that it takes.
    pub(super) fn dot(&mut self, op: &Op, p: i32, q: i32) {
        let range = self.ranges[op.args[0].0 as usize];
        let bits = if range.lo >= 0 && range.hi < 1 << 22 { 22 } else { 32 };
        let (x, from) = self.operand(op.args[0]);
        let ((low, high), (sum, to), (rest, scratch)) = (
            (self.word(0xFFFF).1, self.word(0x3F).1),
            self.temp(false, &self.called(op.out)),
            self.temp(false, "high"),
        );
        let mut acts = vec![v(&[&from, &low], &[&to]), v(&[&from], &[&scratch])];
        acts.extend([BARRIER, v(&[&to], &[&to])]);
        if bits > 22 {
            acts.push(v(&[&scratch, &high], &[&scratch]));
        }
        acts.extend([BARRIER, v(&[&to], &[&to]), v(&[&scratch], &[&scratch])]);
        acts.extend([BARRIER, v(&[&to, &scratch], &[&to])]);
        self.helper(format!("Mix({sum}, {x}, {bits}, {p}, {q}, {rest}, lanes);"), acts);
        self.at.extend(op.out.map(|out| (out, (sum, to))));
    }
}
