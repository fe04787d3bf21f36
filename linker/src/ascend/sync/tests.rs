//! Where a flag of nested loops stands. The committed texts and the tests of emitted kernels prove the rest.

use super::overlap::Apart;
use super::synchronise;
use crate::ascend::aiv::{
    Call, Expr, Global, Loop, Node, Operation, Pipe, Step, Sync, Tensor, Vector, VectorOp, Width,
    lanes, syncs,
};

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

/// Returns the synchronisation before each call, in text order.
fn placed(mut nodes: Vec<Node>) -> Vec<Vec<Sync>> {
    synchronise(&mut nodes, &Apart);
    syncs(&mut nodes).into_iter().map(|sync| sync.clone()).collect()
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
