//! Arrays whose length is known when they are made, and zeroed memory, from the system or from the
//! caller's allocator.

use std::ops::{Deref, DerefMut};
use std::slice;
use std::sync::Arc;

use crate::Result;
use crate::system::allocator::{Allocated, Allocator, MemoryKind};
use crate::system::mapping::Mapping;
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

/// An array of integers.
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

/// Zeroed memory of this process: a mapping, or memory of the caller's allocator.
#[derive(Debug)]
pub(crate) enum ProcessMemory {
    Mapped(Mapping),
    Allocated(Allocated),
}

impl ProcessMemory {
    /// Returns `bytes` bytes of zero, which begin at a multiple of `align`, at most a page.
    pub fn zeroed(
        what: &'static str,
        bytes: usize,
        align: usize,
        allocator: Option<&Arc<dyn Allocator>>,
    ) -> Result<Self> {
        let Some(allocator) = allocator else {
            return Mapping::anonymous(what, bytes).map(Self::Mapped);
        };
        Allocated::zeroed(allocator, what, bytes, align).map(Self::Allocated)
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
