//! The kernel as the analysis walks it: its places are numbers.

use crate::ascend::aiv::{Expr, Pipe, Sync};
use std::collections::BTreeSet;

/// An effect of a call, with numbered places.
#[derive(Clone, Debug)]
pub enum NumberedAct {
    /// One unit touches places. Each is a number, and whether the unit writes there.
    Use {
        pipe: Pipe,
        /// The places that it touches.
        touched: Vec<(usize, bool)>,
    },
    /// A synchronisation inside of the call.
    Sync(Sync),
    /// Effects that depend on the data: either the first ones happen or the second ones. The first ones
    /// happen if the condition holds, where it is known.
    Either(Option<Expr>, Vec<NumberedAct>, Vec<NumberedAct>),
}

impl NumberedAct {
    /// Returns the conditions of the effect and of those in it.
    pub fn conditions(&self) -> Vec<&Expr> {
        let Self::Either(condition, a, b) = self else { return Vec::new() };
        let inner = a.iter().chain(b).flat_map(Self::conditions);
        condition.iter().chain(inner).collect()
    }
}

/// The rounds of a loop.
#[derive(Clone, Debug)]
pub struct Rounds {
    pub variable: &'static str,
    /// The bound up to which the loop counts from 0, if the analysis follows scalars.
    pub bound: Option<Expr>,
    /// The least number by which a round changes the variable.
    pub step: i32,
    /// Whether a branch in the loop tests the variable.
    pub differ: bool,
    /// The number of these rounds, if it is constant and the analysis follows scalars.
    pub each: Option<i32>,
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
        /// The variable that the call sets, and its value if that is a scalar expression.
        sets: Option<(String, Option<Expr>)>,
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
        /// The condition, if the analysis follows scalars.
        condition: Option<Expr>,
        /// The steps that run if the condition holds.
        body: Vec<Step>,
        /// The steps that run if it does not hold.
        otherwise: Vec<Step>,
    },
    /// From here on, only these variables matter to branches and loops.
    Keep(BTreeSet<String>),
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
            Step::If { body, otherwise, .. } => {
                all.extend(syncs(body));
                all.extend(syncs(otherwise));
            }
            Step::Keep(_) => {}
        }
    }
    all
}
