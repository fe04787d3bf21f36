//! Walks over nodes, and loops.

use super::act::Sync;
use super::expr::Expr;
use super::node::{Call, Loop, Node, Step, Width};
use std::collections::BTreeSet;

impl Width {
    /// Returns the constant that holds it in the text.
    pub fn constant(self) -> &'static Expr {
        static LANES: [Expr; 2] = [Expr::Constant("TILE"), Expr::Constant("WIDE")];
        &LANES[usize::from(self != Self::Tile)]
    }
}

impl<O> Loop<O> {
    /// Returns a loop without a body that counts from 0 to `bound` by one. A constant bound is never 0.
    pub fn over(variable: &'static str, bound: impl Into<Expr>) -> Self {
        let (bound, body) = (bound.into(), Vec::new());
        let always = matches!(bound, Expr::Constant(_) | Expr::Number(1..));
        let step = Step::By(1.into());
        let (sync, only) = (Vec::new(), None);
        Self { variable, from: 0.into(), bound, only, step, always, sync, body }
    }

    /// Returns the loop with another first value, which may be the bound.
    #[must_use]
    pub fn from(self, from: impl Into<Expr>) -> Self {
        Self { from: from.into(), always: false, ..self }
    }

    /// Returns the loop with a condition under which each round starts.
    #[must_use]
    pub fn only(self, condition: Expr) -> Self {
        Self { only: Some(condition), always: false, ..self }
    }

    /// Returns the loop with another step.
    #[must_use]
    pub fn step(self, step: Step) -> Self {
        Self { step, ..self }
    }

    /// Returns the lanes per round, if the loop is a sweep.
    pub fn width(&self) -> Option<Width> {
        if let Step::Sweep(width) = self.step { Some(width) } else { None }
    }
}

impl<O> Node<O> {
    /// Returns the statement, if the node is one.
    pub fn call(&self) -> Option<&Call<O>> {
        if let Self::Call(call) = self { Some(call) } else { None }
    }

    /// Returns the direct children of the node.
    pub fn bodies(&self) -> impl Iterator<Item = &Self> {
        let [body, otherwise]: [&[Self]; 2] = match self {
            Self::Loop(Loop { body, .. }) => [body, &[]],
            Self::If { body, otherwise, .. } => [body, otherwise],
            Self::Call(_) | Self::Note(_) => [&[]; 2],
        };
        body.iter().chain(otherwise)
    }

    /// Returns the node and all nodes in it, in text order.
    pub fn all(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        Box::new(std::iter::once(self).chain(self.bodies().flat_map(Self::all)))
    }

    /// Returns the lists of the node's direct children, for changing them.
    pub fn bodies_mut(&mut self) -> Vec<&mut Vec<Self>> {
        match self {
            Self::Loop(Loop { body, .. }) => vec![body],
            Self::If { body, otherwise, .. } => vec![body, otherwise],
            Self::Call(_) | Self::Note(_) => Vec::new(),
        }
    }
}

impl Node {
    /// Returns the scalar expressions of the node itself, without those of its children.
    fn expressions(&self) -> Vec<&Expr> {
        match self {
            Self::Call(call) => call.expressions(),
            Self::Loop(Loop { from, bound, only, step, .. }) => {
                let by = match step {
                    Step::By(by) => Some(by),
                    Step::Sweep(width) => Some(width.constant()),
                    Step::Double => None,
                };
                [from, bound].into_iter().chain(only).chain(by).collect()
            }
            Self::If { condition, .. } => vec![condition],
            Self::Note(_) => Vec::new(),
        }
    }
}

/// Returns all scalar expressions of some nodes, and the expressions in them.
pub fn expressions(nodes: &[Node]) -> impl Iterator<Item = &Expr> {
    nodes.iter().flat_map(Node::all).flat_map(Node::expressions).flat_map(Expr::all)
}

/// Returns the names of the variables that some nodes read.
pub fn names_read(nodes: &[Node]) -> BTreeSet<&str> {
    let names = expressions(nodes).filter_map(|e| match e {
        Expr::Name(name) => Some(name.as_str()),
        _ => None,
    });
    names.collect()
}

/// Returns all places for synchronisation, in text order.
pub fn syncs<O>(nodes: &mut [Node<O>]) -> Vec<&mut Vec<Sync>> {
    let mut all = Vec::new();
    for node in nodes {
        match node {
            Node::Call(call) => all.push(&mut call.sync),
            Node::Loop(Loop { sync, body, .. }) => {
                all.push(sync);
                all.extend(syncs(body));
            }
            Node::If { body, otherwise, .. } => {
                all.extend(syncs(body));
                all.extend(syncs(otherwise));
            }
            Node::Note(_) => {}
        }
    }
    all
}
