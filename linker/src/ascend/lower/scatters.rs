//! Lowers writes at computed indices to emitted functions, because a 910B has no scatter.

use super::{Lower, buffer_name};
use crate::ascend::aiv::{Act, Call, Expr, Node, Operation, Tensor};
use crate::ascend::functions::{life, scatter};
use crate::tape::{Block, Column, Kind, Op, OpCode, Value};

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
                } else if self.all.contains(&a[3])
                    && let Some((from, first)) = self.difference(a[1])
                {
                    scatter::from_first(column, from, first, value)
                } else {
                    let mask = self.mask_of(a[3]);
                    let range = self.ranges[a[1].0 as usize];
                    // Lanes whose index is below 0 are not among those under the mask.
                    scatter::scatter(column, index, value, mask, range.hi < 1 << 15)
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

    /// Adds the calls for a sweep over n entries that only scatters one column. The indices are packed as
    /// early as possible, so that the scalar unit need not wait for other work of the vector unit. Returns
    /// false if the sweep does something else.
    pub(super) fn scatter_whole(&mut self, of: &Block, n: &Expr, body: &[Node]) -> bool {
        let [_, Node::Call(call)] = body else { return false };
        // The words of the column, from which the scalar unit may subtract a number.
        let index =
            of.ops.iter().find(|op| matches!(op.code, OpCode::Scatter(_))).map(|op| op.args[1]);
        let words = index.map(|index| match self.defs.get(&index) {
            Some(Op { code: OpCode::SubScalar, args, .. }) => args[0],
            _ => index,
        });
        let range = words.map(|words| self.ranges[words.0 as usize]);
        let fits = range.is_some_and(|range| range.lo >= 0 && range.hi < 1 << 15);
        let columns = || self.tape.columns.iter().filter(|column| column.kind != Kind::Life);
        let len = |name: &str| {
            let named = |c: &&Column| {
                let width = if let Kind::List { width } = c.kind { width } else { 1 };
                (0..width).any(|n| buffer_name(c, n) == name)
            };
            i32::try_from(columns().find(named)?.len.next_multiple_of(128)).ok()
        };
        let Some([pack, scatter]) = scatter::whole(call, n, len).filter(|_| fits) else {
            return false;
        };
        let at = self.out.len()
            - self
                .out
                .iter()
                .rev()
                .take_while(|node| publishes(node) || apart(node, &pack))
                .count();
        self.out.insert(at, Node::Call(pack));
        self.call(scatter);
        true
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

/// Returns whether a node only copies words to global memory. A call that writes behind these words may
/// stand before it, so that it need not wait for the copy.
fn publishes(node: &Node) -> bool {
    let copies = |call: &Call| matches!(&call.operation, Operation::Copy(copy) if copy.out);
    node.call().is_some_and(copies)
}

/// Returns whether a call may stand before a node: neither touches what the other writes, and the node
/// sets no variable of the call.
pub fn apart(node: &Node, call: &Call) -> bool {
    let calls = || node.all().filter_map(Node::call);
    let acts: Vec<Act> = calls().flat_map(Call::acts).collect();
    let own = call.acts();
    let conflict = |act: &Act| {
        let uses = act.uses();
        let other = own.iter().flat_map(Act::uses);
        other.into_iter().any(|(a, x)| uses.iter().any(|(b, y)| a == *b && (x || *y)))
    };
    let reads = |name: &str| {
        let mut found = false;
        let mut visit = |e: &Expr| found |= matches!(e, Expr::Name(n) if n == name);
        call.expressions().into_iter().for_each(|e| e.each(&mut visit));
        found
    };
    let ends = calls().any(|c| matches!(c.operation, Operation::Leave | Operation::WaitForAll));
    !ends && !acts.iter().any(conflict) && !calls().filter_map(Call::sets).any(reads)
}
