//! Device memory and pinned host memory.

use std::ffi::c_void;
use std::sync::Arc;

use super::super::api::memory::{self, CopyKind};
use super::{Context, RawStream};
use crate::allocator::{Allocated, Allocator, MemoryKind};
use crate::{Error, Result};

/// Device memory, which the host cannot access by its address.
#[derive(Debug)]
pub struct DeviceMemory {
    context: Arc<Context>,
    at: *mut c_void,
    bytes: usize,
    /// The memory, if it is not the runtime's.
    allocated: Option<Allocated>,
}

// SAFETY: memory of the context, not of a thread; the address is never dereferenced here.
unsafe impl Send for DeviceMemory {}
// SAFETY: the fact above holds for shared references, too.
unsafe impl Sync for DeviceMemory {}

impl DeviceMemory {
    /// Allocates `bytes` bytes, which are not zeroed.
    ///
    /// # Errors
    /// If the device has too little memory.
    pub fn new(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        Self::new_in(context, bytes, None)
    }

    /// Allocates as [`Self::new`] does, from the caller's allocator if there is one.
    pub(crate) fn new_in(
        context: &Arc<Context>,
        bytes: usize,
        allocator: Option<&Arc<dyn Allocator>>,
    ) -> Result<Self> {
        let _current = context.bind()?;
        // The runtime refuses allocations of 0 bytes.
        let bytes = bytes.max(1);
        let allocated = from_allocator(allocator, MemoryKind::Device, "device memory", bytes)?;
        let at = match &allocated {
            Some(memory) => memory.ptr().cast(),
            None => memory::malloc(context.acl(), bytes)?,
        };
        Ok(Self { context: Arc::clone(context), at, bytes, allocated })
    }

    /// Allocates `bytes` bytes of zero.
    ///
    /// # Errors
    /// As for [`Self::new`], or if the memory cannot be set.
    pub fn zeroed(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        Self::zeroed_in(context, bytes, None)
    }

    /// Allocates as [`Self::zeroed`] does, from the caller's allocator if there is one.
    pub(crate) fn zeroed_in(
        context: &Arc<Context>,
        bytes: usize,
        allocator: Option<&Arc<dyn Allocator>>,
    ) -> Result<Self> {
        let memory = Self::new_in(context, bytes, allocator)?;
        let _current = context.bind()?;
        // SAFETY: the memory is new, so no work uses it.
        unsafe { memory::set(context.acl(), memory.at, 0, memory.bytes)? };
        Ok(memory)
    }

    /// Returns the device address.
    pub fn address(&self) -> u64 {
        self.at as u64
    }

    /// Returns the length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.bytes
    }

    fn part(&self, from: usize, bytes: usize) -> Result<*mut c_void> {
        if from.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            let value = format!("{bytes} bytes at {from}");
            let limit = format!("it has {}", self.bytes);
            return Err(Error::invalid("device memory", value, limit, "pass a range inside it"));
        }
        Ok(self.at.wrapping_byte_add(from))
    }

    /// Copies the range that begins at byte `from` to the host and waits. Work that writes the
    /// range must be done.
    ///
    /// # Errors
    /// If the range is out of bounds, or the copy fails.
    pub fn read(&self, from: usize, into: &mut [u8]) -> Result<()> {
        let at = self.part(from, into.len())?;
        if into.is_empty() {
            return Ok(());
        }
        let _current = self.context.bind()?;
        let (to, bytes) = (into.as_mut_ptr().cast(), into.len());
        // SAFETY: `part` checked the range in device memory, and `into` is exclusive host memory.
        unsafe { memory::copy(self.context.acl(), to, at, bytes, CopyKind::DeviceToHost) }
    }

    /// Copies `bytes` to the range that begins at byte `from` and waits. No work may use the range
    /// meanwhile.
    ///
    /// # Errors
    /// If the range is out of bounds, or the copy fails.
    pub fn write(&self, from: usize, bytes: &[u8]) -> Result<()> {
        let at = self.part(from, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let _current = self.context.bind()?;
        let source = bytes.as_ptr().cast();
        // SAFETY: `part` checked the range in device memory, and `bytes` is host memory of the same
        // length.
        unsafe { memory::copy(self.context.acl(), at, source, bytes.len(), CopyKind::HostToDevice) }
    }

    /// Puts a copy of `bytes` bytes from offset `start` of pinned memory to offset `to` into a
    /// stream.
    ///
    /// # Safety
    /// Until the stream has done the copy, neither memory is dropped and the pinned range is not
    /// written.
    ///
    /// # Errors
    /// If a range is out of bounds, or a call of the runtime fails.
    pub unsafe fn upload(
        &self,
        to: usize,
        from: &PinnedMemory,
        start: usize,
        bytes: usize,
        stream: RawStream,
    ) -> Result<()> {
        let (at, source) = (self.part(to, bytes)?, from.part(start, bytes)?);
        if bytes == 0 {
            return Ok(());
        }
        let (acl, stream) = (self.context.acl(), stream.handle());
        // SAFETY: both ranges were checked, and both memories stay allocated by the contract (`#
        // Safety`).
        unsafe { memory::copy_async(acl, at, source, bytes, CopyKind::HostToDevice, stream) }
    }

    /// Puts a copy of `bytes` bytes from offset `from` to offset `start` of pinned memory into a
    /// stream.
    ///
    /// # Safety
    /// Until the stream has done the copy, neither memory is dropped and the pinned range is
    /// neither read nor written.
    ///
    /// # Errors
    /// As for [`Self::upload`].
    pub unsafe fn download(
        &self,
        from: usize,
        to: &PinnedMemory,
        start: usize,
        bytes: usize,
        stream: RawStream,
    ) -> Result<()> {
        let (at, target) = (self.part(from, bytes)?, to.part(start, bytes)?);
        if bytes == 0 {
            return Ok(());
        }
        let (acl, stream) = (self.context.acl(), stream.handle());
        // SAFETY: both ranges were checked, and both memories stay allocated by the contract (`#
        // Safety`).
        unsafe { memory::copy_async(acl, target, at, bytes, CopyKind::DeviceToHost, stream) }
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.allocated.is_some() {
            return release(&self.context, &mut self.allocated);
        }
        // SAFETY: the memory came from `malloc`; a caller that queued work on it has waited for the
        // work.
        self.context.release(|acl| unsafe { memory::free(acl, self.at) });
    }
}

/// Allocates from the caller's allocator if there is one.
fn from_allocator(
    allocator: Option<&Arc<dyn Allocator>>,
    kind: MemoryKind,
    what: &'static str,
    bytes: usize,
) -> Result<Option<Allocated>> {
    let allocate = |from| Allocated::new(from, kind, what, bytes, Allocated::LINE);
    allocator.map(allocate).transpose()
}

/// Gives memory back to the caller's allocator, in the context that it was allocated in.
fn release(context: &Context, allocated: &mut Option<Allocated>) {
    let current = context.bind();
    *allocated = None;
    if let Err(error) = current {
        context.record(error);
    }
}

/// Pinned host memory, which is zeroed at first.
#[derive(Debug)]
pub struct PinnedMemory {
    context: Arc<Context>,
    at: *mut c_void,
    bytes: usize,
    /// The memory, if it is not the runtime's.
    allocated: Option<Allocated>,
}

// SAFETY: the memory belongs to the process, not to a thread; it is read through `&self` and
// written through `&mut self`.
unsafe impl Send for PinnedMemory {}
// SAFETY: the fact above holds for shared references, too.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    /// Allocates `bytes` bytes.
    ///
    /// # Errors
    /// If the runtime cannot allocate them.
    pub fn new(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        Self::new_in(context, bytes, None)
    }

    /// Allocates as [`Self::new`] does, from the caller's allocator if there is one.
    pub(crate) fn new_in(
        context: &Arc<Context>,
        bytes: usize,
        allocator: Option<&Arc<dyn Allocator>>,
    ) -> Result<Self> {
        let _current = context.bind()?;
        let bytes = bytes.max(1);
        let allocated = from_allocator(allocator, MemoryKind::Pinned, "pinned memory", bytes)?;
        let at = match &allocated {
            Some(memory) => memory.ptr().cast(),
            None => memory::malloc_host(context.acl(), bytes)?,
        };
        // SAFETY: the runtime or the allocator returned `bytes` bytes of host memory, which no other
        // code uses.
        unsafe { core::ptr::write_bytes(at.cast::<u8>(), 0, bytes) };
        Ok(Self { context: Arc::clone(context), at, bytes, allocated })
    }

    fn part(&self, from: usize, bytes: usize) -> Result<*mut c_void> {
        if from.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            let value = format!("{bytes} bytes at {from}");
            let limit = format!("it has {}", self.bytes);
            return Err(Error::invalid("pinned memory", value, limit, "pass a range inside it"));
        }
        Ok(self.at.wrapping_byte_add(from))
    }

    /// Returns the words.
    ///
    /// # Safety
    /// No copy into the memory is in progress while the result is in use.
    pub unsafe fn words(&self) -> &[i32] {
        // SAFETY: this value owns the memory, which is 64-byte aligned and initialised; all bit
        // patterns are valid words. Nothing writes them by the contract (`# Safety`).
        unsafe { core::slice::from_raw_parts(self.at.cast(), self.bytes / 4) }
    }

    /// Returns the bytes to write.
    ///
    /// # Safety
    /// No copy from or into the memory is in progress while the result is in use.
    pub unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `words`; `&mut self` and the contract make the access exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.at.cast(), self.bytes) }
    }

    /// Returns the words to write.
    ///
    /// # Safety
    /// As for [`Self::bytes_mut`].
    pub unsafe fn words_mut(&mut self) -> &mut [i32] {
        // SAFETY: as for `words`; `&mut self` and the contract make the access exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.at.cast(), self.bytes / 4) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if self.allocated.is_some() {
            return release(&self.context, &mut self.allocated);
        }
        // SAFETY: the memory came from `malloc_host`; a caller that queued copies has waited for
        // them.
        self.context.release(|acl| unsafe { memory::free_host(acl, self.at) });
    }
}
