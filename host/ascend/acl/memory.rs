//! Memory of a device and pinned memory of the host, from the runtime or from the caller's allocator,
//! registered memory of the host, and copies between them.

use std::ffi::c_void;
use std::sync::Arc;

use super::{Acl, Context, Current, Owned, sys};
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
            // on it has waited for the work (`Mirrored::copy`, `Args::launch`, `Engine::enqueue_plan`).
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

/// Device memory, and pinned memory of the same length, zeroed at first, that streams copy to it and from it.
#[derive(Debug)]
pub(crate) struct Mirrored {
    pub device: DeviceMemory,
    pinned: Allocation,
}

impl Mirrored {
    /// Allocates `bytes` bytes of each.
    pub fn new(source: MemorySource<'_>, bytes: usize) -> Result<Self> {
        let device = DeviceMemory::new(source, bytes)?;
        let pinned = Allocation::new(source, (MemoryKind::Pinned, "pinned memory"), bytes)?;
        // SAFETY: the runtime or the allocator returned that many bytes of host memory, which no
        // other code uses.
        unsafe { pinned.at.0.write_bytes(0, pinned.bytes) };
        Ok(Self { device, pinned })
    }

    /// Returns the pinned bytes.
    ///
    /// # Safety
    /// No copy from or into the memory is in progress while the result is in use.
    pub unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        let Allocation { at, bytes, .. } = self.pinned;
        // SAFETY: this value owns the memory, which is initialised. The access is exclusive: other code has no
        // reference, and no copy is in progress (`# Safety`).
        unsafe { core::slice::from_raw_parts_mut(at.0.cast(), bytes) }
    }

    /// Returns the pinned words.
    ///
    /// # Safety
    /// As for [`Self::bytes_mut`].
    pub unsafe fn words_mut(&mut self) -> &mut [i32] {
        let Allocation { at, bytes, .. } = self.pinned;
        // SAFETY: as for `bytes_mut`. The memory is 64-byte aligned, and all bit patterns are valid words.
        unsafe { core::slice::from_raw_parts_mut(at.0.cast(), bytes / 4) }
    }

    /// Puts a copy of `bytes` bytes from byte `at` on into a stream: to device memory (`ACL_MEMCPY_HOST_TO_DEVICE`)
    /// or to pinned memory (`ACL_MEMCPY_DEVICE_TO_HOST`).
    ///
    /// # Safety
    /// - Until the stream has done the copy, and every replay of a captured one, this value is not dropped, nothing
    ///   else uses the range that is written, and nothing writes the other.
    /// - The stream is alive and belongs to the current context, which is the memory's.
    ///
    /// # Errors
    /// If the range is out of bounds.
    pub unsafe fn copy(&self, kind: i32, at: usize, bytes: usize, stream: RawStream) -> Result<()> {
        let (device, pinned) = (self.device.0.part(at, bytes)?, self.pinned.part(at, bytes)?);
        if bytes == 0 {
            return Ok(());
        }
        let up = kind == sys::ACL_MEMCPY_HOST_TO_DEVICE;
        let (to, from) = if up { (device, pinned) } else { (pinned, device) };
        let (acl, stream) = (self.pinned.context.acl(), stream.handle());
        // SAFETY: `part` checked both ranges. They are kept, and the stream is alive (`# Safety`).
        unsafe { acl.aclrtMemcpyAsync(to, bytes, from, bytes, kind, stream) }
    }
}

/// A registered range of host memory. It must be dropped before the memory is unmapped, and after
/// the kernels that use it are done.
#[derive(Debug)]
pub struct Registration {
    _host: Owned,
    device: Address<c_void>,
}

impl Registration {
    /// Registers whole pages.
    ///
    /// # Safety
    /// The range stays mapped until the registration is dropped.
    pub unsafe fn new(context: &Arc<Context>, at: *mut u8, bytes: usize) -> Result<Self> {
        let _current = context.bind()?;
        let (acl, host, mut device) = (context.acl(), at.cast(), core::ptr::null_mut());
        let (bytes, kind) = (bytes as u64, sys::ACL_HOST_REGISTER_MAPPED);
        // SAFETY: the range stays mapped until it is unregistered (`# Safety`).
        unsafe { acl.aclrtHostRegister(host, bytes, kind, &mut device)? };
        // SAFETY: the range was registered above, and `Owned` unregisters it. Whoever launched a kernel
        // with its address keeps the address valid until the kernel is done (`Args::launch`).
        let host = unsafe { Owned::new(context, host, &[Acl::aclrtHostUnregister; 2]) };
        Ok(Self { _host: host, device: Address(device) })
    }

    /// Returns the device address of the range. Only kernels can use it; the runtime's copies
    /// refuse it.
    pub fn address(&self) -> u64 {
        self.device.0 as u64
    }
}
