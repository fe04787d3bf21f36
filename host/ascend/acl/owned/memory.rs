//! Device memory and pinned host memory.

use std::ffi::c_void;
use std::sync::Arc;

use super::super::api::memory::{self, Way};
use super::{Context, RawStream};
use crate::{Error, Result};

/// Device memory. Its address means nothing to the host.
#[derive(Debug)]
pub struct DeviceMemory {
    context: Arc<Context>,
    at: *mut c_void,
    bytes: usize,
}

// SAFETY: memory of the context, not of a thread; the address is never dereferenced here.
unsafe impl Send for DeviceMemory {}
// SAFETY: as for Send.
unsafe impl Sync for DeviceMemory {}

impl DeviceMemory {
    /// So many bytes, not zeroed.
    ///
    /// # Errors
    /// If the device has no such amount left.
    pub fn new(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        let _current = context.bind()?;
        // The runtime refuses 0.
        let bytes = bytes.max(1);
        let at = memory::malloc(context.acl(), bytes)?;
        Ok(Self { context: Arc::clone(context), at, bytes })
    }

    /// So many bytes of zero.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn zeroed(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        let memory = Self::new(context, bytes)?;
        let _current = context.bind()?;
        // SAFETY: the memory is new: no work uses it.
        unsafe { memory::set(context.acl(), memory.at, 0, memory.bytes)? };
        Ok(memory)
    }

    /// Its address, for kernels and copies.
    pub fn address(&self) -> u64 {
        self.at as u64
    }

    /// Its bytes.
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

    /// Reads a range and waits for it. The streams that write it must be done.
    ///
    /// # Errors
    /// If the range is not in it, or the copy failed.
    pub fn read(&self, from: usize, into: &mut [u8]) -> Result<()> {
        let at = self.part(from, into.len())?;
        if into.is_empty() {
            return Ok(());
        }
        let _current = self.context.bind()?;
        let (to, bytes) = (into.as_mut_ptr().cast(), into.len());
        // SAFETY: `part` checked the device's range, and `into` is the host's.
        unsafe { memory::copy(self.context.acl(), to, at, bytes, Way::ToHost) }
    }

    /// Writes a range and waits for it. No stream may use it meanwhile.
    ///
    /// # Errors
    /// If the range is not in it, or the copy failed.
    pub fn write(&self, from: usize, bytes: &[u8]) -> Result<()> {
        let at = self.part(from, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let _current = self.context.bind()?;
        let source = bytes.as_ptr().cast();
        // SAFETY: `part` checked the device's range, and `bytes` is the host's.
        unsafe { memory::copy(self.context.acl(), at, source, bytes.len(), Way::ToDevice) }
    }

    /// Puts a copy from pinned memory into a stream.
    ///
    /// # Safety
    /// Neither memory is dropped, nor is the pinned range written, before the stream has done it.
    ///
    /// # Errors
    /// If a range is not in its memory, or the runtime refuses.
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
        // SAFETY: both ranges were checked, and they live on by the contract.
        unsafe { memory::copy_async(acl, at, source, bytes, Way::ToDevice, stream) }
    }

    /// Puts a copy to pinned memory into a stream.
    ///
    /// # Safety
    /// As for [`Self::upload`], and the pinned range is not read before either.
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
        // SAFETY: both ranges were checked, and they live on by the contract.
        unsafe { memory::copy_async(acl, target, at, bytes, Way::ToHost, stream) }
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: it came from `malloc`; whoever drops it has waited for the work that uses it.
        self.context.release(|acl| unsafe { memory::free(acl, self.at) });
    }
}

/// Pinned host memory, zeroed at first.
#[derive(Debug)]
pub struct PinnedMemory {
    context: Arc<Context>,
    at: *mut c_void,
    bytes: usize,
}

// SAFETY: memory of the process; access goes through `&self` for reading and `&mut self` for writing.
unsafe impl Send for PinnedMemory {}
// SAFETY: as for Send.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    /// So many bytes.
    ///
    /// # Errors
    /// If they cannot be had.
    pub fn new(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        let _current = context.bind()?;
        let bytes = bytes.max(1);
        let at = memory::malloc_host(context.acl(), bytes)?;
        // SAFETY: the runtime returned so many bytes of host memory, and nobody else has them.
        unsafe { core::ptr::write_bytes(at.cast::<u8>(), 0, bytes) };
        Ok(Self { context: Arc::clone(context), at, bytes })
    }

    fn part(&self, from: usize, bytes: usize) -> Result<*mut c_void> {
        if from.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            let value = format!("{bytes} bytes at {from}");
            let limit = format!("it has {}", self.bytes);
            return Err(Error::invalid("pinned memory", value, limit, "pass a range inside it"));
        }
        Ok(self.at.wrapping_byte_add(from))
    }

    /// Its words. No copy into it may be under way.
    pub fn words(&self) -> &[i32] {
        // SAFETY: the memory is 64-byte aligned, zeroed at first, and ours; any bits are a word.
        unsafe { core::slice::from_raw_parts(self.at.cast(), self.bytes / 4) }
    }

    /// Its bytes, to write. No copy from it may be under way.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `words`, and `&mut self` is the only access.
        unsafe { core::slice::from_raw_parts_mut(self.at.cast(), self.bytes) }
    }

    /// Its words, to write. No copy from it may be under way.
    pub fn words_mut(&mut self) -> &mut [i32] {
        // SAFETY: as for `words`, and `&mut self` is the only access.
        unsafe { core::slice::from_raw_parts_mut(self.at.cast(), self.bytes / 4) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // SAFETY: it came from `malloc_host`; whoever drops it has waited for the copies.
        self.context.release(|acl| unsafe { memory::free_host(acl, self.at) });
    }
}
