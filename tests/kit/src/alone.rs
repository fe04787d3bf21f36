//! Turns for tests that need the process for themselves, in a program whose every test takes one.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test has its turn. The turn ends when the guard is dropped.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A failed test has poisoned the lock, which guards nothing that could be half-changed.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
