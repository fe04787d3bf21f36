//! Counts the calls of the allocator in this process, for tests that have a process of their own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

struct Counting;

static ARMED: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicUsize = AtomicUsize::new(0);

fn count() {
    if ARMED.load(Ordering::SeqCst) {
        CALLS.fetch_add(1, Ordering::SeqCst);
    }
}

// SAFETY: every call is passed on to `System`, and counting uses two atomics only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count();
        // SAFETY: `ptr` was allocated by `System` with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: `ptr` was allocated by `System` with this layout.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of calls of the allocator while `run` runs, on all threads.
pub fn calls(run: impl FnOnce()) -> usize {
    CALLS.store(0, Ordering::SeqCst);
    ARMED.store(true, Ordering::SeqCst);
    run();
    ARMED.store(false, Ordering::SeqCst);
    CALLS.load(Ordering::SeqCst)
}

/// Panics if the counter does not count.
pub fn check() {
    assert!(calls(|| drop(std::hint::black_box(Box::new(1u8)))) >= 2, "the counter counts");
}
