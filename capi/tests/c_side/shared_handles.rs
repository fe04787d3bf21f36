//! The handles that the threads of a random run share.

use std::sync::atomic::AtomicUsize;

/// Handles of each kind that a run uses at a time; some of them are stale.
pub const HANDLES_PER_KIND: usize = 4;

/// State that the threads of a run share.
pub struct Shared {
    /// The handles as addresses, by [`Kind`].
    pub handles: [[AtomicUsize; HANDLES_PER_KIND]; 4],
    /// Calls made so far.
    pub calls: AtomicUsize,
    /// Calls after which every thread stops.
    pub limit: usize,
}

/// Kinds of handles.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Pool,
    Engine,
    Plan,
    Workers,
}

/// All kinds.
pub const KINDS: [Kind; 4] = [Kind::Pool, Kind::Engine, Kind::Plan, Kind::Workers];
