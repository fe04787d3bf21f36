//! Addresses that threads share.

/// An address in memory of the process or of a device, or a handle of a runtime. It belongs to no
/// thread, and a copy of it is only a number: code that dereferences it, or passes it to a runtime,
/// keeps the rules of the value that owns the memory.
#[derive(Debug)]
pub(crate) struct Address<T>(pub *mut T);

// SAFETY: this type keeps the address as a number and never dereferences it.
unsafe impl<T> Send for Address<T> {}
// SAFETY: a shared reference gives no more than the number, too.
unsafe impl<T> Sync for Address<T> {}

impl<T> Clone for Address<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Address<T> {}
