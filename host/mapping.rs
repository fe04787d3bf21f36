//! One owned range of virtual memory.
//!
//! A mapping is populated before anyone sees it. The kernel then answers a lack of memory with an
//! error here, never with SIGBUS at a later touch, and no step pays for a first-touch fault.

use std::ffi::c_void;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::thread;

use rustix::mm::{self, Advice, MapFlags, MprotectFlags, ProtFlags};

use crate::{Error, Result};

/// The size of a transparent hugepage where pages are 4 KiB, and the step of the 2 MiB rungs.
pub(crate) const MIB2: usize = 2 << 20;
/// Below this a thread of its own costs more than it populates.
const POPULATE_PIECE: usize = 256 << 20;

/// An owned mapping; unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    ptr: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and `Mapping` itself reads and writes
// only in `populate`, which its owner calls before it hands out pointers.
unsafe impl Send for Mapping {}
// SAFETY: as for Send; `&Mapping` gives an address and a length and nothing else.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Private zeroed memory, in transparent hugepages where the kernel grants them.
    pub(crate) fn anonymous(what: &str, len: usize) -> Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let (hint, prot) = (hint(len), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: without MAP_FIXED the hint cannot replace an existing mapping.
        let ptr = unsafe { mm::mmap_anonymous(hint, len, prot, flags) };
        let mapping = Self::own(ptr, len, what)?;
        mapping.advise_huge();
        mapping.populate(what, true)?;
        Ok(mapping)
    }

    /// The first `len` bytes of `file`, shared. A hugetlb file reserves its pages here and answers
    /// with an error when there are too few (no MAP_NORESERVE).
    pub(crate) fn shared(what: &str, file: BorrowedFd, len: usize, write: bool) -> Result<Self> {
        let prot = if write { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: without MAP_FIXED the hint cannot replace an existing mapping.
        let ptr = unsafe { mm::mmap(hint(len), len, prot, MapFlags::SHARED, file, 0) };
        Self::own(ptr, len, what)
    }

    fn own(ptr: rustix::io::Result<*mut c_void>, len: usize, what: &str) -> Result<Self> {
        let mapped = ptr.map_err(io::Error::from).and_then(|ptr| {
            NonNull::new(ptr.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
        });
        match mapped {
            Ok(ptr) => Ok(Self { ptr, len }),
            Err(source) => Err(Error::Os {
                call: "mmap",
                what: format!("{what} of {len} bytes"),
                source,
                remedy: "ask for fewer bytes, or raise the limit (ulimit -v, vm.max_map_count)",
            }),
        }
    }

    pub(crate) fn ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Asks for transparent hugepages. A refusal is no error: [`Self::huge_bytes`] tells the truth.
    pub(crate) fn advise_huge(&self) {
        if self.len >= MIB2 {
            // SAFETY: the range is ours (`own`), and the advice changes no contents.
            let _ = unsafe { mm::madvise(self.ptr().cast(), self.len, Advice::LinuxHugepage) };
        }
    }

    /// Makes every page present; `write` as well allocates those that the file does not hold yet.
    /// Contents that are already there stay.
    pub(crate) fn populate(&self, what: &str, write: bool) -> Result<()> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = (self.len / POPULATE_PIECE).clamp(1, cores.min(16));
        // Whole hugepages each, or two threads would split one between them.
        let piece = self.len.div_ceil(threads).next_multiple_of(MIB2);
        let starts = (0..self.len).step_by(piece);
        let mut work = starts.map(|at| (at, piece.min(self.len - at)));
        let done = thread::scope(|scope| {
            // The first piece is this thread's; so is one for which no thread could be had.
            let first = work.next();
            let mut running = Vec::new();
            for (at, len) in work {
                let piece = move || self.populate_piece(at, len, write);
                match thread::Builder::new().spawn_scoped(scope, piece) {
                    Ok(thread) => running.push(thread),
                    Err(_) => self.populate_piece(at, len, write)?,
                }
            }
            first.map_or(Ok(()), |(at, len)| self.populate_piece(at, len, write))?;
            running.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread died")))
            })
        });
        done.map_err(|source| Error::Os {
            call: "madvise(MADV_POPULATE)",
            what: format!("{what} of {} bytes", self.len),
            source,
            remedy: "ask for fewer bytes, or free memory",
        })
    }

    fn populate_piece(&self, at: usize, len: usize, write: bool) -> io::Result<()> {
        let advice = if write { Advice::LinuxPopulateWrite } else { Advice::LinuxPopulateRead };
        loop {
            let start = self.ptr().wrapping_add(at).cast();
            // SAFETY: `at + len <= self.len`, so the range is ours, and contents do not change.
            match unsafe { mm::madvise(start, len, advice) } {
                Ok(()) => return Ok(()),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(rustix::io::Errno::INVAL) if write => return self.read_zeros(at, len),
                // Before Linux 5.14 there is no such advice; faults on existing pages are harmless.
                Err(rustix::io::Errno::INVAL) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What populates before Linux 5.14 (openEuler 22.03 has 5.10): the kernel itself writes the
    /// zeros, and where it finds no memory it returns EFAULT instead of raising SIGBUS. Only for
    /// memory that is new, hence zero anyway.
    fn read_zeros(&self, at: usize, len: usize) -> io::Result<()> {
        let mut zeros = File::open("/dev/zero")?;
        // SAFETY: `at + len <= self.len`; the mapping is new and writable, its bytes are zero pages
        // (initialised), and nobody else has its address until populate returned.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.ptr().add(at), len) };
        zeros.read_exact(bytes)
    }

    /// Takes the right to write away from this process.
    pub(crate) fn protect(&self, what: &str) -> Result<()> {
        // SAFETY: the range is ours (`own`) and stays readable; no Rust reference into it exists.
        unsafe { mm::mprotect(self.ptr().cast(), self.len, MprotectFlags::READ) }.map_err(|error| {
            Error::Os {
                call: "mprotect",
                what: format!("{what} of {} bytes", self.len),
                source: error.into(),
                remedy: "raise vm.max_map_count",
            }
        })
    }

    /// Bytes that the kernel maps by transparent hugepages right now, as `smaps` counts them.
    pub(crate) fn huge_bytes(&self) -> usize {
        let start = self.ptr().addr();
        let smaps = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        huge_in(&smaps, start, start + self.len).min(self.len)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is ours (`own`), and whoever handed out its addresses owns this value
        // and so ends with it.
        let _ = unsafe { mm::munmap(self.ptr().cast(), self.len) };
    }
}

/// An address aligned to 2 MiB that was free a moment ago, or null for small lengths. The kernel
/// need not take the hint; a mapping elsewhere merely gets no hugepages.
fn hint(len: usize) -> *mut c_void {
    let (none, flags) = (ptr::null_mut(), MapFlags::PRIVATE | MapFlags::NORESERVE);
    let wide = match len.checked_add(MIB2) {
        Some(wide) if len >= MIB2 => wide,
        _ => return none,
    };
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nobody's memory.
    match unsafe { mm::mmap_anonymous(none, wide, ProtFlags::empty(), flags) } {
        Ok(found) => {
            // SAFETY: the range is the one just mapped; nobody else knows it.
            let _ = unsafe { mm::munmap(found, wide) };
            found.map_addr(|addr| addr.next_multiple_of(MIB2))
        }
        Err(_) => none,
    }
}

/// Sums the hugepage lines of the ranges in `smaps` that lie inside `start..end`.
fn huge_in(smaps: &str, start: usize, end: usize) -> usize {
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
mod tests {
    use super::{Mapping, huge_in};

    #[test]
    fn populating_without_the_advice_works() {
        // What a kernel before 5.14 would do, which no test machine is.
        let mapping = Mapping::anonymous("test", 3 * 4096).unwrap();
        mapping.read_zeros(4096, 2 * 4096).unwrap();
        // SAFETY: the mapping has 3 pages and is this thread's alone.
        assert_eq!(unsafe { mapping.ptr().add(8191).read() }, 0);
        mapping.protect("test").unwrap();
        // Memory that cannot be had is an error here, as it must be, and no signal.
        assert!(mapping.read_zeros(0, 4096).is_err());
    }

    #[test]
    fn smaps_lines_count_only_inside() {
        let smaps = "1000-3000 rw-s 00000000 00:01 5 /memfd:avsg (deleted)\n\
                     Size: 8 kB\nShmemPmdMapped:     2048 kB\nVmFlags: rd wr\n\
                     9000-a000 rw-p 00000000 00:00 0\nAnonHugePages: 4096 kB\n";
        assert_eq!(huge_in(smaps, 0x1000, 0x3000), 2048 << 10);
        assert_eq!(huge_in(smaps, 0x9000, 0xa000), 4096 << 10);
        assert_eq!(huge_in(smaps, 0x5000, 0x6000), 0);
    }
}
