use super::overlap::Apart;
use super::{synchronise, synchronise_early};
use crate::ascend::aiv::{
    Call, Copy, CountRead, Expr, Global, If, Length, Loop, Node, Operation, Pipe, Relation, Step,
    Sync, Tensor, Type, Vector, VectorOp, Width, syncs,
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

fn placed_early(mut nodes: Vec<Node>) -> Vec<Vec<Sync>> {
    synchronise_early(&mut nodes, &Apart, CountRead::default());
    syncs(&mut nodes).into_iter().map(|sync| sync.clone()).collect()
}

fn order(sync: Sync) -> Node {
    Node::Call(Call { operation: Operation::Order, sync: vec![sync] })
}

fn read(from: &str) -> Node {
    let (name, from) = (from.to_uppercase(), Tensor::named(from));
    Node::Call(Call::from(Operation::Read { name, ty: Type::I32, from, at: Expr::Number(0) }))
}

#[test]
fn an_event_is_set_before_work_that_the_flag_does_not_need() {
    let [set, wait] = [Sync::Set, Sync::Wait].map(|half| half(Pipe::Mte2, Pipe::S, 1));
    let nodes = vec![fetch("a"), fetch("b"), read("a")];
    assert_eq!(placed_early(nodes.clone()), [vec![], vec![set], vec![wait]]);
    let flag = Sync::Flag(Pipe::Mte2, Pipe::S);
    // Without the second copy there is nothing to wait less for.
    assert_eq!(placed_early(vec![fetch("a"), read("a")]), [vec![], vec![flag]]);
    // The flag also serves the last statement, so its event stands behind both copies.
    let both = [nodes, vec![read("b")]].concat();
    assert_eq!(placed_early(both), [vec![], vec![], vec![flag], vec![]]);
}

#[test]
fn an_event_covers_only_what_came_before_it() {
    let [set, wait] = [Sync::Set, Sync::Wait].map(|half| half(Pipe::Mte2, Pipe::V, 5));
    let nodes = |last| vec![fetch("a"), order(set), fetch("b"), order(wait), add("c", last)];
    let order = |last: &[Sync]| [vec![], vec![set], vec![], vec![wait], last.to_vec()];
    assert_eq!(placed(nodes("a")), order(&[]));
    assert_eq!(placed(nodes("b")), order(&[IN]));
}

/// A flag in an outer loop stands where the loop needs it, so that other work of the round comes first.
#[test]
fn a_flag_is_not_moved_out_of_a_loop_of_loops_of_loops() {
    let inside = |body| vec![Node::Loop(Loop { body, ..Loop::over("round", 2) })];
    let outer = [vec![add("x", "y")], inside(inside(vec![add("b", "a")]))].concat();
    let outer = [vec![fetch("a")], inside(outer)].concat();
    // In order: the copy, the outer loop, the first call, and two loops with their call.
    let all = placed(outer);
    assert!(all[1].is_empty() && all[2..].iter().flatten().any(|&s| s == IN), "{all:?}");
    let all = placed([vec![fetch("a")], inside(vec![add("b", "a")])].concat());
    assert_eq!(all[1], [IN]);
}

/// Returns a call that writes a tile.
fn add_tile(to: &str, from: &str) -> Node {
    let (to, from) = (Tensor::named(to).of_round(Expr::name("base")), vec![Tensor::named(from)]);
    let vector = Vector { op: VectorOp::Adds, to, from, scalar: None, over: Length::Lanes };
    Node::Call(Call::from(Operation::Vector(vector)))
}

/// Returns a sweep over n entries.
fn sweep(n: &str, body: Vec<Node>) -> Node {
    let head = Loop::over("base", Expr::name(n)).step(Step::Sweep(Width::Tile));
    Node::Loop(Loop { body, ..head })
}

fn assign(name: &str, value: Expr) -> Node {
    Node::Call(Call::from(Operation::Assign(name.into(), value)))
}

/// Returns a branch on a variable above a limit.
fn when_above(name: &str, limit: i32, body: Vec<Node>) -> Node {
    let condition = Expr::test(Relation::Above, Expr::name(name), limit);
    Node::If(If { condition, body, otherwise: Vec::new() })
}

#[test]
fn a_sweep_that_ran_says_that_another_one_over_as_many_entries_runs() {
    let first = || vec![add("x", "c"), sweep("n", vec![add("b", "x")])];
    // In order: the first call, a sweep and its call, another sweep and its call.
    let again = [first(), vec![sweep("n", vec![add_tile("d", "x")])]].concat();
    let once = [vec![], vec![], vec![BARRIER], vec![], vec![]];
    assert_eq!(placed_early(again), once);
    let copied = vec![
        assign("m", Expr::name("n")),
        assign("n", 0.into()),
        sweep("m", vec![add_tile("d", "x")]),
    ];
    let copied = placed_early([first(), copied].concat());
    assert_eq!(copied.concat(), [BARRIER], "the other variable has the same value");
    let others = vec![
        vec![sweep("m", vec![add_tile("d", "x")])],
        vec![assign("n", Expr::name("m")), sweep("n", vec![add_tile("d", "x")])],
    ];
    for other in others {
        let all = placed_early([first(), other].concat());
        assert_eq!(all.concat(), [BARRIER; 2], "the other sweep has a length of its own");
    }
}

#[test]
fn a_branch_decides_a_later_branch_and_a_sweep_on_the_same_variable() {
    let start = || vec![add("x", "c"), when_above("n", 16, vec![add("b", "x")])];
    for (behind, barriers) in [
        (when_above("n", 16, vec![add_tile("d", "x")]), 1),
        (when_above("n", 17, vec![add_tile("d", "x")]), 1),
        (when_above("n", 15, vec![add_tile("d", "x")]), 2),
        (sweep("n", vec![add_tile("d", "x")]), 2),
    ] {
        let all = placed_early([start(), vec![behind]].concat());
        assert_eq!(all.concat().len(), barriers, "{all:?}");
    }
    // The sweep has a barrier of its own, or the branch before it was taken.
    let all = [vec![add("x", "c"), sweep("n", vec![add("b", "x")])]];
    let all =
        placed_early([all.concat(), vec![when_above("n", 16, vec![add_tile("d", "x")])]].concat());
    assert_eq!(all.concat(), [BARRIER]);
}

/// A sweep of at most 128 entries has one round, so no round waits for one before it.
#[test]
fn a_short_sweep_has_no_second_round() {
    let condition = |limit| Expr::test(Relation::Above, Expr::name("n"), limit);
    for (limit, barriers) in [(128, 0), (129, 1)] {
        let otherwise = vec![sweep("n", vec![add("a", "a")])];
        let branch = If { condition: condition(limit), body: Vec::new(), otherwise };
        let all = placed_early(vec![Node::If(branch)]);
        assert_eq!(all.concat().len(), barriers, "{all:?}");
    }
}

/// What only the first round does is ordered by what the second round does before the loop ends.
#[test]
fn a_loop_whose_branches_test_the_round_is_walked_round_by_round() {
    let only_first = |body| {
        let condition = Expr::test(Relation::Differs, Expr::name("round"), 1);
        Node::If(If { condition, body, otherwise: Vec::new() })
    };
    let wait = || Node::Call(Call { operation: Operation::Order, sync: vec![BARRIER] });
    let body = vec![wait(), only_first(vec![add("x", "c")])];
    let l = Node::Loop(Loop { body, ..Loop::over("round", 2) });
    // In order: the loop, the wait, the call in the branch, and the call behind the loop.
    let behind = placed_early(vec![l.clone(), add("b", "x")]);
    assert_eq!(behind.last(), Some(&vec![]));
    assert_eq!(placed(vec![l, add("b", "x")]).last(), Some(&vec![BARRIER]));
}

/// A flag that every round of two loops would need stands before the outer one.
#[test]
fn a_flag_leaves_two_loops() {
    let inner = sweep("n", vec![add("b", "a")]);
    let outer = Node::Loop(Loop { body: vec![inner], ..Loop::over("round", 8) });
    let all = placed_early(vec![fetch("a"), outer]);
    assert_eq!(all[..2], [vec![], vec![IN]], "{all:?}");
}
