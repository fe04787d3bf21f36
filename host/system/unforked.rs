//! Memory that a forked child does not have.
//!
//! A fork makes the pages of a process copy-on-write. If the kernel is reading a file into one of them and this
//! process writes beside it, the process gets a copy without the bytes that arrive later.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use rustix::mm::Advice;

use crate::Result;
use crate::system::allocator::Allocator;
use crate::system::fork::Birth;
use crate::system::mapping::Mapping;

/// Zeroed memory that belongs to one process, for the kernel to write to.
#[derive(Debug)]
pub(crate) struct Unforked {
    /// A child must not give back what it has in this place.
    memory: ManuallyDrop<Mapping>,
    birth: Birth,
}

impl Unforked {
    /// Returns `bytes` bytes of zero, whole pages, from the start of a page on.
    pub fn zeroed(
        what: &'static str,
        bytes: usize,
        allocator: Option<&Arc<dyn Allocator>>,
    ) -> Result<Self> {
        let memory = Mapping::zeroed(what, bytes, rustix::param::page_size(), allocator)?;
        memory.advise(Advice::LinuxDontFork);
        Ok(Self { memory: ManuallyDrop::new(memory), birth: Birth::now() })
    }
}

impl Deref for Unforked {
    type Target = Mapping;

    fn deref(&self) -> &Mapping {
        &self.memory
    }
}

impl Drop for Unforked {
    fn drop(&mut self) {
        if !self.birth.is_past() {
            self.memory.advise(Advice::LinuxDoFork);
            // SAFETY: the memory is dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}
