//! The kernel as the analysis walks it: its places are numbers.

use crate::ascend::aiv::{Pipe, Sync};

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
    /// Effects that depend on the data: either the first ones happen or the second ones.
    Either(Vec<NumberedAct>, Vec<NumberedAct>),
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
        /// Whether the loop runs at least once for all data.
        always: bool,
        /// Whether the loop is neither a sweep nor contains another loop.
        short: bool,
        /// Whether the loop contains loops that contain loops.
        outer: bool,
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
