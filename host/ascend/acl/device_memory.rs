//! Device memory, and copies from and to it.

use std::ffi::c_void;

use super::allocation::{Allocation, MemorySource};
use super::{Current, PinnedMemory, call, sys};
use crate::Result;
use crate::allocator::MemoryKind;
use crate::device_arrays::RawStream;

/// Device memory, which the host cannot access by its address.
#[derive(Debug)]
pub struct DeviceMemory(Allocation);

impl DeviceMemory {
    /// Allocates `bytes` bytes, which are not zeroed.
    ///
    /// # Errors
    /// If the device or the allocator has too little memory.
    pub fn new<'a>(source: impl Into<MemorySource<'a>>, bytes: usize) -> Result<Self> {
        Allocation::new(source, MemoryKind::Device, bytes).map(Self)
    }

    /// Allocates `bytes` bytes of zero.
    ///
    /// # Errors
    /// As for [`Self::new`], or if the memory cannot be set.
    pub fn zeroed<'a>(source: impl Into<MemorySource<'a>>, bytes: usize) -> Result<Self> {
        let source = source.into();
        let (memory, _current) = (Self::new(source, bytes)?, source.context.bind()?);
        let (at, bytes) = (memory.0.at, memory.0.bytes);
        // SAFETY: the memory has `bytes` bytes and is new, so no work uses it.
        unsafe { call!(source.context.acl(), aclrtMemset(at, bytes, 0, bytes))? };
        Ok(memory)
    }

    /// Returns the device address.
    pub fn address(&self) -> u64 {
        self.0.at as u64
    }

    /// Returns the length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.0.bytes
    }

    /// Copies the range that begins at byte `from` to the host and waits. Work that writes the
    /// range must be done.
    ///
    /// # Errors
    /// If the range is out of bounds, or the copy fails.
    pub fn read(&self, from: usize, into: &mut [u8]) -> Result<()> {
        let at = self.0.part(from, into.len())?;
        if into.is_empty() {
            return Ok(());
        }
        // SAFETY: `part` checked the range.
        unsafe { self.0.context.bind()?.read(at, into) }
    }

    /// Copies `bytes` to the range that begins at byte `from` and waits. No work may use the range
    /// meanwhile.
    ///
    /// # Errors
    /// If the range is out of bounds, or the copy fails.
    pub fn write(&self, from: usize, bytes: &[u8]) -> Result<()> {
        let at = self.0.part(from, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let (source, kind) = (bytes.as_ptr().cast(), sys::ACL_MEMCPY_HOST_TO_DEVICE);
        // SAFETY: `part` checked the range, and `bytes` is host memory of the same length.
        unsafe { self.0.context.bind()?.copy(at, source, bytes.len(), kind) }
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
        let (to, from) = (self.0.part(to, bytes)?, from.0.part(start, bytes)?);
        // SAFETY: `part` checked both ranges, which stay valid by the contract (`# Safety`).
        unsafe { self.queue(to, from, bytes, sys::ACL_MEMCPY_HOST_TO_DEVICE, stream) }
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
        let (from, to) = (self.0.part(from, bytes)?, to.0.part(start, bytes)?);
        // SAFETY: `part` checked both ranges, which stay valid by the contract (`# Safety`).
        unsafe { self.queue(to, from, bytes, sys::ACL_MEMCPY_DEVICE_TO_HOST, stream) }
    }

    /// # Safety
    /// Both ranges have `bytes` bytes, of which one is in device memory and one in pinned memory,
    /// until the stream has done the copy.
    unsafe fn queue(
        &self,
        to: *mut c_void,
        from: *mut c_void,
        bytes: usize,
        kind: i32,
        stream: RawStream,
    ) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let (acl, stream) = (self.0.context.acl(), stream.handle());
        // SAFETY: the ranges are valid by the contract (`# Safety`), and the stream is alive by that
        // of `RawStream::new`.
        unsafe { call!(acl, aclrtMemcpyAsync(to, bytes, from, bytes, kind, stream)) }
    }
}

/// Copies between addresses, which return when the copy is done and do not wait for streams.
impl Current<'_> {
    /// Copies from device memory to the host.
    ///
    /// # Safety
    /// `from` is the address of device memory of `into.len()` bytes.
    pub unsafe fn read(&self, from: *const c_void, into: &mut [u8]) -> Result<()> {
        let kind = sys::ACL_MEMCPY_DEVICE_TO_HOST;
        // SAFETY: `from` is valid (`# Safety`), and `into` is exclusive host memory.
        unsafe { self.copy(into.as_mut_ptr().cast(), from, into.len(), kind) }
    }

    /// Copies `bytes` bytes. `kind` is one of the constants `ACL_MEMCPY_*` of [`sys`].
    ///
    /// # Safety
    /// Both ranges are valid for `bytes` bytes and do not overlap, and no work writes them
    /// meanwhile.
    pub(crate) unsafe fn copy(
        &self,
        to: *mut c_void,
        from: *const c_void,
        bytes: usize,
        kind: i32,
    ) -> Result<()> {
        // SAFETY: the ranges are valid by the contract (`# Safety`).
        unsafe { call!(self.context.acl(), aclrtMemcpy(to, bytes, from, bytes, kind)) }
    }
}
