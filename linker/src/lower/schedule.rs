//! The order of a tile's calls: level by level.
//!
//! A vector instruction that needs another one's result waits for all that came before it. So calls
//! that do not need each other go side by side: as many waits as the longest chain has links, instead
//! of one for nearly every call.

use crate::aiv::{Act, Call, Node, Place};

/// Reorders straight code; what touches one place, one of them writing, keeps its order.
pub fn by_level(body: Vec<Node>, same: &impl Fn(&Place, &Place) -> bool) -> Vec<Node> {
    let acts: Vec<Vec<Act>> =
        body.iter().map(|node| node.call().map(Call::acts).unwrap_or_default()).collect();
    let all: Vec<Vec<_>> =
        acts.iter().map(|acts| acts.iter().flat_map(Act::uses).collect()).collect();
    let conflict = |a: &[(&Place, bool)], b: &[(&Place, bool)]| {
        a.iter().any(|(p, w)| b.iter().any(|(q, x)| (*w || *x) && same(p, q)))
    };
    // Scalars of the tile have level 0: they depend on nothing in it.
    let mut level: Vec<usize> = Vec::new();
    for (n, one) in all.iter().enumerate() {
        let before = (0..n).filter(|&m| conflict(&all[m], one)).map(|m| level[m] + 1);
        level.push(before.max().unwrap_or(usize::from(!one.is_empty())));
    }
    let mut order: Vec<_> = level.into_iter().zip(body).collect();
    order.sort_by_key(|(level, _)| *level);
    order.into_iter().map(|(_, node)| node).collect()
}
