//! Counts the calls of the allocator in this process and makes one of them fail, for tests that have
//! the process for themselves ([`crate::alone`]).

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

struct Counting;

/// Calls so far.
static CALLS: AtomicUsize = AtomicUsize::new(0);
/// Bytes that are allocated at the moment.
static LIVE_BYTES: AtomicIsize = AtomicIsize::new(0);
/// Allocations until one fails; 0 if none shall.
static UNTIL_FAILURE: AtomicUsize = AtomicUsize::new(0);

/// Counts an allocation and returns whether it shall fail.
fn fails() -> bool {
    CALLS.fetch_add(1, Ordering::SeqCst);
    UNTIL_FAILURE.load(Ordering::Relaxed) > 0 && UNTIL_FAILURE.fetch_sub(1, Ordering::SeqCst) == 1
}

// SAFETY: every call is passed on to `System` or fails, and counting uses atomics only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails() {
            return null_mut();
        }
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`, which is that of `System`.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            LIVE_BYTES.fetch_add(layout.size() as isize, Ordering::Relaxed);
        }
        block
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        CALLS.fetch_add(1, Ordering::SeqCst);
        LIVE_BYTES.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: `ptr` was allocated by `System` with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of calls of the allocator while `run` runs, on all threads.
pub fn calls(run: impl FnOnce()) -> usize {
    let before = CALLS.load(Ordering::SeqCst);
    run();
    CALLS.load(Ordering::SeqCst) - before
}

/// Returns the bytes that are allocated at the moment.
pub fn live_bytes() -> isize {
    LIVE_BYTES.load(Ordering::SeqCst)
}

/// Makes the `n`-th allocation of `run`, from 1, fail. Returns whether it came to that one.
pub fn failing<T>(n: usize, run: impl FnOnce() -> T) -> (T, bool) {
    UNTIL_FAILURE.store(n, Ordering::SeqCst);
    let result = run();
    (result, UNTIL_FAILURE.swap(0, Ordering::SeqCst) == 0)
}

/// Panics if the counter does not count, and waits until the thread of the test harness, which notes
/// that a test began or ended, no longer allocates.
pub fn check() {
    while calls(|| thread::sleep(Duration::from_millis(100))) > 0 {}
    assert!(calls(|| drop(std::hint::black_box(Box::new(1u8)))) >= 2, "the counter counts");
}
