//! Recognises a forked child, in which the threads, the locks and the shared memory of its parent's
//! objects are not its own.
//!
//! A page that the kernel clears in a child (MADV_WIPEONFORK) holds the number of this process
//! among its ancestors. An object remembers the number of its birth, so that a check is one load.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use rustix::mm::{self, Advice, MapFlags, ProtFlags};

use crate::{Error, Result};

/// The process that an object was made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Birth(u64);

/// The address of the page; null before its first use, and [`NO_PAGE`] if the system refused it.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());
const NO_PAGE: *mut AtomicU64 = ptr::without_provenance_mut(1);
const PAGE_BYTES: usize = 4096;
/// The last number given to this process or an ancestor.
static LAST: AtomicU64 = AtomicU64::new(0);

impl Birth {
    /// Returns the number of this process.
    pub fn now() -> Self {
        let mut page = PAGE.load(Ordering::Acquire);
        if page.is_null() {
            page = find_page();
        }
        if page == NO_PAGE {
            return Self(u64::from(rustix::process::getpid().as_raw_pid().unsigned_abs()));
        }
        // SAFETY: `find_page` mapped the page, which is zeroed or written by this function, aligned
        // and never unmapped.
        let number = unsafe { &*page };
        match number.load(Ordering::Relaxed) {
            0 => {
                let new = LAST.fetch_add(1, Ordering::Relaxed) + 1;
                let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
                // Another thread of this process may be first.
                Self(number.compare_exchange(0, new, success, failure).map_or_else(|n| n, |_| new))
            }
            number => Self(number),
        }
    }

    /// Returns a number that no ancestor of the object's process has.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Returns whether this process was forked from the one of the object's birth.
    pub fn is_past(self) -> bool {
        self != Self::now()
    }

    /// Returns an error in a forked child of the object's process.
    ///
    /// # Errors
    /// [`Error::Forked`] with the name of the object.
    pub fn check(self, what: &'static str) -> Result<()> {
        if self.is_past() { Err(Error::Forked { what }) } else { Ok(()) }
    }
}

/// Maps the page. If two threads are first, the page of one of them stays unused.
fn find_page() -> *mut AtomicU64 {
    let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new anonymous mapping at an address that the kernel chooses replaces no other
    // mapping.
    let mapped = unsafe { mm::mmap_anonymous(ptr::null_mut(), PAGE_BYTES, prot, flags) };
    let new = mapped.map_or(NO_PAGE, |at| {
        // SAFETY: the range was mapped just above, and no other code has its address.
        match unsafe { mm::madvise(at, PAGE_BYTES, Advice::LinuxWipeOnFork) } {
            Ok(()) => at.cast(),
            // Kernels before 4.14 lack the advice, and the process's number serves instead.
            Err(_) => NO_PAGE,
        }
    });
    let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
    PAGE.compare_exchange(ptr::null_mut(), new, success, failure).map_or_else(|now| now, |_| new)
}
