//! The nodes of a kernel: statements, loops and branches.

use super::act::Sync;
use super::call::Call;
use crate::expr::Expr;

/// A node of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A statement.
    Call(Call),
    /// A loop.
    Loop(Loop),
    /// A branch.
    If(If),
    /// A comment: the heading of a phase.
    Note(String),
}

/// The number of lanes that a sweep processes per round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// `TILE`: the sweep uses all registers.
    Tile,
    /// `WIDE`: the sweep uses few registers, so that two vectors may have the bytes of all vectors
    /// of a tile.
    Wide {
        /// The largest number of lanes of the sweep, if one round must cover it: the sweep appends
        /// to an empty list, and a list that ends inside of a block accepts no more than a tile.
        in_one_round: Option<u32>,
    },
}

impl Width {
    /// Returns the name of the constant in the text.
    pub fn constant(self) -> Expr {
        Expr::Constant(match self {
            Self::Tile => "TILE",
            Self::Wide { .. } => "WIDE",
        })
    }
}

/// A loop that counts from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The name of the loop variable.
    pub variable: &'static str,
    /// The end of the loop, exclusive.
    pub bound: Expr,
    /// The lanes per round of a sweep; `None` for a loop that counts by one.
    pub width: Option<Width>,
    /// Whether the loop runs at least once for all data.
    pub always: bool,
    /// The synchronisation before the node.
    pub sync: Vec<Sync>,
    /// The body.
    pub body: Vec<Node>,
}

/// A branch on a condition of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct If {
    /// The condition, which reads no memory.
    pub condition: Expr,
    /// The nodes that run if the condition holds.
    pub body: Vec<Node>,
    /// The nodes that run if it does not hold.
    pub otherwise: Vec<Node>,
}

impl Node {
    /// Returns the statement, if the node is one.
    pub fn call(&self) -> Option<&Call> {
        if let Self::Call(call) = self { Some(call) } else { None }
    }

    /// Returns the direct children of the node.
    pub fn bodies(&self) -> impl Iterator<Item = &Self> {
        let [body, otherwise]: [&[Self]; 2] = match self {
            Self::Loop(Loop { body, .. }) => [body, &[]],
            Self::If(If { body, otherwise, .. }) => [body, otherwise],
            Self::Call(_) | Self::Note(_) => [&[]; 2],
        };
        body.iter().chain(otherwise)
    }

    /// Returns the node and all nodes in it, in text order.
    pub fn all(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        Box::new(std::iter::once(self).chain(self.bodies().flat_map(Self::all)))
    }

    /// Returns the scalar expressions of the node itself, without those of its children.
    pub fn expressions(&self) -> Vec<&Expr> {
        match self {
            Self::Call(call) => call.expressions(),
            Self::Loop(l) => vec![&l.bound],
            Self::If(branch) => vec![&branch.condition],
            Self::Note(_) => Vec::new(),
        }
    }
}

/// Returns all places for synchronisation, in text order.
pub fn syncs(nodes: &mut [Node]) -> Vec<&mut Vec<Sync>> {
    let mut all = Vec::new();
    for node in nodes {
        match node {
            Node::Call(call) => all.push(&mut call.sync),
            Node::Loop(l) => {
                all.push(&mut l.sync);
                all.extend(syncs(&mut l.body));
            }
            Node::If(branch) => {
                all.extend(syncs(&mut branch.body));
                all.extend(syncs(&mut branch.otherwise));
            }
            Node::Note(_) => {}
        }
    }
    all
}
