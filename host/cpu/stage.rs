//! A stage of a launch, and how one of its pieces runs.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A stage of a launch.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    /// The number of pieces.
    pub pieces: usize,
    /// Runs a piece; it is called once for each, with (piece, worker). No two calls at a time have
    /// the same worker.
    pub run: &'a (dyn Fn(usize, usize) + Sync),
}

thread_local! {
    static IN_PIECE: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread runs a piece of a launch, for a panic hook that keeps quiet about
/// panics that become errors.
pub fn in_piece() -> bool {
    IN_PIECE.get()
}

impl Stage<'_> {
    /// Runs a piece and returns whether it ended. It catches a panic, so that the other threads do
    /// not wait for ever.
    pub(super) fn run_piece(&self, piece: usize, worker: usize) -> bool {
        let outer = IN_PIECE.replace(true);
        let ran = catch_unwind(AssertUnwindSafe(|| (self.run)(piece, worker)));
        IN_PIECE.set(outer);
        // The payload's destructor may panic, too.
        ran.map_err(core::mem::forget).is_ok()
    }
}
