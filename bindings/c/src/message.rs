//! The message of a thread's last failure.

use std::cell::UnsafeCell;
use std::ffi::c_char;
use std::fmt::Display;

use crate::c_text::write_c_text;

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
