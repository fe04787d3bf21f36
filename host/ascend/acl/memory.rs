//! Memory of a device and pinned memory of the host, from the runtime or from the caller's allocator,
//! and copies between them.

use std::ffi::c_void;
use std::sync::Arc;

use super::owned::Owned;
use super::{Acl, Context, Current, sys};
use crate::device_arrays::RawStream;
use crate::system::address::Address;
use crate::system::allocator::{Allocated, Allocator, MemoryKind};
use crate::{Result, ensure};

/// Where memory comes from: the runtime of a context, or the caller's allocator if there is one.
#[derive(Clone, Copy, Debug)]
pub struct MemorySource<'a> {
    pub(crate) context: &'a Arc<Context>,
    pub(crate) allocator: Option<&'a Arc<dyn Allocator>>,
}

impl<'a> From<&'a Arc<Context>> for MemorySource<'a> {
    fn from(context: &'a Arc<Context>) -> Self {
        Self { context, allocator: None }
    }
}

/// Memory of a device or pinned memory of the host, which is released on drop.
#[derive(Debug)]
struct Allocation {
    context: Arc<Context>,
    what: &'static str,
    at: Address<c_void>,
    bytes: usize,
    /// The memory, if it is the runtime's.
    _owned: Option<Owned>,
    /// The memory, if it is that of the caller's allocator.
    allocated: Option<Allocated>,
}

impl Allocation {
    /// Allocates `bytes` bytes, at least one, which are not zeroed. The kind is `Device` or `Pinned`.
    fn new<'a>(
        source: impl Into<MemorySource<'a>>,
        (kind, what): (MemoryKind, &'static str),
        bytes: usize,
    ) -> Result<Self> {
        let MemorySource { context, allocator } = source.into();
        let _current = context.bind()?;
        // The runtime refuses allocations of 0 bytes.
        let (acl, bytes) = (context.acl(), bytes.max(1));
        let (mut at, policy) = (core::ptr::null_mut(), sys::ACL_MEM_MALLOC_HUGE_FIRST);
        let (owned, allocated) = if let Some(from) = allocator {
            let memory = Allocated::new(from, kind, what, bytes, Allocated::LINE)?;
            at = memory.ptr().cast();
            (None, Some(memory))
        } else {
            let on_device = kind == MemoryKind::Device;
            // SAFETY: both functions write an address to `at`. `Owned` releases the memory there; who queued work
            // on it has waited for the work (`DeviceMemory::upload` and `download`, `Args::launch`,
            // `Engine::enqueue_plan`).
            let owned = unsafe {
                if on_device {
                    acl.aclrtMalloc(&mut at, bytes, policy)?;
                    Owned::new(context, at, &[Acl::aclrtFree; 2])
                } else {
                    acl.aclrtMallocHost(&mut at, bytes)?;
                    Owned::new(context, at, &[Acl::aclrtFreeHost; 2])
                }
            };
            (Some(owned), None)
        };
        let (context, at) = (Arc::clone(context), Address(at));
        Ok(Self { context, what, at, bytes, _owned: owned, allocated })
    }

    /// Returns the address of the range of `bytes` bytes that begins at byte `from`, if it is in bounds.
    fn part(&self, from: usize, bytes: usize) -> Result<*mut c_void> {
        ensure!(from.checked_add(bytes).is_some_and(|end| end <= self.bytes),
            (self.what) is format!("{bytes} bytes at {from}"), but "it has {}", self.bytes;
            "pass a range inside it");
        Ok(self.at.0.wrapping_byte_add(from))
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let Some(allocated) = self.allocated.take() else { return };
        // The caller's allocator is called in the context that the memory was allocated in.
        let current = self.context.bind();
        drop(allocated);
        if let Err(error) = current {
            self.context.record(error);
        }
    }
}

/// Device memory, which the host cannot access by its address.
#[derive(Debug)]
pub struct DeviceMemory(Allocation);

impl DeviceMemory {
    /// Allocates `bytes` bytes, which are not zeroed.
    pub fn new<'a>(source: impl Into<MemorySource<'a>>, bytes: usize) -> Result<Self> {
        Allocation::new(source, (MemoryKind::Device, "device memory"), bytes).map(Self)
    }

    /// Allocates `bytes` bytes of zero.
    pub fn zeroed<'a>(source: impl Into<MemorySource<'a>>, bytes: usize) -> Result<Self> {
        let source = source.into();
        let (memory, _current) = (Self::new(source, bytes)?, source.context.bind()?);
        let (at, bytes) = (memory.0.at.0, memory.0.bytes);
        // SAFETY: the memory has `bytes` bytes and is new, so no work uses it.
        unsafe { source.context.acl().aclrtMemset(at, bytes, 0, bytes)? };
        Ok(memory)
    }

    /// Allocates a copy of `bytes`.
    pub fn copied<'a>(source: impl Into<MemorySource<'a>>, bytes: &[u8]) -> Result<Self> {
        let memory = Self::new(source, bytes.len())?;
        // SAFETY: the memory is new, so nothing uses it.
        unsafe { memory.write(0, bytes)? };
        Ok(memory)
    }

    /// Returns the device address.
    pub fn address(&self) -> u64 {
        self.0.at.0 as u64
    }

    /// Returns the length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.0.bytes
    }

    /// Copies the range that begins at byte `from` to the host and waits. It does not wait for streams,
    /// so that only the caller knows that the bytes are at rest:
    ///
    /// ```compile_fail,E0133
    /// # use avsg::ascend::acl::DeviceMemory;
    /// fn read_beside_work(memory: &DeviceMemory, into: &mut [u8]) -> avsg::Result<()> {
    ///     memory.read(0, into)
    /// }
    /// ```
    ///
    /// # Safety
    /// No work and no other copy writes the range meanwhile.
    ///
    /// # Errors
    /// If the range is out of bounds.
    pub unsafe fn read(&self, from: usize, into: &mut [u8]) -> Result<()> {
        let at = self.0.part(from, into.len())?;
        // SAFETY: `part` checked the range, which nothing writes meanwhile (`# Safety`).
        unsafe { self.0.context.bind()?.read(at, into) }
    }

    /// Copies `bytes` to the range that begins at byte `from` and waits, but not for streams.
    ///
    /// # Safety
    /// No work and no other copy uses the range meanwhile.
    ///
    /// # Errors
    /// If the range is out of bounds.
    pub unsafe fn write(&self, from: usize, bytes: &[u8]) -> Result<()> {
        let at = self.0.part(from, bytes.len())?;
        let (source, kind) = (bytes.as_ptr().cast(), sys::ACL_MEMCPY_HOST_TO_DEVICE);
        // SAFETY: `part` checked the range, which nothing uses meanwhile (`# Safety`), and `bytes` is
        // host memory of the same length.
        unsafe { self.0.context.bind()?.copy(at, source, bytes.len(), kind) }
    }

    /// Puts a copy of `bytes` bytes from pinned memory into a stream. Both ranges begin at byte `at`.
    ///
    /// # Safety
    /// - Until the stream has done the copy, and every replay of a captured one, neither memory is
    ///   dropped, the pinned range is not written, and nothing else uses the device range.
    /// - The stream is alive and belongs to the current context, which is the memory's.
    ///
    /// # Errors
    /// If a range is out of bounds.
    pub unsafe fn upload(
        &self,
        at: usize,
        from: &PinnedMemory,
        bytes: usize,
        stream: RawStream,
    ) -> Result<()> {
        let (to, from) = (self.0.part(at, bytes)?, from.0.part(at, bytes)?);
        // SAFETY: `part` checked both ranges. They are kept, and the stream is alive (`# Safety`).
        unsafe { self.queue(to, from, bytes, sys::ACL_MEMCPY_HOST_TO_DEVICE, stream) }
    }

    /// Puts a copy of `bytes` bytes to pinned memory into a stream. Both ranges begin at byte `at`.
    ///
    /// # Safety
    /// - Until the stream has done the copy, and every replay of a captured one, neither memory is
    ///   dropped, the pinned range is neither read nor written, and nothing else writes the device range.
    /// - The stream is alive and belongs to the current context, which is the memory's.
    ///
    /// # Errors
    /// As for [`Self::upload`].
    pub unsafe fn download(
        &self,
        at: usize,
        to: &PinnedMemory,
        bytes: usize,
        stream: RawStream,
    ) -> Result<()> {
        let (from, to) = (self.0.part(at, bytes)?, to.0.part(at, bytes)?);
        // SAFETY: `part` checked both ranges. They are kept, and the stream is alive (`# Safety`).
        unsafe { self.queue(to, from, bytes, sys::ACL_MEMCPY_DEVICE_TO_HOST, stream) }
    }

    /// # Safety
    /// Both ranges have `bytes` bytes, of which one is in device memory and one in pinned memory,
    /// until the stream has done the copy. The stream is alive and belongs to the current context.
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
        // SAFETY: the ranges are valid until the copy is done, and the stream is alive (`# Safety`).
        unsafe { acl.aclrtMemcpyAsync(to, bytes, from, bytes, kind, stream) }
    }
}

/// Copies between addresses, which return when the copy is done and do not wait for streams.
impl Current<'_> {
    /// Copies from device memory to the host.
    ///
    /// # Safety
    /// `from` is the address of device memory of `into.len()` bytes, which nothing writes meanwhile.
    pub unsafe fn read(&self, from: *const c_void, into: &mut [u8]) -> Result<()> {
        let kind = sys::ACL_MEMCPY_DEVICE_TO_HOST;
        // SAFETY: `from` is valid and at rest (`# Safety`), and `into` is exclusive host memory, which
        // is not device memory.
        unsafe { self.copy(into.as_mut_ptr().cast(), from, into.len(), kind) }
    }

    /// Copies `bytes` bytes. `kind` is one of the constants `ACL_MEMCPY_*` of [`sys`].
    ///
    /// # Safety
    /// Both ranges are valid for `bytes` bytes and do not overlap. Meanwhile nothing else writes them, and
    /// nothing else reads the range at `to`.
    pub(crate) unsafe fn copy(
        &self,
        to: *mut c_void,
        from: *const c_void,
        bytes: usize,
        kind: i32,
    ) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the ranges are valid, apart and at rest (`# Safety`).
        unsafe { self.context.acl().aclrtMemcpy(to, bytes, from, bytes, kind) }
    }
}

/// Pinned host memory, which is zeroed at first.
#[derive(Debug)]
pub struct PinnedMemory(Allocation);

impl PinnedMemory {
    /// Allocates `bytes` bytes.
    pub fn new<'a>(source: impl Into<MemorySource<'a>>, bytes: usize) -> Result<Self> {
        let memory = Allocation::new(source, (MemoryKind::Pinned, "pinned memory"), bytes)?;
        // SAFETY: the runtime or the allocator returned that many bytes of host memory, which no
        // other code uses.
        unsafe { memory.at.0.write_bytes(0, memory.bytes) };
        Ok(Self(memory))
    }

    /// Returns the bytes.
    ///
    /// # Safety
    /// No copy from or into the memory is in progress while the result is in use.
    pub unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: this value owns the memory, which is initialised. The access is exclusive: other code has no
        // reference, and no copy is in progress (`# Safety`).
        unsafe { core::slice::from_raw_parts_mut(self.0.at.0.cast(), self.0.bytes) }
    }

    /// Returns the words.
    ///
    /// # Safety
    /// As for [`Self::bytes_mut`].
    pub unsafe fn words_mut(&mut self) -> &mut [i32] {
        // SAFETY: as for `bytes_mut`. The memory is 64-byte aligned, and all bit patterns are valid words.
        unsafe { core::slice::from_raw_parts_mut(self.0.at.0.cast(), self.0.bytes / 4) }
    }
}
