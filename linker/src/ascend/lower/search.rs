//! Lowers searches over whole columns, and the exchange of a row that cores share.

use super::Lower;
use crate::ascend::aiv::{Call, Copy, Expr, Global, If, Node, Operation, Tensor};
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

    /// Lowers the exchange of a shared row: a copy of this core's part out, a wait for all cores,
    /// and a copy of the whole row in.
    pub(super) fn share(&mut self, op: &Op) {
        let [row, first, part, n] = [0, 1, 2, 3].map(|n| self.scalar(op.args[n]));
        let (column, array) = (self.storage(op.columns[0], 0), self.gm(op.columns[1]));
        let copy = |out: bool, at: Expr, n: Expr| {
            let (ub, gm) = (Tensor::named(&column), Global::at(&array, at));
            Call::from(Operation::Copy(Copy { out, ub, gm, n }))
        };
        self.call(copy(true, row.clone() + first, part));
        self.call(Call::from(Operation::WaitForAll));
        // Only the owner of the request continues.
        let leave = vec![Node::Call(Call::from(Operation::Leave))];
        let condition = Expr::field("owner").opposite();
        self.out.push(Node::If(If { condition, body: leave, otherwise: Vec::new() }));
        self.call(copy(false, row, n));
    }
}
