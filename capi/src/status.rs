//! What a call returns: a status, and the message of this thread's last failure.

use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char};
use std::fmt::{self, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};

use avsg::Error;

use crate::c_text::write_c_text;
use crate::silence;

/// The status that a function returns. The numbers never change. Later versions may add some: treat
/// an unknown number as a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum avsg_status {
    /// The call succeeded.
    AVSG_OK = 0,
    /// A value is outside its range, a pointer is misaligned, or an array is too short.
    AVSG_INVALID = 1,
    /// A pointer that must not be NULL is NULL.
    AVSG_NULL = 2,
    /// A handle was destroyed, never created, or is of another kind.
    AVSG_HANDLE = 3,
    /// The `size` of a struct is wrong, or a field that this library lacks is not 0.
    AVSG_SIZE = 4,
    /// Another thread's call uses the same handle. Call again when it has returned.
    AVSG_BUSY = 5,
    /// The library or the device lacks the requested feature.
    AVSG_UNSUPPORTED = 6,
    /// The machine or an allocator cannot give that much memory, and nothing was allocated.
    AVSG_NO_MEMORY = 7,
    /// A call of the operating system failed.
    AVSG_OS = 8,
    /// The library has a defect. Every later call on the handle fails likewise: destroy it, and
    /// report the message.
    AVSG_INTERNAL = 9,
    /// A call of the device's runtime failed, and the message names the call and its code. Or the
    /// device wrote a value that no correct kernel writes.
    AVSG_DEVICE = 10,
    /// The handle belongs to the process that this one was forked from. Nothing was changed; the
    /// rule Processes says what a child can do.
    AVSG_FORKED = 11,
}

use avsg_status::*;

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
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Invalid { .. } => AVSG_INVALID,
            Error::Os { .. } => AVSG_OS,
            Error::Memory { .. } | Error::OutOfMemory { .. } => AVSG_NO_MEMORY,
            Error::Forked { .. } => AVSG_FORKED,
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

impl Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(text) => text.fmt(f),
            Self::Library(error) => error.fmt(f),
        }
    }
}

/// Bytes of the longest message, with the NUL at its end.
const MAX_MESSAGE: usize = 1024;

thread_local! {
    // An array has no destructor, so that it stays usable until the thread ends.
    static LAST_ERROR: UnsafeCell<[u8; MAX_MESSAGE]> =
        const { UnsafeCell::new([0; MAX_MESSAGE]) };
}

/// Stores the message that `avsg_last_error` returns on this thread.
fn set_last_error(text: &dyn Display) {
    LAST_ERROR.with(|last| {
        // SAFETY: the array is this thread's, and no other reference to it exists, because
        // `avsg_last_error` returns a raw pointer, and the text of a failure is the library's own.
        write_c_text(unsafe { &mut *last.get() }, text);
    });
}

/// Runs the body of an exported function. A failure or panic becomes a status, and its message is
/// stored.
pub(crate) fn enter(run: impl FnOnce() -> Result<()>) -> avsg_status {
    silence::install();
    match silence::within(|| catch_unwind(AssertUnwindSafe(run))) {
        Ok(Ok(())) => AVSG_OK,
        Ok(Err(failure)) => {
            set_last_error(&failure.text);
            failure.status
        }
        Err(payload) => {
            set_panic_message(&*payload);
            // The payload's destructor may panic, too.
            core::mem::forget(payload);
            AVSG_INTERNAL
        }
    }
}

fn set_panic_message(payload: &(dyn Any + Send)) {
    let reason = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message");
    set_last_error(&format_args!("a defect of libavsg: {reason}; destroy the handle, report this"));
}

/// Returns the message of the last failure on the calling thread, or an empty string before the
/// first one. Calls that succeed do not change it. The string is valid until the next call that
/// fails on this thread, or until the thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_last_error() -> *const c_char {
    LAST_ERROR.with(|last| last.get().cast::<c_char>().cast_const())
}

/// Returns the name of a status, such as "AVSG_BUSY", or "unknown status" for another number. The
/// string is never NULL and valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_status_name(status: i32) -> *const c_char {
    const NAMES: [(avsg_status, &CStr); 12] = [
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
    ];
    let name = NAMES.iter().find(|(code, _)| *code as i32 == status);
    name.map_or(c"unknown status", |(_, name)| name).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: the string is NUL-terminated and valid until this thread's next failure.
        unsafe { CStr::from_ptr(avsg_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_becomes_a_status_and_a_message() {
        assert_eq!(enter(|| panic!("slot {} of 5", 7)), AVSG_INTERNAL);
        assert!(last().contains("defect") && last().contains("slot 7 of 5"), "{}", last());
        assert_eq!(enter(|| std::panic::panic_any(5u8)), AVSG_INTERNAL);
        assert!(last().contains("without a message"), "{}", last());
        assert_eq!(enter(|| Ok(())), AVSG_OK);
        assert!(last().contains("without a message"), "a success keeps the message");
    }

    #[test]
    fn a_message_is_cut_between_characters_and_belongs_to_its_thread() {
        let long = "\u{e9}".repeat(MAX_MESSAGE);
        assert_eq!(enter(|| Err(Failure::new(AVSG_OS, long.clone()))), AVSG_OS);
        assert_eq!(last().len(), (MAX_MESSAGE - 1) / 2 * 2);
        assert!(long.starts_with(&last()));
        std::thread::spawn(|| assert_eq!(last(), "")).join().unwrap();
    }
}
