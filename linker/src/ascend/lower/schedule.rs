//! Orders the calls of a tile by their depth in the dependence graph.
//!
//! A vector instruction that reads the result of another one waits for all instructions before it.
//! Calls without dependences on each other are therefore adjacent: a tile has as many barriers as
//! its longest dependence chain has calls, instead of one for nearly every call.

use crate::ascend::aiv::{Act, Call, Node, Place};

/// Reorders calls without branches. Two calls that access the same memory, at least one of which
/// writes, keep their order. `same` tells whether two places overlap.
pub fn by_level(body: Vec<Node>, same: &impl Fn(&Place, &Place) -> bool) -> Vec<Node> {
    let acts: Vec<Vec<Act>> =
        body.iter().map(|node| node.call().map(Call::acts).unwrap_or_default()).collect();
    let all: Vec<Vec<_>> =
        acts.iter().map(|acts| acts.iter().flat_map(Act::uses).collect()).collect();
    let conflict = |a: &[&(Place, bool)], b: &[&(Place, bool)]| {
        a.iter().any(|(p, w)| b.iter().any(|(q, x)| (*w || *x) && same(p, q)))
    };
    // Calls that access no memory have level 0, because they depend on no other call of the tile.
    let mut level: Vec<usize> = Vec::new();
    for (n, one) in all.iter().enumerate() {
        let before = (0..n).filter(|&m| conflict(&all[m], one)).map(|m| level[m] + 1);
        level.push(before.max().unwrap_or(usize::from(!one.is_empty())));
    }
    let mut order: Vec<_> = level.into_iter().zip(body).collect();
    order.sort_by_key(|(level, _)| *level);
    order.into_iter().map(|(_, node)| node).collect()
}
