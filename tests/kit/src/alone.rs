//! Turns for tests that need the process for themselves, in a program whose every test takes one, and forked children.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test has its turn. The turn ends when the guard is dropped.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A failed test has poisoned the lock, which guards nothing that could be half-changed.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn alarm(seconds: u32) -> u32;
    fn _exit(code: i32) -> !;
}

/// Forks this process, and returns the number of the child; 0 in the child, which a signal ends after a minute.
///
/// # Safety
/// The child uses nothing that a lock of another thread guards.
pub unsafe fn forked() -> i32 {
    // SAFETY: the child is as the caller says (`# Safety`), and the second call only sets a timer.
    unsafe {
        let pid = fork();
        if pid == 0 {
            alarm(60);
        }
        pid
    }
}

/// Ends a child.
pub fn end_child(passed: bool) -> ! {
    // SAFETY: the call ends the process.
    unsafe { _exit(i32::from(!passed)) }
}

/// Waits for the end of a child, which must have passed.
///
/// # Panics
/// If the child failed, or was ended by a signal.
pub fn expect_passed(child: i32) {
    let mut status = -1;
    // SAFETY: `status` may be written.
    assert!(child > 0 && unsafe { waitpid(child, &mut status, 0) } == child);
    assert_eq!(status, 0, "the child failed or hung");
}

/// Runs a closure in a forked child, which must return true there within a minute. It is no function, because the
/// parent keeps what the closure takes.
#[macro_export]
macro_rules! in_child {
    ($run:expr) => {
        // SAFETY: the child runs the closure only, which takes no lock that another thread holds.
        let child = unsafe { $crate::alone::forked() };
        if child == 0 {
            let run = std::panic::AssertUnwindSafe($run);
            $crate::alone::end_child(std::panic::catch_unwind(run).unwrap_or(false));
        }
        $crate::alone::expect_passed(child);
    };
}
