//! The phases of Algorithm 1, as a kernel declares them.

use core::fmt;

/// A phase of Stage One.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Empties a table that belongs to another generation.
    Reset,
    /// Removes rows that were not final before the step.
    Invalidate,
    /// Subtracts one from all lifetimes.
    Decay,
    /// Examines the links of each id, or the first one.
    Probe,
    /// Lists the ids that are not found, or examines their other links.
    ProbePending,
    /// Finds the host row of each miss.
    Locate,
    /// Raises the lifetimes of the hits.
    Refresh,
    /// Chooses the slots to evict.
    CollectDead,
    /// Enters the misses into the table.
    UpdateState,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reset => "Reset",
            Self::Invalidate => "Invalidate",
            Self::Decay => "Decay",
            Self::Probe => "Probe",
            Self::ProbePending => "Probe, pending ids",
            Self::Locate => "Locate",
            Self::Refresh => "Refresh",
            Self::CollectDead => "CollectDead",
            Self::UpdateState => "UpdateState",
        })
    }
}
