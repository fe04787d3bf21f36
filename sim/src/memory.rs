//! Memory: whose it is, and who may touch it.
//!
//! Device addresses lie in one reserved range whose pages the host cannot read or write. While a
//! kernel or a copy runs, they are opened. A registered host range appears in there as well, as a
//! second mapping of the same pages: what a kernel writes is seen by the host and the other way
//! round, and the address differs. Only shared mappings have such a second view; memory that is
//! private to the process keeps its own address, as the runtime's VA_FLAG mode does.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;

use rustix::mm::{self, Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags};

use crate::fault::{Outcome, fail, invalid};
use crate::sys;

/// Addresses are never used twice, so that a stale one is always found out; that takes room.
const RESERVED: usize = 1 << 40;
const PAGE: usize = 4096;
const MIB2: usize = 2 << 20;
/// What nobody has written.
const JUNK: u8 = 0xA5;

/// What a range is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A device's memory.
    Device,
    /// A registered host range as kernels see it.
    Mapped,
}

/// A live range of device addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub at: u64,
    pub bytes: usize,
    pub kind: Kind,
    pub device: u32,
    /// Bytes of address space that it takes.
    span: usize,
}

/// A registration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registered {
    pub bytes: usize,
    pub device: u32,
    /// Where kernels see it.
    pub mapped: u64,
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Memory {
    base: u64,
    next: u64,
    ranges: BTreeMap<u64, Range>,
    pinned: BTreeMap<u64, usize>,
    registered: BTreeMap<u64, Registered>,
    used: usize,
}

impl Memory {
    pub fn new() -> Self {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nobody's memory.
        let base =
            unsafe { mm::mmap_anonymous(ptr::null_mut(), RESERVED, ProtFlags::empty(), flags) };
        // Without address space there is no device; allocation says so.
        let base = base.map_or(0, |base| base as u64);
        let (ranges, pinned, registered) = Default::default();
        Self { base, next: base.next_multiple_of(MIB2 as u64), ranges, pinned, registered, used: 0 }
    }

    fn place(&mut self, bytes: usize) -> Outcome<(u64, usize)> {
        let step = if bytes >= MIB2 { MIB2 } else { PAGE };
        let at = self.next.next_multiple_of(step as u64);
        let span = bytes.next_multiple_of(step);
        // One page between ranges that belongs to nobody.
        let end = at + (span + PAGE) as u64;
        if self.base == 0 || end > self.base + RESERVED as u64 {
            return fail(sys::ACL_ERROR_RT_MEMORY_ALLOCATION, "no device addresses are left");
        }
        self.next = end;
        Ok((at, span))
    }

    /// Device memory, full of junk.
    pub fn malloc(&mut self, bytes: usize, device: u32, cap: usize) -> Outcome<u64> {
        if bytes == 0 {
            return fail(sys::ACL_ERROR_INVALID_PARAM, "0 bytes of device memory");
        }
        if bytes > cap - self.used.min(cap) {
            let text = format!("{bytes} bytes of device memory, {} of {cap} are used", self.used);
            return fail(sys::ACL_ERROR_RT_MEMORY_ALLOCATION, text);
        }
        let (at, span) = self.place(bytes)?;
        let range = Range { at, bytes, kind: Kind::Device, device, span };
        protect(at, span, true)?;
        // SAFETY: the pages were opened just now and belong to this range alone.
        unsafe { ptr::write_bytes(at as *mut u8, JUNK, bytes) };
        protect(at, span, false)?;
        self.used += bytes;
        self.ranges.insert(at, range);
        Ok(at)
    }

    pub fn free(&mut self, at: u64) -> Outcome {
        match self.ranges.get(&at) {
            Some(range) if range.kind == Kind::Device => {
                self.used -= range.bytes;
                let span = range.span;
                self.ranges.remove(&at);
                close_for_ever(at, span);
                Ok(())
            }
            _ => invalid(format!("{at:#x} is no device memory that is alive")),
        }
    }

    /// Bytes of device memory that are taken.
    pub fn used(&self) -> usize {
        self.used
    }

    pub fn range_bytes(&self, at: u64) -> Option<usize> {
        self.ranges.get(&at).map(|range| range.bytes)
    }

    pub fn malloc_host(&mut self, bytes: usize) -> Outcome<u64> {
        if bytes == 0 {
            return fail(sys::ACL_ERROR_INVALID_PARAM, "0 bytes of pinned memory");
        }
        let span = bytes.next_multiple_of(PAGE);
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // Shared, so that a registration can map it a second time.
        // SAFETY: a new mapping at an address of the kernel's choice touches nobody's memory.
        match unsafe { mm::mmap_anonymous(ptr::null_mut(), span, prot, MapFlags::SHARED) } {
            Ok(at) => {
                // SAFETY: the mapping is new and has `span` bytes.
                unsafe { ptr::write_bytes(at.cast::<u8>(), JUNK, bytes) };
                self.pinned.insert(at as u64, bytes);
                Ok(at as u64)
            }
            Err(error) => {
                fail(sys::ACL_ERROR_RT_MEMORY_ALLOCATION, format!("{bytes} pinned bytes: {error}"))
            }
        }
    }

    pub fn free_host(&mut self, at: u64) -> Outcome {
        if self.registered.contains_key(&at) {
            return invalid(format!("pinned memory {at:#x} is still registered"));
        }
        let Some(bytes) = self.pinned.remove(&at) else {
            return invalid(format!("{at:#x} is no pinned memory that is alive"));
        };
        // SAFETY: the mapping is ours, and the caller gave it back.
        let _ = unsafe { mm::munmap(at as *mut c_void, bytes.next_multiple_of(PAGE)) };
        Ok(())
    }

    pub fn pinned_bytes(&self, at: u64) -> Option<usize> {
        self.pinned.get(&at).copied()
    }

    /// Maps a host range among the device addresses.
    pub fn register(&mut self, at: u64, bytes: usize, device: u32, cap: usize) -> Outcome<u64> {
        if at == 0 || bytes == 0 {
            return invalid("a registration of nothing");
        }
        if !at.is_multiple_of(PAGE as u64) {
            return invalid(format!("{at:#x} does not begin on a page of {PAGE} bytes"));
        }
        if self.is_device(at) {
            return invalid(format!("{at:#x} is a device address"));
        }
        let end = at + bytes as u64;
        let taken = self.registered.iter().any(|(&a, r)| a < end && at < a + r.bytes as u64);
        if taken {
            let text = format!("{at:#x} is registered already");
            return fail(sys::ACL_ERROR_RT_HOST_MEMORY_ALREADY_REGISTERED, text);
        }
        if bytes > cap {
            let text = format!("one registration of {bytes} bytes");
            return fail(sys::ACL_ERROR_RT_MEMORY_ALLOCATION, text);
        }
        let (to, span) = self.place(bytes)?;
        let flags = MremapFlags::MAYMOVE;
        // SAFETY: an old size of 0 leaves the host's mapping as it is and maps its pages a second
        // time; the target lies in our reserved range and belongs to nobody.
        let twice =
            unsafe { mm::mremap_fixed(at as *mut c_void, 0, span, flags, to as *mut c_void) };
        let mapped = match twice {
            Ok(_) => {
                protect(to, span, false)?;
                self.ranges.insert(to, Range { at: to, bytes, kind: Kind::Mapped, device, span });
                to
            }
            // Private memory has no second view.
            Err(rustix::io::Errno::INVAL) => at,
            Err(error) => return invalid(format!("{bytes} bytes at {at:#x}: {error}")),
        };
        self.registered.insert(at, Registered { bytes, device, mapped });
        Ok(mapped)
    }

    pub fn unregister(&mut self, at: u64) -> Outcome {
        let Some(gone) = self.registered.remove(&at) else {
            let text = format!("{at:#x} is not registered");
            return fail(sys::ACL_ERROR_RT_HOST_MEMORY_NOT_REGISTERED, text);
        };
        if let Some(range) = self.ranges.remove(&gone.mapped) {
            close_for_ever(range.at, range.span);
        }
        Ok(())
    }

    pub fn registered(&self, at: u64) -> Option<Registered> {
        self.registered.get(&at).copied()
    }

    /// Whether an address is in the reserved range.
    pub fn is_device(&self, at: u64) -> bool {
        (self.base..self.base + RESERVED as u64).contains(&at)
    }

    /// The device memory that holds a whole range.
    pub fn device_range(&self, at: u64, bytes: usize) -> Outcome<Range> {
        let range = self.ranges.range(..=at).next_back().map(|(_, range)| *range);
        let holds = |r: &Range| at + bytes as u64 <= r.at + r.bytes as u64;
        match range.filter(holds) {
            Some(range) if range.kind == Kind::Device => Ok(range),
            // Undefined on the device; always refused here.
            Some(_) => invalid(format!("{at:#x} is a registered address, for kernels only")),
            None => invalid(format!("{bytes} bytes at {at:#x} are no device memory")),
        }
    }

    /// Whether a host range is pinned or registered, so that copies of it are deferred.
    pub fn is_pinned(&self, at: u64, bytes: usize) -> bool {
        let end = at + bytes as u64;
        let inside = |map_at: u64, len: usize| map_at <= at && end <= map_at + len as u64;
        let pinned = self.pinned.range(..=at).next_back();
        let registered = self.registered.range(..=at).next_back();
        pinned.is_some_and(|(&a, &n)| inside(a, n))
            || registered.is_some_and(|(&a, r)| inside(a, r.bytes))
    }

    /// What a device's kernels may touch: (address, bytes, whether it is the host's).
    pub fn regions(&self, device: u32) -> impl Iterator<Item = (u64, usize, bool)> + '_ {
        let own = self.ranges.values().filter(move |r| r.device == device);
        let own = own.map(|r| (r.at, r.bytes, r.kind == Kind::Mapped));
        let same =
            self.registered.iter().filter(move |(a, r)| **a == r.mapped && r.device == device);
        own.chain(same.map(|(&at, r)| (at, r.bytes, true)))
    }

    /// Opens everything for a kernel, or closes it again.
    pub fn open_all(&self, open: bool) -> Outcome {
        self.ranges.values().try_for_each(|range| protect(range.at, range.span, open))
    }

    /// Runs `body` with some bytes of device memory open: their pages alone, or a copy of a row would
    /// take the time of a pass over the whole range.
    pub fn with_open<T>(&self, at: u64, bytes: usize, body: impl FnOnce() -> T) -> Outcome<T> {
        self.device_range(at, bytes)?;
        let first = at - at % PAGE as u64;
        let span = (at + bytes as u64).next_multiple_of(PAGE as u64) - first;
        protect(first, span as usize, true)?;
        let value = body();
        protect(first, span as usize, false)?;
        Ok(value)
    }

    /// Gives back all device memory and registrations of a device; returns a line for each.
    pub fn release(&mut self, device: u32) -> Vec<String> {
        let mut lines = Vec::new();
        let hosts: Vec<u64> =
            self.registered.iter().filter(|(_, r)| r.device == device).map(|(&a, _)| a).collect();
        for at in hosts {
            lines.push(format!("registration {at:#x}"));
            let _ = self.unregister(at);
        }
        let own: Vec<u64> =
            self.ranges.values().filter(|r| r.device == device).map(|r| r.at).collect();
        for at in own {
            lines.push(format!("device memory {at:#x}"));
            let _ = self.free(at);
        }
        lines
    }

    /// Gives back all pinned memory; returns a line for each.
    pub fn release_pinned(&mut self) -> Vec<String> {
        let all: Vec<u64> = self.pinned.keys().copied().collect();
        all.iter().for_each(|&at| drop(self.free_host(at)));
        all.iter().map(|at| format!("pinned memory {at:#x}")).collect()
    }

    /// A line for each range that is alive.
    pub fn leaks(&self) -> Vec<String> {
        let device = self.ranges.values().filter(|r| r.kind == Kind::Device);
        let device = device.map(|r| format!("device memory {:#x}, {} bytes", r.at, r.bytes));
        let pinned = self.pinned.iter().map(|(a, n)| format!("pinned memory {a:#x}, {n} bytes"));
        let registered =
            self.registered.iter().map(|(a, r)| format!("registration {a:#x}, {} bytes", r.bytes));
        device.chain(pinned).chain(registered).collect()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for (&at, &bytes) in &self.pinned {
            // SAFETY: the mapping is ours; a session that ends with it alive has leaked it.
            let _ = unsafe { mm::munmap(at as *mut c_void, bytes.next_multiple_of(PAGE)) };
        }
        if self.base != 0 {
            // SAFETY: the reserved range is ours, and no kernel runs (the world is locked).
            let _ = unsafe { mm::munmap(self.base as *mut c_void, RESERVED) };
        }
    }
}

fn protect(at: u64, span: usize, open: bool) -> Outcome {
    let flags =
        if open { MprotectFlags::READ | MprotectFlags::WRITE } else { MprotectFlags::empty() };
    // SAFETY: the range is ours (`place`); no Rust reference into it exists.
    match unsafe { mm::mprotect(at as *mut c_void, span, flags) } {
        Ok(()) => Ok(()),
        Err(error) => fail(sys::ACL_ERROR_RT_DRV_INTERNAL_ERROR, format!("mprotect: {error}")),
    }
}

/// Gives the pages back and keeps the addresses reserved.
fn close_for_ever(at: u64, span: usize) {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: the range is ours, and nothing uses it any more; a second view is replaced as well.
    let again = unsafe { mm::mmap_anonymous(at as *mut c_void, span, ProtFlags::empty(), flags) };
    if again.is_err() {
        // SAFETY: as above. Then the pages go and the protection stays.
        let _ = unsafe { mm::madvise(at as *mut c_void, span, Advice::LinuxDontNeed) };
    }
}
