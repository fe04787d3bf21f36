//! Waiting for another thread: first by polling, then by yielding the CPU, then asleep in the kernel.

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::futex;

/// Polls between two looks at the clock.
const POLLS: u32 = 256;

/// An event that threads wait for. A thread that changes what others wait for calls
/// [`Self::notify`] afterwards. It allocates nothing and has no lock.
#[derive(Default)]
pub(super) struct Notify {
    /// Changes with every notification that finds a sleeper.
    changes: AtomicU32,
    sleepers: AtomicU32,
}

impl Notify {
    /// Waits until `ready`: polls for as long as `spin`, yields, then sleeps. It yields once only,
    /// because on a busy CPU each yield lasts a time slice of another process.
    pub fn wait(&self, spin: Duration, ready: impl Fn() -> bool) {
        let mut start = None;
        for poll in (0..POLLS).cycle() {
            if ready() {
                return;
            }
            if poll == 0 && start.get_or_insert_with(Instant::now).elapsed() >= spin {
                break;
            }
            core::hint::spin_loop();
        }
        thread::yield_now();
        if !ready() {
            self.sleep(ready);
        }
    }

    fn sleep(&self, ready: impl Fn() -> bool) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        loop {
            let seen = self.changes.load(Ordering::Acquire);
            // With the fence in `notify`: either that call sees this sleeper, or this one sees what
            // changed before that call.
            fence(Ordering::SeqCst);
            if ready() {
                break;
            }
            // A return without a reason is no error, because the loop looks again.
            let _ = futex::wait(&self.changes, futex::Flags::PRIVATE, seen, None);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes the threads that sleep, after a change that they may wait for.
    pub fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.has_sleepers() {
            self.changes.fetch_add(1, Ordering::Release);
            // This cannot fail: the word is aligned and belongs to this process.
            let _ = futex::wake(&self.changes, futex::Flags::PRIVATE, i32::MAX as u32);
        }
    }

    /// Returns whether a thread sleeps.
    pub fn has_sleepers(&self) -> bool {
        self.sleepers.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests;
