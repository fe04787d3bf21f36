//! Memory of the caller: an allocator that a pool or an engine uses in place of the system's and the
//! device's.

use std::fmt::Debug;
use std::sync::Arc;

use crate::system::address::Address;
use crate::{Error, Result, invalid};

/// What memory is used for, which decides where it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Memory of the process: the pool, the outputs of plans, and all memory of the CPU device.
    Host,
    /// Memory of the process that an Ascend device copies from and to (`aclrtMallocHost`).
    Pinned,
    /// Memory of an Ascend device (`aclrtMalloc`).
    Device,
}

/// Bytes of each kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryBytes {
    /// Bytes of [`MemoryKind::Host`].
    pub host: usize,
    /// Bytes of [`MemoryKind::Pinned`].
    pub pinned: usize,
    /// Bytes of [`MemoryKind::Device`].
    pub device: usize,
}

/// An allocator of the caller, for [`PoolConfig::allocator`](crate::pool::PoolConfig::allocator) and
/// [`Config::allocator`](crate::engine::Config::allocator).
///
/// It is called by the threads that make and drop pools, engines and plans, and by a call with host
/// arrays on an Ascend device whose batch is larger than every earlier one. For memory of a device
/// and pinned memory, the context of the device is the current one of the thread. It must not call
/// the object that it is called for.
///
/// # Safety
/// The memory that [`Self::allocate`] returns is of the kind, valid for reads and writes of its
/// length, and used by nothing else until it is released. It need not be zeroed.
pub unsafe trait Allocator: Debug + Send + Sync {
    /// Returns the address of `bytes` bytes, at least 1, at a multiple of `alignment`, a power of
    /// two up to 4096; null if there is no memory.
    fn allocate(&self, kind: MemoryKind, bytes: usize, alignment: usize) -> *mut u8;

    /// Takes memory back.
    ///
    /// # Safety
    /// [`Self::allocate`] returned `address` for this kind and length, and it was not released since.
    unsafe fn release(&self, kind: MemoryKind, address: *mut u8, bytes: usize);
}

/// Memory of a caller's allocator, which is released on drop.
#[derive(Debug)]
pub(crate) struct Allocated {
    allocator: Arc<dyn Allocator>,
    kind: MemoryKind,
    at: Address<u8>,
    bytes: usize,
}

impl Allocated {
    /// The alignment of everything but a pool's chunks: a cache line, and what kernels of a device
    /// need.
    pub const LINE: usize = 64;

    /// Allocates memory whose contents are not known.
    pub fn new(
        allocator: &Arc<dyn Allocator>,
        kind: MemoryKind,
        what: &'static str,
        bytes: usize,
        alignment: usize,
    ) -> Result<Self> {
        let at = allocator.allocate(kind, bytes, alignment);
        if at.is_null() {
            return Err(Error::OutOfMemory { what, bytes });
        }
        let memory = Self { allocator: Arc::clone(allocator), kind, at: Address(at), bytes };
        if at.addr().is_multiple_of(alignment) {
            return Ok(memory);
        }
        // The drop of `memory` releases it.
        Err(invalid!("allocated address" is format!("{at:p}"), but
            "{what} must begin at a multiple of {alignment}";
            "return memory with the alignment that the allocator is asked for"))
    }

    /// Allocates memory of the process, in which every byte is zero.
    pub fn zeroed(
        allocator: &Arc<dyn Allocator>,
        what: &'static str,
        bytes: usize,
        alignment: usize,
    ) -> Result<Self> {
        let memory = Self::new(allocator, MemoryKind::Host, what, bytes, alignment)?;
        // SAFETY: the allocator returned `bytes` bytes of this process that nothing else uses
        // (`Allocator`).
        unsafe { memory.ptr().write_bytes(0, bytes) };
        Ok(memory)
    }

    pub fn ptr(&self) -> *mut u8 {
        self.at.0
    }
}

impl Drop for Allocated {
    fn drop(&mut self) {
        // SAFETY: `new` got the address from this allocator for this kind and length, and only this
        // drop releases it.
        unsafe { self.allocator.release(self.kind, self.ptr(), self.bytes) };
    }
}
