use super::overlap::Apart;
use super::synchronise;
use crate::ascend::aiv::{
    Call, Expr, Global, Loop, Node, Operation, Pipe, Step, Sync, Tensor, Vector, VectorOp, Width,
    lanes, syncs,
};

const BARRIER: Sync = Sync::Barrier(Pipe::V);
const IN: Sync = Sync::Flag(Pipe::Mte2, Pipe::V);

fn add(to: &str, from: &str) -> Node {
    let (to, from) = (Tensor::named(to), vec![Tensor::named(from)]);
    let vector = Vector { op: VectorOp::Adds, to, from, scalar: None, n: lanes() };
    Node::Call(Call::from(Operation::Vector(vector)))
}

fn fetch(to: &str) -> Node {
    let (ub, gm) = (Tensor::named(to), Global::array(to));
    Node::Call(Call::from(Operation::Copy { out: false, ub, gm, n: Expr::Number(1) }))
}

fn when(body: Vec<Node>) -> Node {
    Node::If { condition: Expr::name("condition"), body, otherwise: Vec::new() }
}

/// Returns the synchronisation before each call, in text order.
fn placed(mut nodes: Vec<Node>) -> Vec<Vec<Sync>> {
    synchronise(&mut nodes, &Apart);
    syncs(&mut nodes).into_iter().map(|sync| sync.clone()).collect()
}

/// What only a branch needs is inside of it, so nothing waits if the branch is not taken, and counts for nothing behind it. A
/// wait before a branch also orders the code after it.
#[test]
fn a_wait_is_where_each_path_needs_it() {
    let cases: [(Vec<Node>, &[&[Sync]]); 6] = [
        (vec![fetch("a"), when(vec![add("b", "a")]), add("d", "c")], &[&[], &[IN], &[]]),
        (vec![fetch("a"), when(vec![add("b", "a")]), add("c", "a")], &[&[], &[IN], &[IN]]),
        (vec![when(vec![add("b", "a")]), add("c", "b")], &[&[], &[BARRIER]]),
        (vec![when(vec![fetch("a")]), add("b", "a")], &[&[], &[IN]]),
        (
            vec![fetch("a"), add("b", "a"), when(vec![add("c", "a")]), add("d", "a")],
            &[&[], &[IN], &[], &[]],
        ),
        (
            vec![fetch("a"), when(vec![when(vec![add("b", "a")]), add("c", "b")])],
            &[&[], &[IN], &[BARRIER]],
        ),
    ];
    for (n, (nodes, expected)) in cases.into_iter().enumerate() {
        assert_eq!(placed(nodes), expected, "case {n}");
    }
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

fn order(sync: Sync) -> Node {
    Node::Call(Call { operation: Operation::Order, sync: vec![sync] })
}

#[test]
fn an_event_covers_only_what_came_before_it() {
    let [set, wait] = [Sync::Set, Sync::Wait].map(|half| half(Pipe::Mte2, Pipe::V, 5));
    let nodes = |last| vec![fetch("a"), order(set), fetch("b"), order(wait), add("c", last)];
    let order = |last: &[Sync]| [vec![], vec![set], vec![], vec![wait], last.to_vec()];
    assert_eq!(placed(nodes("a")), order(&[]));
    assert_eq!(placed(nodes("b")), order(&[IN]));
}

/// A flag in an outer loop stands where the loop needs it, so that other work of the round comes first. One that every round of
/// one loop or two sweeps would need stands before the outer one.
#[test]
fn a_flag_leaves_two_loops_and_not_three() {
    let inside = |body| vec![Node::Loop(Loop { body, ..Loop::over("round", 2) })];
    let outer = [vec![add("x", "y")], inside(inside(vec![add("b", "a")]))].concat();
    let outer = [vec![fetch("a")], inside(outer)].concat();
    // In order: the copy, the outer loop, the first call, and two loops with their call.
    let all = placed(outer);
    assert!(all[1].is_empty() && all[2..].iter().flatten().any(|&s| s == IN), "{all:?}");
    let head = Loop::over("base", Expr::name("n")).step(Step::Sweep(Width::Tile));
    let sweep = Node::Loop(Loop { body: vec![add("b", "a")], ..head });
    for body in [add("b", "a"), sweep] {
        let all = placed([vec![fetch("a")], inside(vec![body])].concat());
        assert_eq!(all[..2], [vec![], vec![IN]], "{all:?}");
    }
}
