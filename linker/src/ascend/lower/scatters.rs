//! Lowers writes at computed indices to emitted functions, because a 910B has no scatter.

use super::Lower;
use crate::ascend::aiv::{Expr, Tensor};
use crate::ascend::functions::{life, scatter};
use crate::tape::{Op, OpCode, Value};

impl Lower<'_> {
    pub(super) fn scatter(&mut self, op: &Op) {
        let a = &op.args[..];
        let column = self.storage(op.columns[0], 0);
        let call = match op.code {
            OpCode::Scatter => {
                let [index, value] = [a[1], a[2]].map(|v| self.operand(v));
                if self.all.contains(&a[3])
                    && let Some((from, first)) = self.difference(a[1])
                {
                    scatter::from_first(column, from, first, value)
                } else {
                    let mask = self.mask_of(a[3]);
                    scatter::scatter(column, index, value, mask)
                }
            }
            // Lane i of the sweep is slot i, so a selection replaces the scatter.
            OpCode::SetLife(n) if self.defs.get(&a[1]).is_some_and(|d| d.code == OpCode::Iota) => {
                return self.fill(n, &column, a[2]);
            }
            code => {
                let (slot, mask) = (self.operand(a[1]), self.mask_of(a[2]));
                match code {
                    OpCode::SetLife(n) => life::set(column, slot, n, mask),
                    _ => life::refresh(column, slot, mask),
                }
            }
        };
        self.call(call);
    }

    /// Returns the two operands of a difference of a column's words and a scalar, which the scalar unit
    /// computes as it writes.
    fn difference(&self, index: Value) -> Option<(Tensor, Expr)> {
        let Op { code: OpCode::SubScalar, args, .. } = self.defs.get(&index)? else { return None };
        let from = self.at.get(&args[0]).filter(|from| from.temp().is_none())?;
        Some((from.clone(), self.scalar(args[1])))
    }

    /// Returns a mask as an operand; `None` if it is set in all lanes.
    fn mask_of(&mut self, mask: Value) -> Option<Tensor> {
        (!self.all.contains(&mask)).then(|| self.operand(mask))
    }
}
