//! A kernel as the analysis walks it: its places by number.

use crate::aiv::{Pipe, Sync};

/// What happens in a call.
#[derive(Clone, Debug)]
pub enum Deed {
    /// One unit touches places, each by number and whether it writes there.
    Use {
        /// Which unit.
        pipe: Pipe,
        /// What it touches.
        touched: Vec<(usize, bool)>,
    },
    /// Synchronisation that the call does itself.
    Sync(Sync),
    /// What may happen or not.
    Maybe(Vec<Deed>),
}

/// A statement, a loop or a branch.
#[derive(Clone, Debug)]
pub enum Step {
    /// A statement.
    Call {
        /// What happens.
        deeds: Vec<Deed>,
        /// Synchronisation before it.
        sync: Vec<Sync>,
    },
    /// A loop.
    Loop {
        /// Whether it runs at all, whatever the data.
        always: bool,
        /// Synchronisation before it.
        sync: Vec<Sync>,
        /// What runs.
        body: Vec<Step>,
    },
    /// A branch.
    If {
        /// What runs if its condition holds.
        body: Vec<Step>,
        /// What runs if it does not hold.
        otherwise: Vec<Step>,
    },
}

/// Where the units can be synchronised, in the order of [`crate::aiv::syncs`].
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
