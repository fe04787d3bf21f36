//! The steps of Algorithm 1, as a kernel says where each begins.

use core::fmt;

/// A step of Stage One.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Another generation starts with an empty table.
    Reset,
    /// Rows that were not final before the step are forgotten.
    Invalidate,
    /// Every slot is one step older.
    Decay,
    /// The first look at each id's links.
    Probe,
    /// The other links, of the ids that are still pending.
    ProbePending,
    /// Host rows of the misses.
    Locate,
    /// Lifetimes of the hits.
    Refresh,
    /// Victims.
    CollectDead,
    /// Slots and links of the misses.
    UpdateState,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reset => "Reset",
            Self::Invalidate => "Invalidate",
            Self::Decay => "Decay",
            Self::Probe => "Probe",
            Self::ProbePending => "Probe, later rounds",
            Self::Locate => "Locate",
            Self::Refresh => "Refresh",
            Self::CollectDead => "CollectDead",
            Self::UpdateState => "UpdateState",
        })
    }
}
