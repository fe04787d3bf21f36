//! Zeroed memory of this process: a mapping, or memory of the caller's allocator.

use std::sync::Arc;

use crate::Result;
use crate::allocator::{Allocated, Allocator};
use crate::mapping::Mapping;

pub(crate) enum ProcessMemory {
    Mapped(Mapping),
    Allocated(Allocated),
}

impl ProcessMemory {
    /// Returns `bytes` bytes of zero, which begin at a cache line.
    pub fn zeroed(
        what: &'static str,
        bytes: usize,
        allocator: Option<&Arc<dyn Allocator>>,
    ) -> Result<Self> {
        match allocator {
            None => Mapping::anonymous(what, bytes).map(Self::Mapped),
            Some(allocator) => {
                Allocated::zeroed(allocator, what, bytes, Allocated::LINE).map(Self::Allocated)
            }
        }
    }

    pub fn ptr(&self) -> *mut u8 {
        match self {
            Self::Mapped(mapping) => mapping.ptr(),
            Self::Allocated(memory) => memory.ptr(),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Mapped(mapping) => mapping.len(),
            Self::Allocated(memory) => memory.len(),
        }
    }

    /// Returns the bytes that transparent hugepages map at the moment; 0 for memory of an allocator,
    /// which is not asked.
    pub fn huge_bytes(&self) -> usize {
        match self {
            Self::Mapped(mapping) => mapping.huge_bytes(),
            Self::Allocated(_) => 0,
        }
    }
}
