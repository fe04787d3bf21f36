//! The kernel as the analysis walks it: its places are numbers.

use super::known::{NumberedAct, PlaceMap};
use crate::ascend::aiv::{If, Node, Sync};

/// The rounds of a loop.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// Whether the loop runs at least once for all data.
    pub always: bool,
    /// Whether the loop is neither a sweep nor contains another loop.
    pub short: bool,
    /// Whether the loop contains loops that contain loops.
    pub outer: bool,
}

/// A statement, a loop or a branch.
#[derive(Clone, Debug)]
pub enum Step {
    Call {
        acts: Vec<NumberedAct>,
        /// The synchronisation before it.
        sync: Vec<Sync>,
    },
    Loop {
        rounds: Rounds,
        /// The synchronisation before it.
        sync: Vec<Sync>,
        body: Vec<Step>,
    },
    If {
        /// The steps that run if the condition holds.
        body: Vec<Step>,
        /// The steps that run if it does not hold.
        otherwise: Vec<Step>,
    },
}

/// Returns the steps of a kernel.
pub fn steps(map: &PlaceMap<'_>, nodes: &[Node]) -> Vec<Step> {
    let step = |node: &Node| match node {
        Node::Note(_) => None,
        Node::Call(call) => Some(Step::Call { acts: map.acts(call), sync: call.sync.clone() }),
        Node::If(If { body, otherwise, .. }) => {
            let [body, otherwise] = [body, otherwise].map(|nodes| steps(map, nodes));
            Some(Step::If { body, otherwise })
        }
        Node::Loop(l) => {
            let inner = |node: &Node| matches!(node, Node::Loop(_));
            let nested = |node: &Node| node.bodies().flat_map(Node::all).any(inner);
            let body = || l.body.iter().flat_map(Node::all);
            let outer = body().any(|node| inner(node) && nested(node));
            let short = l.width().is_none() && !body().any(inner);
            let rounds = Rounds { always: l.always, short, outer };
            Some(Step::Loop { rounds, sync: Vec::new(), body: steps(map, &l.body) })
        }
    };
    nodes.iter().filter_map(step).collect()
}

/// Returns all places for synchronisation, in the order of [`crate::ascend::aiv::syncs`].
pub fn syncs(steps: &mut [Step]) -> Vec<&mut Vec<Sync>> {
    let mut all = Vec::new();
    for step in steps {
        match step {
            Step::Call { sync, .. } => all.push(sync),
            Step::Loop { sync, body, .. } => {
                all.push(sync);
                all.extend(syncs(body));
            }
            Step::If { body, otherwise } => {
                all.extend(syncs(body));
                all.extend(syncs(otherwise));
            }
        }
    }
    all
}
