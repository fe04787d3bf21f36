//! Owned ranges of virtual memory, mapped or from the caller's allocator.
//!
//! A mapping is populated before its address is returned. So a lack of memory is an error here, not
//! SIGBUS at a later access, and no step has a page fault of a first access.

use std::ffi::c_void;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{iter, mem, ptr, thread};

use rustix::io::Errno;
use rustix::mm::{self, Advice, MapFlags, MprotectFlags, ProtFlags};

use crate::system::address::Address;
use crate::system::allocator::{Allocated, Allocator};
use crate::system::cpus::allowed_cpu_count;
use crate::system::fork::Birth;
use crate::{Error, Result};

/// 2 MiB: the size of a transparent hugepage where pages are 4 KiB, and of the smaller hugetlb
/// pages.
pub(crate) const MIB2: usize = 2 << 20;
/// The bytes that a thread populates at a time, whole hugepages, so that no two threads share one; for fewer, starting
/// another thread costs more than it saves.
const POPULATE_PIECE: usize = 256 << 20;
/// The most threads that populate a mapping.
const MAX_POPULATE_THREADS: usize = 16;

/// A range that is unmapped on drop, or given back to the caller's allocator. Its bytes are accessed only in [`Self::populate`], before the owner
/// returns pointers.
#[derive(Debug)]
pub(crate) struct Mapping {
    at: Address<u8>,
    len: usize,
    /// The memory, if it is not mapped.
    allocated: Option<Allocated>,
    /// The process that the memory belongs to, if a forked child does not have it.
    birth: Option<Birth>,
}

impl Mapping {
    /// Returns `bytes` bytes of zero, which begin at a multiple of `align`, at most a page: a mapping, or memory of
    /// the caller's allocator.
    pub(crate) fn zeroed(
        what: &'static str,
        bytes: usize,
        align: usize,
        allocator: Option<&Arc<dyn Allocator>>,
    ) -> Result<Self> {
        let Some(allocator) = allocator else { return Self::anonymous(what, bytes) };
        let allocated = Allocated::zeroed(allocator, what, bytes, align)?;
        let at = Address(allocated.ptr());
        Ok(Self { at, len: bytes, allocated: Some(allocated), birth: None })
    }

    /// Returns [`Self::zeroed`] memory of whole pages that a forked child does not have, for the kernel to write to. A
    /// fork makes the pages of a process copy-on-write: if the kernel is reading a file into one of them and this
    /// process writes beside it, the process gets a copy without the bytes that arrive later.
    pub(crate) fn unforked(
        what: &'static str,
        bytes: usize,
        allocator: Option<&Arc<dyn Allocator>>,
    ) -> Result<Self> {
        let mut memory = Self::zeroed(what, bytes, rustix::param::page_size(), allocator)?;
        memory.advise(Advice::LinuxDontFork);
        memory.birth = Some(Birth::now());
        Ok(memory)
    }

    /// Maps private zeroed memory and populates it, in transparent hugepages where the kernel
    /// grants them.
    pub(crate) fn anonymous(what: &'static str, len: usize) -> Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let (hint, prot) = (aligned_hint(len), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: without MAP_FIXED the hint cannot replace an existing mapping.
        let ptr = unsafe { mm::mmap_anonymous(hint, len, prot, flags) };
        let mapping = Self::from_mmap(ptr, len, what)?;
        mapping.advise_huge();
        mapping.populate(what, true)?;
        Ok(mapping)
    }

    /// Maps the first `len` bytes of `file`, shared. A hugetlb file reserves its pages here (no
    /// MAP_NORESERVE), so too few pages are an error. A core dump leaves the mapping out, because it may be
    /// most of the machine's memory.
    pub(crate) fn shared(
        what: &'static str,
        file: BorrowedFd,
        len: usize,
        write: bool,
    ) -> Result<Self> {
        let prot = if write { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: without MAP_FIXED the hint cannot replace an existing mapping.
        let ptr = unsafe { mm::mmap(aligned_hint(len), len, prot, MapFlags::SHARED, file, 0) };
        let mapping = Self::from_mmap(ptr, len, what)?;
        mapping.advise(Advice::LinuxDontDump);
        Ok(mapping)
    }

    fn from_mmap(
        ptr: rustix::io::Result<*mut c_void>,
        len: usize,
        what: &'static str,
    ) -> Result<Self> {
        let remedy = "pass the file of a pool's export";
        let ptr = ptr.map_err(|error| refused("mmap", (what, len), error.into(), remedy))?;
        Ok(Self { at: Address(ptr.cast()), len, allocated: None, birth: None })
    }

    pub(crate) fn ptr(&self) -> *mut u8 {
        self.at.0
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Asks for transparent hugepages. A refusal is ignored: [`Self::huge_bytes`] counts those that
    /// were granted.
    pub(crate) fn advise_huge(&self) {
        if self.len >= MIB2 {
            self.advise(Advice::LinuxHugepage);
        }
    }

    /// Gives advice that changes no contents in this process, which the system may refuse.
    fn advise(&self, advice: Advice) {
        // SAFETY: this value owns the range, and the advice changes no contents in this process.
        let _ = unsafe { mm::madvise(self.ptr().cast(), self.len, advice) };
    }

    /// Populates every page. With `write` it also allocates pages that the file does not have.
    /// Contents do not change.
    pub(crate) fn populate(&self, what: &'static str, write: bool) -> Result<()> {
        let next = AtomicUsize::new(0);
        let claim = || next.fetch_add(POPULATE_PIECE, Ordering::Relaxed);
        let work = || {
            let mut starts = iter::repeat_with(claim).take_while(|&at| at < self.len);
            starts.try_for_each(|at| {
                self.populate_piece(at, POPULATE_PIECE.min(self.len - at), write)
            })
        };
        let threads = (self.len / POPULATE_PIECE).min(MAX_POPULATE_THREADS);
        let shared = || {
            thread::scope(|scope| {
                // The others populate the pieces of a thread that cannot be started.
                let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
                let more = 1..threads.min(allowed_cpu_count());
                let more: heapless::Vec<_, MAX_POPULATE_THREADS> = more.filter_map(start).collect();
                work()?;
                more.into_iter().try_for_each(|thread| {
                    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
                })
            })
        };
        // A scope of threads allocates, so that one thread populates without a scope.
        let done = if threads < 2 { work() } else { shared() };
        let remedy = "ask for fewer bytes, or free memory";
        done.map_err(|error| refused("madvise(MADV_POPULATE)", (what, self.len), error, remedy))
    }

    fn populate_piece(&self, at: usize, len: usize, write: bool) -> io::Result<()> {
        let advice = if write { Advice::LinuxPopulateWrite } else { Advice::LinuxPopulateRead };
        loop {
            let start = self.ptr().wrapping_add(at).cast();
            // SAFETY: this value owns the range, because `at + len <= self.len`, and contents do
            // not change.
            match unsafe { mm::madvise(start, len, advice) } {
                Ok(()) => return Ok(()),
                Err(Errno::INTR | Errno::AGAIN) => {}
                // Kernels before 5.14 have no such advice, and a sandbox may refuse it. Without `write` the
                // pages exist, so later accesses only fault.
                Err(Errno::INVAL | Errno::PERM | Errno::NOSYS) if write => {
                    return self.read_zeros(at, len);
                }
                Err(Errno::INVAL | Errno::PERM | Errno::NOSYS) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Populates on kernels before 5.14 (openEuler 22.03 has 5.10): the kernel writes zeros from
    /// `/dev/zero`, and without memory it returns EFAULT instead of raising SIGBUS. The memory must
    /// be new, because its contents become zero.
    fn read_zeros(&self, at: usize, len: usize) -> io::Result<()> {
        let mut zeros = File::open("/dev/zero")?;
        // SAFETY: `at + len <= self.len`; the mapping is new and writable, its bytes are zero pages
        // (initialised), and no other code has its address before `populate` returns.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.ptr().add(at), len) };
        zeros.read_exact(bytes)
    }

    /// Makes the mapping read-only for this process.
    pub(crate) fn protect(&self, what: &str) -> Result<()> {
        // SAFETY: this value owns the range, which stays readable; no Rust reference into it
        // exists.
        unsafe { mm::mprotect(self.ptr().cast(), self.len, MprotectFlags::READ) }.map_err(|error| {
            let what = format!("{what} of {} bytes", self.len);
            Error::os("mprotect", what, error, "raise vm.max_map_count")
        })
    }

    /// Returns the bytes that the kernel maps by transparent hugepages at the moment, as `smaps`
    /// counts them.
    pub(crate) fn huge_bytes(&self) -> usize {
        // `smaps` of a process with many mappings takes milliseconds.
        if self.len < MIB2 {
            return 0;
        }
        let start = self.ptr().addr();
        let smaps = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        huge_bytes_in(&smaps, start, start + self.len).min(self.len)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        match self.birth {
            // A child must not give back what it has in this place.
            Some(birth) if birth.is_past() => return mem::forget(self.allocated.take()),
            Some(_) => self.advise(Advice::LinuxDoFork),
            None => {}
        }
        if self.allocated.is_some() {
            return;
        }
        // SAFETY: this value owns the range, and owners of a `Mapping` do not let its addresses be
        // used after it is dropped.
        let _ = unsafe { mm::munmap(self.ptr().cast(), self.len) };
    }
}

/// Returns the error of a call for memory of some length that the system refused. Populating reports EFAULT or EHWPOISON
/// where an access would raise SIGBUS, which a file in memory does when no page is left.
fn refused(
    call: &'static str,
    (what, bytes): (&'static str, usize),
    source: io::Error,
    remedy: &'static str,
) -> Error {
    let code = Errno::from_io_error(&source);
    if matches!(code, Some(Errno::NOMEM | Errno::AGAIN | Errno::FAULT | Errno::NOSPC))
        || source.kind() == io::ErrorKind::OutOfMemory
    {
        return Error::OutOfMemory { what, bytes };
    }
    Error::os(call, format!("{what} of {bytes} bytes"), source, remedy)
}

/// Returns a free address that is aligned to 2 MiB as a hint for `mmap`; null for lengths below 2
/// MiB. If the kernel does not take the hint, the mapping gets no hugepages.
fn aligned_hint(len: usize) -> *mut c_void {
    let (none, flags) = (ptr::null_mut(), MapFlags::PRIVATE | MapFlags::NORESERVE);
    let wide = match len.checked_add(MIB2) {
        Some(wide) if len >= MIB2 => wide,
        _ => return none,
    };
    // SAFETY: a new anonymous mapping at an address that the kernel chooses replaces no other
    // mapping.
    match unsafe { mm::mmap_anonymous(none, wide, ProtFlags::empty(), flags) } {
        Ok(free) => {
            // SAFETY: the range was mapped just above, and no other code has its address.
            let _ = unsafe { mm::munmap(free, wide) };
            free.map_addr(|addr| addr.next_multiple_of(MIB2))
        }
        Err(_) => none,
    }
}

/// Returns the sum of the hugepage lines of the ranges in `smaps` that overlap `start..end`, in
/// bytes.
fn huge_bytes_in(smaps: &str, start: usize, end: usize) -> usize {
    let mut inside = false;
    let mut kib = 0usize;
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        if let Some((from, to)) = first.split_once('-') {
            let hex = |text| usize::from_str_radix(text, 16).ok();
            inside = hex(from).zip(hex(to)).is_some_and(|(from, to)| start < to && from < end);
        } else if inside && matches!(first, "ShmemPmdMapped:" | "AnonHugePages:") {
            kib += words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        }
    }
    kib * 1024
}

#[cfg(test)]
mod tests;
