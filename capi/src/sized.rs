//! What C passes by pointer: structs that begin with their size, places for results, arrays.

use std::{ptr, slice};

use crate::status::avsg_status::{AVSG_INVALID, AVSG_NULL, AVSG_SIZE};
use crate::status::{Fail, Result};

/// Far above any struct of this library: a `size` beyond it was not set.
const LARGEST: usize = 4096;

/// A struct that may grow at its end.
///
/// # Safety
/// It is `repr(C)`, has no padding, begins with `size: usize`, and any bytes are a value of it.
pub(crate) unsafe trait Sized_: Copy {
    /// Its name in C.
    const NAME: &'static str;
    /// Its bytes in the first version of the header.
    const FIRST: usize;
}

fn null(what: &str) -> Fail {
    Fail::new(
        AVSG_NULL,
        format!("{what} is NULL, but a pointer is needed; pass the address of one"),
    )
}

/// Refuses NULL and what is not aligned for a T.
fn check<T>(what: &str, at: *const T) -> Result<()> {
    if at.is_null() {
        return Err(null(what));
    }
    if !at.is_aligned() {
        let (align, remedy) = (align_of::<T>(), "pass memory that the compiler aligned");
        let text = format!("{what} is {at:p}, but it must be a multiple of {align}; {remedy}");
        return Err(Fail::new(AVSG_INVALID, text));
    }
    Ok(())
}

/// The caller's `size` of a struct, checked.
///
/// # Safety
/// `at` is NULL or valid for reads of a `size_t`.
unsafe fn size<T: Sized_>(at: *const T) -> Result<usize> {
    check(T::NAME, at)?;
    // SAFETY: the contract, and `check` saw that it is aligned.
    let size = unsafe { *at.cast::<usize>() };
    if !(T::FIRST..=LARGEST).contains(&size) {
        let (name, known) = (T::NAME, size_of::<T>());
        let text = format!(
            "{name}.size is {size}, but the struct has {known} bytes; set it to sizeof({name})"
        );
        return Err(Fail::new(AVSG_SIZE, text));
    }
    Ok(size)
}

/// Reads a struct of the caller's version: fields that it lacks are 0, and fields that this library
/// lacks must be.
///
/// # Safety
/// `at` is NULL or valid for reads of as many bytes as its first word says.
pub(crate) unsafe fn read<T: Sized_>(at: *const T) -> Result<T> {
    // SAFETY: the contract.
    let size = unsafe { size(at)? };
    if size == size_of::<T>() {
        // SAFETY: the contract gives so many bytes; `size` saw that they are aligned.
        return Ok(unsafe { *at });
    }
    if let Some(more) = size.checked_sub(size_of::<T>()) {
        // SAFETY: the contract gives `size` bytes.
        let tail = unsafe { slice::from_raw_parts(at.add(1).cast::<u8>(), more) };
        if tail.iter().any(|&byte| byte != 0) {
            let (name, known) = (T::NAME, size_of::<T>());
            let text = format!(
                "{name}.size is {size}, but this library knows {known} bytes and a later field is \
                 not 0; update libavsg, or leave the field 0"
            );
            return Err(Fail::new(AVSG_SIZE, text));
        }
    }
    // SAFETY: any bytes are a value (`Sized_`), zeros too; the contract gives `size` bytes.
    unsafe {
        let mut value: T = core::mem::zeroed();
        ptr::copy_nonoverlapping(
            at.cast::<u8>(),
            (&raw mut value).cast(),
            size.min(size_of::<T>()),
        );
        Ok(value)
    }
}

/// A place for a struct of results, of the caller's version.
pub(crate) struct Room<T> {
    at: *mut T,
    size: usize,
}

impl<T: Sized_> Room<T> {
    /// Checks the place before any work is done.
    ///
    /// # Safety
    /// `at` is NULL or valid for reads and writes of as many bytes as its first word says.
    pub unsafe fn new(at: *mut T) -> Result<Self> {
        // SAFETY: the contract.
        unsafe { size(at).map(|size| Self { at, size }) }
    }

    /// Fills it: what the caller's version lacks is left out, what this library lacks becomes 0; the
    /// size stays the caller's.
    pub fn fill(self, value: T) {
        let (to, known) = (self.at.cast::<u8>(), self.size.min(size_of::<T>()));
        let head = size_of::<usize>();
        // SAFETY: `new`'s contract gives `self.size` bytes, of which `known` are copied and the rest
        // cleared; a T has at least its `size` field.
        unsafe {
            let from = (&raw const value).cast::<u8>();
            ptr::copy_nonoverlapping(from.add(head), to.add(head), known - head);
            ptr::write_bytes(to.add(known), 0, self.size - known);
        }
    }
}

/// A place for one result, checked before any work is done.
pub(crate) struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// `empty` is there until [`Self::set`], also when the call fails.
    ///
    /// # Safety
    /// `at` is NULL or valid for writes.
    pub unsafe fn new(what: &str, at: *mut T, empty: T) -> Result<Self> {
        check(what, at)?;
        // SAFETY: the contract, and aligned by `check`.
        unsafe { at.write(empty) };
        Ok(Self(at))
    }

    pub fn set(self, value: T) {
        // SAFETY: `new`'s contract.
        unsafe { self.0.write(value) };
    }
}

/// The caller's array as a slice. NULL is one of no elements.
///
/// # Safety
/// `at` is NULL or valid for reads of `len` elements for as long as 'a, and nobody writes them
/// meanwhile.
pub(crate) unsafe fn array<'a, T: Copy>(what: &str, at: *const T, len: usize) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    bounds(what, at, len)?;
    // SAFETY: the contract; `bounds` saw that it is there, aligned and fits the address space.
    Ok(unsafe { slice::from_raw_parts(at, len) })
}

/// [`array`] for writing.
///
/// # Safety
/// As for [`array`], and valid for writes; nobody reads it meanwhile.
pub(crate) unsafe fn array_mut<'a, T: Copy>(
    what: &str,
    at: *mut T,
    len: usize,
) -> Result<&'a mut [T]> {
    if len == 0 {
        return Ok(&mut []);
    }
    bounds(what, at, len)?;
    // SAFETY: as in `array`.
    Ok(unsafe { slice::from_raw_parts_mut(at, len) })
}

fn bounds<T>(what: &str, at: *const T, len: usize) -> Result<()> {
    check(what, at)?;
    let end = len.checked_mul(size_of::<T>()).and_then(|bytes| at.addr().checked_add(bytes));
    if end.is_none_or(|end| end > isize::MAX as usize) {
        let text = format!(
            "{what} has {len} elements at {at:p}, but that is beyond the address space; pass the \
             array's length in elements"
        );
        return Err(Fail::new(AVSG_INVALID, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::avsg_status;

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Grown {
        size: usize,
        old: u64,
        new: u64,
    }
    // SAFETY: repr(C), three words, size first.
    unsafe impl Sized_ for Grown {
        const NAME: &'static str = "grown";
        const FIRST: usize = 16;
    }

    fn read_words(words: &[u64]) -> core::result::Result<Grown, avsg_status> {
        // SAFETY: every case below has as many bytes as its first word says, or says a wrong number.
        unsafe { read(words.as_ptr().cast::<Grown>()) }.map_err(|fail| fail.status)
    }

    #[test]
    fn callers_of_every_version_are_understood() {
        assert_eq!(read_words(&[16, 5]), Ok(Grown { size: 16, old: 5, new: 0 }));
        assert_eq!(read_words(&[24, 5, 6]), Ok(Grown { size: 24, old: 5, new: 6 }));
        assert_eq!(read_words(&[32, 5, 6, 0]), Ok(Grown { size: 32, old: 5, new: 6 }));
        assert_eq!(read_words(&[32, 5, 6, 1]), Err(AVSG_SIZE));
        for size in [0, 8, 15, 4097, u64::MAX] {
            assert_eq!(read_words(&[size, 5, 6]), Err(AVSG_SIZE));
        }
    }

    #[test]
    fn results_fit_the_callers_version() {
        let value = Grown { size: 0, old: 5, new: 6 };
        for (size, want) in [(16, [16, 5, 9, 9]), (24, [24, 5, 6, 9]), (32, [32, 5, 6, 0])] {
            let mut words = [size, 9, 9, 9u64];
            // SAFETY: the array has the bytes that its first word says.
            unsafe { Room::new(words.as_mut_ptr().cast::<Grown>()) }
                .unwrap_or_else(|_| panic!())
                .fill(value);
            assert_eq!(words, want);
        }
    }

    #[test]
    fn arrays_that_cannot_be_are_refused() {
        let word = [1i32, 2];
        let status = |at, len| {
            // SAFETY: valid for 2 elements, or refused.
            unsafe { array::<i32>("a", at, len) }.map(<[i32]>::len).map_err(|fail| fail.status)
        };
        assert_eq!(status(word.as_ptr(), 2), Ok(2));
        assert_eq!(status(ptr::null(), 0), Ok(0));
        assert_eq!(status(ptr::null(), 1), Err(AVSG_NULL));
        assert_eq!(status(word.as_ptr().wrapping_byte_add(1), 1), Err(AVSG_INVALID));
        for len in [usize::MAX, usize::MAX / 4, isize::MAX as usize / 4] {
            assert_eq!(status(word.as_ptr(), len), Err(AVSG_INVALID));
        }
    }
}
