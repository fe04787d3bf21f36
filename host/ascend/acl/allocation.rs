//! Memory of the runtime or of the caller's allocator.

use std::ffi::c_void;
use std::sync::Arc;

use super::{Context, call, sys};
use crate::allocator::{Allocated, Allocator, MemoryKind};
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
pub(super) struct Allocation {
    pub context: Arc<Context>,
    kind: MemoryKind,
    pub at: *mut c_void,
    pub bytes: usize,
    /// The memory, if it is not the runtime's.
    allocated: Option<Allocated>,
}

// SAFETY: the memory belongs to the context or the process, not to a thread; the address is never
// dereferenced here.
unsafe impl Send for Allocation {}
// SAFETY: the fact above holds for shared references, too.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// Allocates `bytes` bytes, at least one, which are not zeroed. The kind is `Device` or `Pinned`.
    pub fn new<'a>(
        source: impl Into<MemorySource<'a>>,
        kind: MemoryKind,
        bytes: usize,
    ) -> Result<Self> {
        let MemorySource { context, allocator } = source.into();
        let _current = context.bind()?;
        // The runtime refuses allocations of 0 bytes.
        let (acl, bytes) = (context.acl(), bytes.max(1));
        let allocate = |from| Allocated::new(from, kind, what(kind), bytes, Allocated::LINE);
        let allocated = allocator.map(allocate).transpose()?;
        let (mut at, policy) = (core::ptr::null_mut(), sys::ACL_MEM_MALLOC_HUGE_FIRST);
        match (&allocated, kind) {
            (Some(memory), _) => at = memory.ptr().cast(),
            // SAFETY: the function writes an address to `at`.
            (None, MemoryKind::Device) => unsafe {
                call!(acl, aclrtMalloc(&mut at, bytes, policy))?
            },
            // SAFETY: the function writes an address to `at`.
            (None, _) => unsafe { call!(acl, aclrtMallocHost(&mut at, bytes))? },
        }
        Ok(Self { context: Arc::clone(context), kind, at, bytes, allocated })
    }

    /// Returns the address of the range of `bytes` bytes that begins at byte `from`.
    ///
    /// # Errors
    /// If the range is out of bounds.
    pub fn part(&self, from: usize, bytes: usize) -> Result<*mut c_void> {
        ensure!(from.checked_add(bytes).is_some_and(|end| end <= self.bytes),
            (what(self.kind)) is format!("{bytes} bytes at {from}"), but "it has {}", self.bytes;
            "pass a range inside it");
        Ok(self.at.wrapping_byte_add(from))
    }
}

fn what(kind: MemoryKind) -> &'static str {
    if kind == MemoryKind::Device { "device memory" } else { "pinned memory" }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.allocated.is_some() {
            // The caller's allocator is called in the context that the memory was allocated in.
            let current = self.context.bind();
            self.allocated = None;
            if let Err(error) = current {
                self.context.record(error);
            }
            return;
        }
        self.context.release(|acl| match self.kind {
            // SAFETY: `aclrtMalloc` returned the memory; a caller that queued work on it has waited
            // for the work.
            MemoryKind::Device => unsafe { call!(acl, aclrtFree(self.at)) },
            // SAFETY: `aclrtMallocHost` returned the memory; a caller that queued copies has waited
            // for them.
            _ => unsafe { call!(acl, aclrtFreeHost(self.at)) },
        });
    }
}
