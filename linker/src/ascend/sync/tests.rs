use super::overlap::Apart;
use super::synchronise;
use crate::ascend::aiv::{
    Call, Copy, CountRead, Expr, Global, If, Length, Loop, Node, Operation, Pipe, Sync, Tensor,
    Vector, VectorOp, syncs,
};

const BARRIER: Sync = Sync::Barrier(Pipe::V);
const IN: Sync = Sync::Flag(Pipe::Mte2, Pipe::V);

fn add(to: &str, from: &str) -> Node {
    let (to, from) = (Tensor::named(to), vec![Tensor::named(from)]);
    let vector = Vector { op: VectorOp::Adds, to, from, scalar: None, over: Length::Lanes };
    Node::Call(Call::from(Operation::Vector(vector)))
}

fn fetch(to: &str) -> Node {
    let (ub, gm) = (Tensor::named(to), Global::array(to));
    Node::Call(Call::from(Operation::Copy(Copy { out: false, ub, gm, n: Expr::Number(1) })))
}

fn when(body: Vec<Node>) -> Node {
    Node::If(If { condition: Expr::name("condition"), body, otherwise: Vec::new() })
}

/// Returns the synchronisation before each call, in text order.
fn placed(mut nodes: Vec<Node>) -> Vec<Vec<Sync>> {
    synchronise(&mut nodes, &Apart, CountRead::default());
    syncs(&mut nodes).into_iter().map(|sync| sync.clone()).collect()
}

/// The synchronisation that only a branch needs is inside of the branch, so nothing waits if it is
/// not taken.
#[test]
fn a_wait_that_only_a_branch_needs_is_inside_of_it() {
    let nodes = vec![fetch("a"), when(vec![add("b", "a")]), add("d", "c")];
    assert_eq!(placed(nodes), [vec![], vec![IN], vec![]]);
}

#[test]
fn a_wait_inside_of_a_branch_does_not_count_after_it() {
    let nodes = vec![fetch("a"), when(vec![add("b", "a")]), add("c", "a")];
    assert_eq!(placed(nodes), [vec![], vec![IN], vec![IN]]);
}

#[test]
fn an_access_in_a_branch_is_waited_for_after_it() {
    let nodes = vec![when(vec![add("b", "a")]), add("c", "b")];
    assert_eq!(placed(nodes), [vec![], vec![BARRIER]]);
    let nodes = vec![when(vec![fetch("a")]), add("b", "a")];
    assert_eq!(placed(nodes), [vec![], vec![IN]]);
}

/// A wait before a branch also orders the code after the branch.
#[test]
fn one_wait_before_a_branch_is_enough() {
    let nodes = vec![fetch("a"), add("b", "a"), when(vec![add("c", "a")]), add("d", "a")];
    assert_eq!(placed(nodes), [vec![], vec![IN], vec![], vec![]]);
}

/// A branch in a loop is ordered with the next round, and with the rest of the same round.
#[test]
fn a_branch_in_a_loop_is_ordered_with_the_next_round() {
    let body = vec![when(vec![add("b", "a")]), add("a", "c")];
    let l = Loop { body, ..Loop::over("round", 2) };
    // In order: the loop itself, the call in the branch after the write of the previous round, and
    // that write after the read.
    assert_eq!(placed(vec![Node::Loop(l)]), [vec![], vec![BARRIER], vec![BARRIER]]);
}

#[test]
fn a_branch_may_contain_a_branch() {
    let nodes = vec![fetch("a"), when(vec![when(vec![add("b", "a")]), add("c", "b")])];
    assert_eq!(placed(nodes), [vec![], vec![IN], vec![BARRIER]]);
}

/// A loop that starts at its bound runs no barrier of its body.
#[test]
fn a_wait_inside_of_a_loop_that_may_be_empty_does_not_count_after_it() {
    let after = |head: Loop| {
        let l = Loop { body: vec![add("a", "a")], ..head };
        placed(vec![add("x", "c"), Node::Loop(l), add("b", "x")]).pop()
    };
    assert_eq!(after(Loop::over("n", 8).from(Expr::name("first"))), Some(vec![BARRIER]));
    assert_eq!(after(Loop::over("n", 8)), Some(vec![]));
}
