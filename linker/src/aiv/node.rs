//! Calls in loops and branches.

use super::act::Sync;
use super::call::Call;
use super::expr::Expr;

/// A piece of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A statement.
    Call(Call),
    /// A loop.
    Loop(Loop),
    /// A branch.
    If(If),
    /// A comment: a step of the paper.
    Note(String),
}

/// How many lanes a sweep takes per round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// `TILE`: all registers are in use.
    Tile,
    /// `WIDE`: few registers are in use, and two vectors have the bytes of all vectors of a tile.
    Wide {
        /// The most lanes that the sweep has, if it must take all of them in one round: it appends to an empty list, and
        /// a list that ends inside a block takes no more than a tile.
        in_one_round: Option<u32>,
    },
}

impl Width {
    /// The constant in the text.
    pub fn constant(self) -> Expr {
        Expr::Constant(match self {
            Self::Tile => "TILE",
            Self::Wide { .. } => "WIDE",
        })
    }
}

/// A loop from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// What counts.
    pub variable: &'static str,
    /// Where it ends.
    pub bound: Expr,
    /// Lanes per round of a sweep; `None` for a loop that counts by one.
    pub width: Option<Width>,
    /// Whether it runs at all, whatever the data.
    pub always: bool,
    /// Synchronisation before it.
    pub sync: Vec<Sync>,
    /// What runs.
    pub body: Vec<Node>,
}

/// What runs only if a condition of the run holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct If {
    /// The condition. It reads no memory.
    pub condition: Expr,
    /// What runs if it holds.
    pub body: Vec<Node>,
    /// What runs if it does not hold.
    pub otherwise: Vec<Node>,
}

impl Node {
    /// The statement, if it is one.
    pub fn call(&self) -> Option<&Call> {
        if let Self::Call(call) = self { Some(call) } else { None }
    }

    /// The nodes in it.
    pub fn bodies(&self) -> impl Iterator<Item = &Self> {
        let [body, otherwise]: [&[Self]; 2] = match self {
            Self::Loop(Loop { body, .. }) => [body, &[]],
            Self::If(If { body, otherwise, .. }) => [body, otherwise],
            Self::Call(_) | Self::Note(_) => [&[]; 2],
        };
        body.iter().chain(otherwise)
    }

    /// The node, and those in it, in text order.
    pub fn all(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        Box::new(std::iter::once(self).chain(self.bodies().flat_map(Self::all)))
    }

    /// Its own scalar expressions, without those of the nodes in it.
    pub fn expressions(&self) -> Vec<&Expr> {
        match self {
            Self::Call(call) => call.expressions(),
            Self::Loop(l) => vec![&l.bound],
            Self::If(branch) => vec![&branch.condition],
            Self::Note(_) => Vec::new(),
        }
    }
}

/// Where the units can be synchronised, in text order.
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
