//! The boundary to C: how an exported function runs, and what C passes to it by pointer: structs that begin with
//! their size, out-pointers, arrays and paths.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::{ptr, slice};

use crate::silence;
use crate::status::avsg_status::{AVSG_INTERNAL, AVSG_NULL, AVSG_OK, AVSG_SIZE};
use crate::status::{Failure, Result, avsg_status, ensure, set_last_error};
use avsg::Error;

/// Evaluates an unsafe expression with what a C program passed.
macro_rules! contract {
    ($expression:expr) => {
        // SAFETY: a pointer that an exported function gets is NULL only where that is allowed, and points to
        // as many elements as the length beside it, or to a struct of `size` bytes. They do not change during
        // the call and share no byte with memory that it writes (the header's rules Pointers and Structs). A
        // stream lives, and what the work put into it uses stays valid and unwritten until that work and its
        // replays are done (Streams). Other functions pass on what they got (`# Safety`).
        unsafe { $expression }
    };
}

/// Runs the body of an exported function. A failure or panic becomes a status, and its message is
/// stored.
pub(crate) fn enter(run: impl FnOnce() -> Result<()>) -> avsg_status {
    silence::install();
    match silence::within(|| catch_unwind(AssertUnwindSafe(run))) {
        Ok(Ok(())) => AVSG_OK,
        Ok(Err(failure)) => {
            set_last_error(&failure);
            failure.status
        }
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            let reason = text.unwrap_or("a panic without a message");
            set_last_error(&format_args!(
                "a defect of libavsg: {reason}; destroy the handle, report this"
            ));
            // The payload's destructor may panic, too.
            core::mem::forget(payload);
            AVSG_INTERNAL
        }
    }
}

/// The largest `size` that is taken as set by the caller, which is far above any struct of this
/// library.
const MAX_SIZE: usize = 4096;

/// A struct whose first field is its size, and which later versions may extend at the end.
///
/// # Safety
/// The struct is `repr(C)`, has no padding, begins with `size: usize`, and any bytes are a value of
/// it.
pub(crate) unsafe trait SizedStruct: Copy {
    /// The name of the struct in C.
    const NAME: &'static str;
    /// Bytes of the struct in the first version of the header.
    const FIRST_SIZE: usize;
}

/// Returns the error of a pointer that must not be NULL.
pub(crate) fn null_error(what: &str) -> Failure {
    Failure::new(AVSG_NULL, format!("{what} is NULL, but the call needs it; pass its address"))
}

/// Refuses a pointer that is NULL or not aligned for a T.
fn check_pointer<T>(what: &str, at: *const T) -> Result<()> {
    if at.is_null() {
        return Err(null_error(what));
    }
    let (align, remedy) = (align_of::<T>(), "pass memory that the compiler aligned");
    ensure!(at.is_aligned(), "{what} is {at:p}, but it must be a multiple of {align}; {remedy}");
    Ok(())
}

/// Returns the `size` that the caller set, if it can be one of this struct.
///
/// # Safety
/// `at` is NULL or valid for reads of a `size_t`.
unsafe fn checked_size<T: SizedStruct>(at: *const T) -> Result<usize> {
    check_pointer(T::NAME, at)?;
    // SAFETY: `at` is valid for reads of a `size_t`, and `check_pointer` refuses NULL and
    // misaligned addresses.
    let size = unsafe { *at.cast::<usize>() };
    // The end of a version never splits a pointer.
    let whole = size.is_multiple_of(align_of::<T>());
    if !whole || !(T::FIRST_SIZE..=MAX_SIZE).contains(&size) {
        let (name, known) = (T::NAME, size_of::<T>());
        let text = format!(
            "{name}.size is {size}, but the struct has {known} bytes; set it to sizeof({name})"
        );
        return Err(Failure::new(AVSG_SIZE, text));
    }
    Ok(size)
}

/// Copies a struct of the caller's version. Fields that the caller's version lacks become 0, and
/// fields that only the caller's version has must be 0.
///
/// # Safety
/// `at` is NULL or valid for reads of the number of bytes in its `size`.
pub(crate) unsafe fn read<T: SizedStruct>(at: *const T) -> Result<T> {
    // SAFETY: `at` is NULL or valid for reads of its `size`.
    let size = unsafe { checked_size(at)? };
    if let Some(more) = size.checked_sub(size_of::<T>()) {
        // SAFETY: `at` is valid for reads of `size` bytes, of which `more` follow the T.
        let tail = unsafe { slice::from_raw_parts(at.add(1).cast::<u8>(), more) };
        if tail.iter().any(|&byte| byte != 0) {
            let (name, known) = (T::NAME, size_of::<T>());
            let text = format!(
                "{name}.size is {size}, but this library knows {known} bytes and a later field is \
                 not 0; update libavsg, or leave the field 0"
            );
            return Err(Failure::new(AVSG_SIZE, text));
        }
    }
    let (mut value, known) = (zeroed::<T>(), size.min(size_of::<T>()));
    // SAFETY: `at` is valid for reads of `size` bytes, `known` is at most that and at most the bytes of
    // `value`, and any bytes are a value of T (`SizedStruct`).
    unsafe { ptr::copy_nonoverlapping(at.cast::<u8>(), (&raw mut value).cast(), known) };
    Ok(value)
}

/// Returns a struct whose fields are 0.
pub(crate) fn zeroed<T: SizedStruct>() -> T {
    // SAFETY: zeros are a value of T (`SizedStruct`).
    unsafe { core::mem::zeroed() }
}

/// Copies a struct as [`read`] does, or returns one whose fields are 0 for NULL.
///
/// # Safety
/// As for [`read`].
pub(crate) unsafe fn read_or_defaults<T: SizedStruct>(at: *const T) -> Result<T> {
    if at.is_null() { Ok(zeroed()) } else { contract!(read(at)) }
}

/// Converts the elements of an array that the caller sized.
pub(crate) fn converted<T, U>(
    what: &'static str,
    from: &[T],
    convert: impl Fn(&T) -> Result<U>,
) -> Result<Vec<U>> {
    let mut all = Vec::new();
    let bytes = from.len().saturating_mul(size_of::<U>());
    all.try_reserve_exact(from.len()).map_err(|_| Error::OutOfMemory { what, bytes })?;
    for element in from {
        all.push(convert(element)?);
    }
    Ok(all)
}

/// Runs the body of an exported function, and writes those fields of its result that the caller's version
/// of the struct has, and 0 to fields that only the caller's version has. `size` keeps the caller's value.
///
/// # Safety
/// `to` is NULL or valid for reads and writes of the number of bytes in its `size`.
pub(crate) unsafe fn give_struct<T: SizedStruct>(
    to: *mut T,
    run: impl FnOnce() -> Result<T>,
) -> avsg_status {
    enter(|| {
        let size = contract!(checked_size(to))?;
        let value = run()?;
        let (known, head) = (size.min(size_of::<T>()), size_of::<usize>());
        let (from, to) = ((&raw const value).cast::<u8>(), to.cast::<u8>());
        // SAFETY: `to` is valid for writes of `size` bytes, `known` is at most that, and a T has at least
        // the `head` bytes of its `size`.
        unsafe {
            ptr::copy_nonoverlapping(from.add(head), to.add(head), known - head);
            ptr::write_bytes(to.add(known), 0, size - known);
        }
        Ok(())
    })
}

/// An out-pointer to a single value.
pub(crate) struct OutPtr<T>(*mut T);

impl<T: Copy> OutPtr<T> {
    /// Checks the pointer and writes `empty`, which remains if the call fails.
    ///
    /// # Safety
    /// `at` is NULL or valid for writes.
    pub unsafe fn new(what: &str, at: *mut T, empty: T) -> Result<Self> {
        check_pointer(what, at)?;
        // SAFETY: `at` is valid for writes, and `check_pointer` refuses NULL and misaligned
        // addresses.
        unsafe { at.write(empty) };
        Ok(Self(at))
    }

    pub fn write(self, value: T) {
        // SAFETY: the pointer is valid for writes, not NULL and aligned (`new`).
        unsafe { self.0.write(value) };
    }
}

/// Borrows the caller's array as a slice. NULL is accepted if `len` is 0.
///
/// # Safety
/// `at` is NULL or valid for reads of `len` elements during 'a, and nothing writes them during 'a.
pub(crate) unsafe fn array<'a, T: Copy>(what: &str, at: *const T, len: usize) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    check_array(what, at, len)?;
    // SAFETY: `at` is valid for reads of `len` elements during 'a, and `check_array` refuses NULL,
    // misaligned addresses and lengths beyond the address space.
    Ok(unsafe { slice::from_raw_parts(at, len) })
}

/// Borrows the caller's array as [`array`] does, for writing.
///
/// # Safety
/// `at` is NULL or valid for reads and writes of `len` elements during 'a, and nothing else
/// accesses them during 'a.
pub(crate) unsafe fn array_mut<'a, T: Copy>(
    what: &str,
    at: *mut T,
    len: usize,
) -> Result<&'a mut [T]> {
    if len == 0 {
        return Ok(&mut []);
    }
    check_array(what, at, len)?;
    // SAFETY: `at` is valid for reads and writes of `len` elements during 'a, and `check_array`
    // refuses NULL, misaligned addresses and lengths beyond the address space.
    Ok(unsafe { slice::from_raw_parts_mut(at, len) })
}

/// Refuses an array that is NULL, misaligned or beyond the address space, without reading it.
pub(crate) fn check_array<T>(what: &str, at: *const T, len: usize) -> Result<()> {
    check_pointer(what, at)?;
    let end = len.checked_mul(size_of::<T>()).and_then(|bytes| at.addr().checked_add(bytes));
    ensure!(
        end.is_some_and(|end| end <= isize::MAX as usize),
        "{what} has {len} elements at {at:p}, but that is beyond the address space; pass the \
         array's length in elements"
    );
    Ok(())
}

/// Copies a path; None for NULL.
///
/// # Safety
/// `path` is NULL or a NUL-terminated string.
pub(crate) unsafe fn path(path: *const c_char) -> Option<PathBuf> {
    let text = (!path.is_null()).then(|| contract!(CStr::from_ptr(path)));
    text.map(|text| PathBuf::from(OsStr::from_bytes(text.to_bytes())))
}

/// Refuses a capacity that is below the number of results.
pub(crate) fn check_capacity(count: usize, capacity: usize, what: &str) -> Result<()> {
    ensure!(
        capacity >= count,
        "capacity is {capacity}, but there are {count} {what}; pass an array of {count} elements"
    );
    Ok(())
}

#[cfg(test)]
mod tests;
