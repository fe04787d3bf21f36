//! Device memory, pinned memory and registered memory, with their owners and access rights.
//!
//! All device addresses are in one reserved range whose pages the host cannot access. They are made
//! accessible while a kernel or a copy runs. A registered host range is mapped a second time in the
//! reserved range, at another address: the host sees what a kernel writes there, and a kernel sees
//! what the host writes. Only shared mappings can be mapped a second time; private memory keeps its
//! address, as in the runtime's VA_FLAG mode.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;

use rustix::mm::{self, Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags};

use crate::fault::{Outcome, fail, invalid};
use crate::sys;

/// Bytes of the reserved range. Addresses are never reused, so that the use of a stale one is
/// always detected, and the range must be large.
const RESERVED: usize = 1 << 40;
const PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;
/// Byte of uninitialised memory.
const UNINITIALISED: u8 = 0xA5;

/// The kind of a range of device addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeKind {
    /// Device memory.
    Device,
    /// The second mapping of a registered host range.
    Mapped,
}

/// A range of device addresses in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub at: u64,
    pub bytes: usize,
    pub kind: RangeKind,
    pub device: u32,
    /// Size in the address space, in bytes.
    span: usize,
}

/// A registered host range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registered {
    pub bytes: usize,
    pub device: u32,
    /// Address for kernels.
    pub mapped: u64,
}

/// All memory of the simulated machine.
#[derive(Debug)]
pub(crate) struct AddressSpace {
    base: u64,
    next: u64,
    ranges: BTreeMap<u64, Range>,
    pinned: BTreeMap<u64, usize>,
    registered: BTreeMap<u64, Registered>,
    used: usize,
}

impl AddressSpace {
    pub fn new() -> Self {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the system chooses replaces no other mapping.
        let base =
            unsafe { mm::mmap_anonymous(ptr::null_mut(), RESERVED, ProtFlags::empty(), flags) };
        // If the reservation fails, `base` is 0 and every allocation fails.
        let base = base.map_or(0, |base| base as u64);
        let (ranges, pinned, registered) = Default::default();
        Self {
            base,
            next: base.next_multiple_of(HUGE_PAGE as u64),
            ranges,
            pinned,
            registered,
            used: 0,
        }
    }

    fn reserve(&mut self, bytes: usize) -> Outcome<(u64, usize)> {
        let step = if bytes >= HUGE_PAGE { HUGE_PAGE } else { PAGE };
        let at = self.next.next_multiple_of(step as u64);
        let span = bytes.next_multiple_of(step);
        // One unused page separates the ranges.
        let end = at + (span + PAGE) as u64;
        if self.base == 0 || end > self.base + RESERVED as u64 {
            return fail(
                sys::ACL_ERROR_RT_MEMORY_ALLOCATION,
                "the simulator has no device addresses left",
            );
        }
        self.next = end;
        Ok((at, span))
    }

    /// Allocates device memory filled with [`UNINITIALISED`]; a device has `cap` bytes.
    pub fn malloc(&mut self, bytes: usize, device: u32, cap: usize) -> Outcome<u64> {
        if bytes == 0 {
            return fail(
                sys::ACL_ERROR_INVALID_PARAM,
                "0 bytes of device memory; ask for at least 1",
            );
        }
        if bytes > cap - self.used.min(cap) {
            let text = format!(
                "{bytes} bytes of device memory do not fit: {} of {cap} are used",
                self.used
            );
            return fail(sys::ACL_ERROR_RT_MEMORY_ALLOCATION, text);
        }
        let (at, span) = self.reserve(bytes)?;
        let range = Range { at, bytes, kind: RangeKind::Device, device, span };
        protect(at, span, true)?;
        // SAFETY: the pages of this new range are accessible, and nothing else uses them.
        unsafe { ptr::write_bytes(at as *mut u8, UNINITIALISED, bytes) };
        protect(at, span, false)?;
        self.used += bytes;
        self.ranges.insert(at, range);
        Ok(at)
    }

    pub fn free(&mut self, at: u64) -> Outcome {
        match self.ranges.get(&at) {
            Some(range) if range.kind == RangeKind::Device => {
                self.used -= range.bytes;
                let span = range.span;
                self.ranges.remove(&at);
                release_pages(at, span);
                Ok(())
            }
            _ => invalid(format!("{at:#x} is not the address of allocated device memory")),
        }
    }

    /// Returns the number of allocated bytes of device memory.
    pub fn used(&self) -> usize {
        self.used
    }

    pub fn range_bytes(&self, at: u64) -> Option<usize> {
        self.ranges.get(&at).map(|range| range.bytes)
    }

    pub fn malloc_host(&mut self, bytes: usize) -> Outcome<u64> {
        if bytes == 0 {
            return fail(
                sys::ACL_ERROR_INVALID_PARAM,
                "0 bytes of pinned memory; ask for at least 1",
            );
        }
        let span = bytes.next_multiple_of(PAGE);
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // The mapping is shared, so that a registration can map it a second time.
        // SAFETY: a new mapping at an address that the system chooses replaces no other mapping.
        match unsafe { mm::mmap_anonymous(ptr::null_mut(), span, prot, MapFlags::SHARED) } {
            Ok(at) => {
                // SAFETY: the mapping is new and has `span` bytes.
                unsafe { ptr::write_bytes(at.cast::<u8>(), UNINITIALISED, bytes) };
                self.pinned.insert(at as u64, bytes);
                Ok(at as u64)
            }
            Err(error) => fail(
                sys::ACL_ERROR_RT_MEMORY_ALLOCATION,
                format!("{bytes} bytes of pinned memory: {error}"),
            ),
        }
    }

    pub fn free_host(&mut self, at: u64) -> Outcome {
        if self.registered.contains_key(&at) {
            return invalid(format!(
                "pinned memory {at:#x} is still registered; unregister it first"
            ));
        }
        let Some(bytes) = self.pinned.remove(&at) else {
            return invalid(format!("{at:#x} is not the address of allocated pinned memory"));
        };
        // SAFETY: `malloc_host` made this mapping, and the caller of `aclrtFreeHost` has given it
        // up.
        let _ = unsafe { mm::munmap(at as *mut c_void, bytes.next_multiple_of(PAGE)) };
        Ok(())
    }

    pub fn pinned_bytes(&self, at: u64) -> Option<usize> {
        self.pinned.get(&at).copied()
    }

    /// Registers a host range of at most `cap` bytes and returns its address for kernels.
    pub fn register(&mut self, at: u64, bytes: usize, device: u32, cap: usize) -> Outcome<u64> {
        if at == 0 || bytes == 0 {
            return invalid("the registered range is null or has 0 bytes");
        }
        if !at.is_multiple_of(PAGE as u64) {
            return invalid(format!("{at:#x} is not a multiple of the page size of {PAGE} bytes"));
        }
        if self.is_device(at) {
            return invalid(format!(
                "{at:#x} is a device address; only host memory can be registered"
            ));
        }
        let end = at + bytes as u64;
        let taken = self.registered.iter().any(|(&a, r)| a < end && at < a + r.bytes as u64);
        if taken {
            let text = format!("{at:#x} is registered already");
            return fail(sys::ACL_ERROR_RT_HOST_MEMORY_ALREADY_REGISTERED, text);
        }
        if bytes > cap {
            let text = format!("a registration of {bytes} bytes exceeds the limit of {cap}");
            return fail(sys::ACL_ERROR_RT_MEMORY_ALLOCATION, text);
        }
        let (to, span) = self.reserve(bytes)?;
        let flags = MremapFlags::MAYMOVE;
        // SAFETY: with an old size of 0 the call keeps the host's mapping and maps its pages a
        // second time; the target is an unused part of the reserved range.
        let remapped =
            unsafe { mm::mremap_fixed(at as *mut c_void, 0, span, flags, to as *mut c_void) };
        let mapped = match remapped {
            Ok(_) => {
                protect(to, span, false)?;
                self.ranges
                    .insert(to, Range { at: to, bytes, kind: RangeKind::Mapped, device, span });
                to
            }
            // Private memory cannot be mapped a second time.
            Err(rustix::io::Errno::INVAL) => at,
            Err(error) => return invalid(format!("{bytes} bytes at {at:#x}: {error}")),
        };
        self.registered.insert(at, Registered { bytes, device, mapped });
        Ok(mapped)
    }

    pub fn unregister(&mut self, at: u64) -> Outcome {
        let Some(registration) = self.registered.remove(&at) else {
            let text = format!("{at:#x} is not registered");
            return fail(sys::ACL_ERROR_RT_HOST_MEMORY_NOT_REGISTERED, text);
        };
        if let Some(range) = self.ranges.remove(&registration.mapped) {
            release_pages(range.at, range.span);
        }
        Ok(())
    }

    pub fn registered(&self, at: u64) -> Option<Registered> {
        self.registered.get(&at).copied()
    }

    /// Returns whether an address is in the reserved range.
    pub fn is_device(&self, at: u64) -> bool {
        (self.base..self.base + RESERVED as u64).contains(&at)
    }

    /// Returns the device memory that contains `bytes` bytes at `at`.
    pub fn device_range(&self, at: u64, bytes: usize) -> Outcome<Range> {
        let range = self.ranges.range(..=at).next_back().map(|(_, range)| *range);
        let holds = |r: &Range| at + bytes as u64 <= r.at + r.bytes as u64;
        match range.filter(holds) {
            Some(range) if range.kind == RangeKind::Device => Ok(range),
            // On the device such a copy is undefined; the simulator always refuses it.
            Some(_) => invalid(format!(
                "{at:#x} is the mapped address of registered memory, which only kernels may use"
            )),
            None => {
                invalid(format!("{bytes} bytes at {at:#x} are not inside allocated device memory"))
            }
        }
    }

    /// Returns whether a host range is pinned or registered, so that copies of it are asynchronous.
    pub fn is_pinned(&self, at: u64, bytes: usize) -> bool {
        let end = at + bytes as u64;
        let inside = |map_at: u64, len: usize| map_at <= at && end <= map_at + len as u64;
        let pinned = self.pinned.range(..=at).next_back();
        let registered = self.registered.range(..=at).next_back();
        pinned.is_some_and(|(&a, &n)| inside(a, n))
            || registered.is_some_and(|(&a, r)| inside(a, r.bytes))
    }

    /// Returns the ranges that the kernels of a device may access: address, bytes, and whether it
    /// is host memory.
    pub fn regions(&self, device: u32) -> impl Iterator<Item = (u64, usize, bool)> + '_ {
        let own = self.ranges.values().filter(move |r| r.device == device);
        let own = own.map(|r| (r.at, r.bytes, r.kind == RangeKind::Mapped));
        let same =
            self.registered.iter().filter(move |(a, r)| **a == r.mapped && r.device == device);
        own.chain(same.map(|(&at, r)| (at, r.bytes, true)))
    }

    /// Makes all ranges accessible for a kernel, or inaccessible again.
    pub fn open_all(&self, open: bool) -> Outcome {
        self.ranges.values().try_for_each(|range| protect(range.at, range.span, open))
    }

    /// Runs `body` while `bytes` bytes of device memory at `at` are accessible. Only their pages
    /// are opened, because opening the whole range would dominate the time of a small copy.
    pub fn with_open<T>(&self, at: u64, bytes: usize, body: impl FnOnce() -> T) -> Outcome<T> {
        self.device_range(at, bytes)?;
        let first = at - at % PAGE as u64;
        let span = (at + bytes as u64).next_multiple_of(PAGE as u64) - first;
        protect(first, span as usize, true)?;
        let value = body();
        protect(first, span as usize, false)?;
        Ok(value)
    }

    /// Releases all device memory and registrations of a device; returns a line for each.
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

    /// Releases all pinned memory; returns a line for each allocation.
    pub fn release_pinned(&mut self) -> Vec<String> {
        let all: Vec<u64> = self.pinned.keys().copied().collect();
        all.iter().for_each(|&at| drop(self.free_host(at)));
        all.iter().map(|at| format!("pinned memory {at:#x}")).collect()
    }

    /// Returns a line for each allocation and registration that was not released.
    pub fn leaks(&self) -> Vec<String> {
        let device = self.ranges.values().filter(|r| r.kind == RangeKind::Device);
        let device = device.map(|r| format!("device memory {:#x}, {} bytes", r.at, r.bytes));
        let pinned = self.pinned.iter().map(|(a, n)| format!("pinned memory {a:#x}, {n} bytes"));
        let registered =
            self.registered.iter().map(|(a, r)| format!("registration {a:#x}, {} bytes", r.bytes));
        device.chain(pinned).chain(registered).collect()
    }
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        for (&at, &bytes) in &self.pinned {
            // SAFETY: `malloc_host` made this mapping; a program that did not free it has leaked
            // it.
            let _ = unsafe { mm::munmap(at as *mut c_void, bytes.next_multiple_of(PAGE)) };
        }
        if self.base != 0 {
            // SAFETY: `new` made this mapping, and no kernel runs while the machine is locked.
            let _ = unsafe { mm::munmap(self.base as *mut c_void, RESERVED) };
        }
    }
}

fn protect(at: u64, span: usize, open: bool) -> Outcome {
    let flags =
        if open { MprotectFlags::READ | MprotectFlags::WRITE } else { MprotectFlags::empty() };
    // SAFETY: the range is a part of the reserved range, into which no Rust references exist.
    match unsafe { mm::mprotect(at as *mut c_void, span, flags) } {
        Ok(()) => Ok(()),
        Err(error) => fail(sys::ACL_ERROR_RT_DRV_INTERNAL_ERROR, format!("mprotect: {error}")),
    }
}

/// Returns the pages to the system and keeps the addresses reserved.
fn release_pages(at: u64, span: usize) {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: the range is an unused part of the reserved range; the new mapping also replaces a
    // second mapping of host memory.
    let again = unsafe { mm::mmap_anonymous(at as *mut c_void, span, ProtFlags::empty(), flags) };
    if again.is_err() {
        // SAFETY: the range is an unused part of the reserved range. Its pages are dropped and stay
        // inaccessible.
        let _ = unsafe { mm::madvise(at as *mut c_void, span, Advice::LinuxDontNeed) };
    }
}
