//! Lowers writes at computed indices to emitted functions, because a 910B has no scatter.

use super::Lower;
use crate::ascend::aiv::{Call, Node};
use crate::ascend::functions::{life, scatter};
use crate::tape::{Op, OpCode, Value};

impl Lower<'_> {
    pub(super) fn scatter(&mut self, op: &Op) {
        let a = &op.args[..];
        let column = self.storage(op.columns[0], 0);
        let call = match op.code {
            OpCode::Scatter(_) => {
                let [index, value] = [a[1], a[2]].map(|v| self.operand(v));
                let last = self.out.last().and_then(Node::call);
                let both = |last: &Call| scatter::both(last, &column, &index, &value);
                if self.all.contains(&a[3])
                    && let Some(both) = last.and_then(both)
                {
                    self.out.pop();
                    both
                } else {
                    let mask = self.mask_of(a[3]);
                    scatter::scatter(column, index, value, mask)
                }
            }
            // Lane i of the sweep is slot i, so a selection replaces the scatter.
            OpCode::SetLife(n) if self.defs.get(&a[1]).is_some_and(|d| d.code == OpCode::Iota) => {
                return self.fill(n, &column, a[2]);
            }
            OpCode::SetLife(n) => {
                let slot = self.operand(a[1]);
                let mask = self.mask_of(a[2]);
                life::set(column, slot, n, mask)
            }
            _ => {
                let slot = self.operand(a[1]);
                let mask = self.mask_of(a[2]);
                life::refresh(column, slot, mask)
            }
        };
        self.call(call);
    }

    /// Returns a mask as an operand; `None` if it is set in all lanes.
    fn mask_of(&mut self, mask: Value) -> Option<crate::ascend::aiv::Tensor> {
        (!self.all.contains(&mask)).then(|| self.operand(mask))
    }
}
