//! Lowers searches for links.

use super::Lower;
use super::scatters::apart;
use crate::ascend::aiv::{Call, Expr, If, Node, Pipe, Relation};
use crate::ascend::functions::search::{
    FEW, FIND_FEW_FREE, FIND_FREE, begin_find_free, find, find_free,
};
use crate::tape::{Op, OpCode};
use avsg_device::machine::links::Links;

impl Lower<'_> {
    /// Lowers `Find` and `FindFree` to emitted functions, which examine all links of several ids at once,
    /// or for few ids one link after the other.
    pub(super) fn search(&mut self, op: &Op, links: &Links) {
        let column = |n: usize| self.storage(op.columns[n], 0);
        let n = self.scalar(op.args[0]);
        if matches!(op.code, OpCode::Find(_)) {
            return self.call(find([0, 1, 2, 3, 4].map(column), n, links));
        }
        let columns = || [0, 1, 2, 3].map(column);
        let begin = begin_find_free([1, 2].map(column), n.clone(), links);
        let [all, few] = [&FIND_FREE, &FIND_FEW_FREE]
            .map(|function| vec![Node::Call(find_free(function, columns(), n.clone(), links))]);
        let several = || Expr::test(Relation::Above, n.clone(), FEW);
        // The vector unit gathers the first links while the scalar unit scatters words.
        let first =
            self.out.len() - self.out.iter().rev().take_while(|n| beside(n, &begin)).count();
        let body = vec![Node::Call(begin)];
        self.out.insert(first, Node::If(If { condition: several(), body, otherwise: Vec::new() }));
        self.out.push(Node::If(If { condition: several(), body: all, otherwise: few }));
    }
}

/// Returns whether only the scalar unit runs a node, which touches nothing that the call needs.
fn beside(node: &Node, call: &Call) -> bool {
    let mut calls = node.all().filter_map(Node::call).peekable();
    calls.peek().is_some()
        && calls.flat_map(Call::acts).all(|act| act.only(Pipe::S))
        && apart(node, call)
}
