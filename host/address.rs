//! Addresses that threads share.

/// An address in memory of the process or of a device, or a handle of a runtime. It belongs to no
/// thread, and a copy of it is only a number: code that dereferences it, or passes it to a runtime,
/// keeps the rules of the value that owns the memory.
#[derive(Debug)]
pub(crate) struct Address<T>(pub *mut T);

// SAFETY: this type does not access what the address is that of.
unsafe impl<T> Send for Address<T> {}
// SAFETY: the fact above holds for shared references, too.
unsafe impl<T> Sync for Address<T> {}

impl<T> Clone for Address<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Address<T> {}
