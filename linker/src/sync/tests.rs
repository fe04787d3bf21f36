use super::{Overlap, synchronise};
use crate::aiv::{
    Call, Copy, Expr, Global, If, Length, Node, Operation, Pipe, Place, Sync, Tensor, Vector,
    VectorOp, syncs,
};

/// Buffers that share nothing.
struct Apart;

impl Overlap for Apart {
    fn overlap(&self, a: &Place, b: &Place) -> bool {
        a == b
    }
}

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
    Node::If(If { condition: Expr::name("turn"), body, otherwise: Vec::new() })
}

/// What lies before each call, in text order.
fn placed(mut nodes: Vec<Node>) -> Vec<Vec<Sync>> {
    synchronise(&mut nodes, &Apart);
    syncs(&mut nodes).into_iter().map(|sync| sync.clone()).collect()
}

/// What a branch needs of what comes before it is inside of it: where it is not taken, nothing waits.
#[test]
fn a_branch_waits_inside() {
    let nodes = vec![fetch("a"), when(vec![add("b", "a")]), add("d", "c")];
    assert_eq!(placed(nodes), [vec![], vec![IN], vec![]]);
}

/// What the branch waited for is not known behind it.
#[test]
fn a_branch_not_taken_waits_for_nothing() {
    let nodes = vec![fetch("a"), when(vec![add("b", "a")]), add("c", "a")];
    assert_eq!(placed(nodes), [vec![], vec![IN], vec![IN]]);
}

/// What the branch did must be waited for, though it may not have done it.
#[test]
fn what_a_branch_did_is_waited_for() {
    let nodes = vec![when(vec![add("b", "a")]), add("c", "b")];
    assert_eq!(placed(nodes), [vec![], vec![BARRIER]]);
    let nodes = vec![when(vec![fetch("a")]), add("b", "a")];
    assert_eq!(placed(nodes), [vec![], vec![IN]]);
}

/// A wait before the branch serves it and what follows.
#[test]
fn one_wait_before_a_branch_is_enough() {
    let nodes = vec![fetch("a"), add("b", "a"), when(vec![add("c", "a")]), add("d", "a")];
    assert_eq!(placed(nodes), [vec![], vec![IN], vec![], vec![]]);
}

/// A branch in a loop is ordered with its own next round, and with what the round does without it.
#[test]
fn a_branch_in_a_loop_meets_its_next_round() {
    let body = vec![when(vec![add("b", "a")]), add("a", "c")];
    let l = crate::aiv::Loop {
        variable: "round",
        bound: Expr::Number(2),
        width: None,
        always: true,
        sync: Vec::new(),
        body,
    };
    // The loop itself, the branch's call after the last round's write, and that write after the read.
    assert_eq!(placed(vec![Node::Loop(l)]), [vec![], vec![BARRIER], vec![BARRIER]]);
}

/// Branches in a branch.
#[test]
fn branches_nest() {
    let nodes = vec![fetch("a"), when(vec![when(vec![add("b", "a")]), add("c", "b")])];
    assert_eq!(placed(nodes), [vec![], vec![IN], vec![BARRIER]]);
}
