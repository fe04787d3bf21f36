//! Memory for direct reads and writes outside a step.

use crate::Result;
use crate::system::reserve;

/// The alignment of [`Aligned`], and of pages: no device asks for more.
pub(crate) const ALIGNMENT: usize = 4096;

/// Zeroed memory that begins at a multiple of [`ALIGNMENT`].
pub(super) struct Aligned {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    pub fn zeroed(what: &'static str, len: usize) -> Result<Self> {
        let memory = reserve::filled(what, len.saturating_add(ALIGNMENT), 0u8)?;
        let start = memory.as_ptr().addr().wrapping_neg() % ALIGNMENT;
        Ok(Self { memory, start, len })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..][..self.len]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.len]
    }
}
