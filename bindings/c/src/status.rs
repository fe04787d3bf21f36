//! What a call returns: a status.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char};
use std::fmt;
use std::fmt::Display;

use crate::c_text::write_c_text;
use avsg::Error;
use avsg_status::*;

/// What a function returns. The numbers never change; treat an unknown one as a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum avsg_status {
    /// The call succeeded.
    AVSG_OK = 0,
    /// A value is out of range, a pointer misaligned, or an array too short.
    AVSG_INVALID = 1,
    /// A pointer that must not be NULL is NULL.
    AVSG_NULL = 2,
    /// A handle was destroyed, never created, or is of another kind.
    AVSG_HANDLE = 3,
    /// The `size` of a struct is wrong, or a field that this library lacks is not 0.
    AVSG_SIZE = 4,
    /// Another call uses the handle, or all transfers are under way. Call again later.
    AVSG_BUSY = 5,
    /// The library or the device lacks the requested feature.
    AVSG_UNSUPPORTED = 6,
    /// The machine or an allocator cannot give that much memory.
    AVSG_NO_MEMORY = 7,
    /// A call of the operating system failed.
    AVSG_OS = 8,
    /// The library has a defect. Destroy the handle, and report the message.
    AVSG_INTERNAL = 9,
    /// A call of the device's runtime failed, or a kernel wrote a wrong value.
    AVSG_DEVICE = 10,
    /// The handle belongs to the process that this one was forked from.
    AVSG_FORKED = 11,
    /// Rows of a file are not whole; a plan's other requests are served.
    AVSG_LOST_ROWS = 12,
}

/// An error that a C function is about to return.
#[derive(Debug)]
pub(crate) struct Failure {
    pub status: avsg_status,
    text: Text,
}

pub(crate) type Result<T> = core::result::Result<T, Failure>;

impl Failure {
    pub fn new(status: avsg_status, text: String) -> Self {
        Self { status, text: Text::Own(text) }
    }

    /// Returns the error of a value that is outside its range.
    pub fn invalid(text: String) -> Self {
        Self::new(AVSG_INVALID, text)
    }

    /// Refuses a value that is outside its range.
    pub fn refuse<T>(text: String) -> Result<T> {
        Err(Self::invalid(text))
    }
}

/// Refuses a value, with a message in the words of `format!`, unless a condition holds.
macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return $crate::status::Failure::refuse(format!($($message)+));
        }
    };
}
pub(crate) use ensure;

/// Refuses a number that is no constant of an enumeration from 0 to `last`.
pub(crate) fn unknown_constant<T>(what: &str, value: i32, last: i32) -> Result<T> {
    Failure::refuse(format!(
        "{what} is {value}, but it must be 0..={last}; pass a constant of the header"
    ))
}

/// Returns the choice that a constant of an enumeration from 0 names.
pub(crate) fn choice<T: Copy>(what: &str, value: i32, choices: &[T]) -> Result<T> {
    let found = usize::try_from(value).ok().and_then(|index| choices.get(index));
    found.copied().map_or_else(|| unknown_constant(what, value, choices.len() as i32 - 1), Ok)
}

/// Refuses a reserved field that is not 0.
pub(crate) fn check_reserved(value: impl Into<u64>) -> Result<()> {
    let value = value.into();
    ensure!(value == 0, "reserved is {value}, but it must be 0; zero the struct first");
    Ok(())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Invalid { .. } => AVSG_INVALID,
            Error::Os { .. } => AVSG_OS,
            Error::Memory { .. } | Error::OutOfMemory { .. } => AVSG_NO_MEMORY,
            Error::Busy { .. } => AVSG_BUSY,
            Error::Forked { .. } => AVSG_FORKED,
            Error::LostRows { .. } => AVSG_LOST_ROWS,
            Error::Acl { .. } | Error::Device { .. } => AVSG_DEVICE,
            Error::Unavailable { .. } => AVSG_UNSUPPORTED,
            // `Error::Broken`, and variants that are added later.
            _ => AVSG_INTERNAL,
        };
        Self { status, text: Text::Library(error) }
    }
}

/// The message of a failure. It is formatted without an allocation, because memory may be what is
/// lacking.
#[derive(Debug)]
enum Text {
    Own(String),
    Library(Error),
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Text::Own(text) => text.fmt(f),
            Text::Library(error) => error.fmt(f),
        }
    }
}

/// Returns the name of a status, such as "AVSG_BUSY", or "unknown status" for another number. The
/// string is never NULL and valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_status_name(status: i32) -> *const c_char {
    const NAMES: [(avsg_status, &CStr); 13] = [
        (AVSG_OK, c"AVSG_OK"),
        (AVSG_INVALID, c"AVSG_INVALID"),
        (AVSG_NULL, c"AVSG_NULL"),
        (AVSG_HANDLE, c"AVSG_HANDLE"),
        (AVSG_SIZE, c"AVSG_SIZE"),
        (AVSG_BUSY, c"AVSG_BUSY"),
        (AVSG_UNSUPPORTED, c"AVSG_UNSUPPORTED"),
        (AVSG_NO_MEMORY, c"AVSG_NO_MEMORY"),
        (AVSG_OS, c"AVSG_OS"),
        (AVSG_INTERNAL, c"AVSG_INTERNAL"),
        (AVSG_DEVICE, c"AVSG_DEVICE"),
        (AVSG_FORKED, c"AVSG_FORKED"),
        (AVSG_LOST_ROWS, c"AVSG_LOST_ROWS"),
    ];
    let name = NAMES.iter().find(|(code, _)| *code as i32 == status);
    name.map_or(c"unknown status", |(_, name)| name).as_ptr()
}

/// Bytes of the longest message, with the NUL at its end.
pub(crate) const MAX_MESSAGE: usize = 1024;

thread_local! {
    // An array has no destructor, so that it stays usable until the thread ends.
    static LAST_ERROR: UnsafeCell<[u8; MAX_MESSAGE]> =
        const { UnsafeCell::new([0; MAX_MESSAGE]) };
}

/// Stores the message that `avsg_last_error` returns on this thread.
pub(crate) fn set_last_error(text: &dyn Display) {
    LAST_ERROR.with(|last| {
        // SAFETY: the array is this thread's, and no other reference to it exists, because
        // `avsg_last_error` returns a raw pointer, and the text of a failure is the library's own.
        write_c_text(unsafe { &mut *last.get() }, text);
    });
}

/// Returns the message of the last failure on the calling thread, or an empty string before the first one.
/// The string is valid and unchanged until the next call that fails on this thread, or the thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_last_error() -> *const c_char {
    LAST_ERROR.with(|last| last.get().cast::<c_char>().cast_const())
}

#[cfg(test)]
mod tests;
