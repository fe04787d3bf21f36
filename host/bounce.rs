//! Bounce buffers: memory into which records of a file are read, and from which their rows are copied
//! to slots.

use std::fmt;
use std::sync::Arc;

use crate::Result;
use crate::allocator::{Allocated, Allocator};
use crate::array::ProcessMemory;
use crate::mapping::Mapping;

const WHAT: &str = "bounce buffer";
/// The alignment that direct reads need at most.
const ALIGN: usize = 4096;

/// A bounce buffer. The kernel writes it while a read is in flight, so that no Rust reference into it
/// exists then.
pub(crate) struct Bounce(ProcessMemory);

impl Bounce {
    /// Allocates a bounce buffer of `bytes` bytes; none for 0.
    pub fn new(bytes: usize, allocator: Option<&Arc<dyn Allocator>>) -> Result<Option<Arc<Self>>> {
        let memory = match allocator {
            _ if bytes == 0 => return Ok(None),
            None => ProcessMemory::Mapped(Mapping::anonymous(WHAT, bytes)?),
            Some(allocator) => {
                ProcessMemory::Allocated(Allocated::zeroed(allocator, WHAT, bytes, ALIGN)?)
            }
        };
        Ok(Some(Arc::new(Self(memory))))
    }

    pub fn ptr(&self) -> *mut u8 {
        self.0.ptr()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for Bounce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounce").field("bytes", &self.len()).finish_non_exhaustive()
    }
}
