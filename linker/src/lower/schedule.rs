//! The order of a tile's calls: level by level.
//!
//! A vector instruction that needs another one's result waits for all that came before it. So calls
//! that do not need each other go side by side: as many waits as the longest chain has links, instead
//! of one for nearly every call.

use crate::aiv::{Act, Node, Place};

/// Reorders straight code; what touches one place, one of them writing, keeps its order.
pub fn by_level(body: Vec<Node>, same: &impl Fn(&Place, &Place) -> bool) -> Vec<Node> {
    // Scalars of the tile come first: they depend on nothing in it.
    let (mut out, calls): (Vec<Node>, Vec<Node>) =
        body.into_iter().partition(|n| uses(n).is_empty());
    let all: Vec<_> = calls.iter().map(uses).collect();
    let conflict = |a: &[(Place, bool)], b: &[(Place, bool)]| {
        a.iter().any(|(p, w)| b.iter().any(|(q, x)| (*w || *x) && same(p, q)))
    };
    let mut level = vec![0usize; calls.len()];
    for n in 0..calls.len() {
        let before = (0..n).filter(|&m| conflict(&all[m], &all[n])).map(|m| level[m] + 1);
        level[n] = before.max().unwrap_or(0);
    }
    let mut order: Vec<_> = level.into_iter().zip(calls).collect();
    order.sort_by_key(|(level, _)| *level);
    out.extend(order.into_iter().map(|(_, node)| node));
    out
}

/// Places that a node touches, and whether it writes them.
fn uses(node: &Node) -> Vec<(Place, bool)> {
    let Node::Call(call) = node else { return Vec::new() };
    fn all(acts: &[Act]) -> Vec<(&Vec<Place>, &Vec<Place>)> {
        let uses = acts.iter().flat_map(|act| match act {
            Act::Use { reads, writes, .. } => vec![(reads, writes)],
            Act::Maybe(acts) => all(acts),
            Act::Sync(_) => Vec::new(),
        });
        uses.collect()
    }
    let acts = all(&call.acts).into_iter();
    let ways = |(r, w): (&Vec<Place>, &Vec<Place>)| {
        let reads: Vec<_> = r.iter().map(|p| (p.clone(), false)).collect();
        reads.into_iter().chain(w.iter().map(|p| (p.clone(), true))).collect::<Vec<_>>()
    };
    acts.flat_map(ways).collect()
}
