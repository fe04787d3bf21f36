//! Lowers searches over whole columns.

use super::Lower;
use crate::ascend::functions::search::{self, Shape};
use crate::tape::{Op, OpCode};

impl Lower<'_> {
    /// Lowers `Find` and `FindFree` to emitted functions, which examine all links of several ids at once.
    pub(super) fn search(&mut self, op: &Op, retries: u32) {
        let ids = if matches!(op.code, OpCode::Find(_)) { 2 } else { 1 };
        let bits = |n: usize| self.tape.column(op.columns[n]).len.ilog2();
        let shape =
            Shape { links: retries + 1, link_bits: bits(ids + 1), slot_bits: bits(ids + 2) };
        let column = |n: usize| self.storage(op.columns[n], 0);
        let n = self.scalar(op.args[0]);
        let call = if ids == 2 {
            search::find([0, 1, 2, 3, 4].map(column), n, shape)
        } else {
            search::find_free([0, 1, 2, 3].map(column), n, shape)
        };
        self.call(call);
    }
}
