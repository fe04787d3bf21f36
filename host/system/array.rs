//! Arrays whose length is known when they are made, in memory of the system or of the caller's allocator.

use std::ops::{Deref, DerefMut};
use std::slice;
use std::sync::Arc;

use crate::Result;
use crate::system::allocator::{Allocated, Allocator, MemoryKind};
use crate::system::reserve;

/// An integer, or several: any bytes are a value of it, and it has no padding.
///
/// # Safety
/// The above is true of the type, and it needs no larger alignment than [`Allocated::LINE`].
pub(crate) unsafe trait Integer: Copy {}
// SAFETY: an integer has neither padding nor invalid values.
unsafe impl Integer for i32 {}
// SAFETY: as for `i32`.
unsafe impl Integer for i64 {}
// SAFETY: as for `i32`.
unsafe impl Integer for u64 {}

/// An array of integers. It is small, because a plan, which is moved over the stack, has many.
#[derive(Debug)]
pub(crate) enum Array<T> {
    Own(Vec<T>),
    /// The memory and the number of elements.
    Allocated(Allocated, usize),
}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Self::Own(Vec::new())
    }
}

impl<T: Integer> Array<T> {
    /// Returns `len` times `value`; `len` is at least 1.
    pub fn filled(
        what: &'static str,
        len: usize,
        value: T,
        allocator: Option<&Arc<dyn Allocator>>,
    ) -> Result<Self> {
        let Some(allocator) = allocator else {
            return reserve::filled(what, len, value).map(Self::Own);
        };
        let (kind, bytes) = (MemoryKind::Host, len.saturating_mul(size_of::<T>()));
        let memory = Allocated::new(allocator, kind, what, bytes, Allocated::LINE)?;
        let first = memory.ptr().cast::<T>();
        for at in 0..len {
            // SAFETY: the memory has `len` elements, is aligned for a T (`Integer`), and nothing
            // else uses it.
            unsafe { first.add(at).write(value) };
        }
        Ok(Self::Allocated(memory, len))
    }

    /// Returns the bytes of the elements.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the elements are initialised and have no padding (`Integer`).
        unsafe { slice::from_raw_parts(self.as_ptr().cast(), size_of_val(&**self)) }
    }

    /// Returns the bytes of the elements, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = size_of_val(&**self);
        // SAFETY: the elements have no padding, and any bytes are values of them (`Integer`).
        unsafe { slice::from_raw_parts_mut(self.as_mut_ptr().cast(), bytes) }
    }
}

impl<T: Integer> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Own(values) => values,
            // SAFETY: `filled` has initialised `len` elements, which this value owns.
            Self::Allocated(memory, len) => unsafe {
                slice::from_raw_parts(memory.ptr().cast(), *len)
            },
        }
    }
}

impl<T: Integer> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Own(values) => values,
            // SAFETY: as for `deref`; `&mut self` makes the access exclusive.
            Self::Allocated(memory, len) => unsafe {
                slice::from_raw_parts_mut(memory.ptr().cast(), *len)
            },
        }
    }
}
