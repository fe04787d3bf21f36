//! Lowers searches for links.

use super::Lower;
use crate::ascend::functions::search::{find, find_free};
use crate::tape::{Op, OpCode};
use avsg_device::machine::links::Links;

impl Lower<'_> {
    /// Lowers `Find` and `FindFree` to emitted functions, which examine all links of several ids at once.
    pub(super) fn search(&mut self, op: &Op, links: &Links) {
        let column = |n: usize| self.storage(op.columns[n], 0);
        let n = self.scalar(op.args[0]);
        let call = match op.code {
            OpCode::Find(_) => find([0, 1, 2, 3, 4].map(column), n, links),
            _ => find_free([0, 1, 2, 3].map(column), n, links),
        };
        self.call(call);
    }
}
