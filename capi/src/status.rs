//! What a call answers: a code, and the sentence of this thread's last failure.

use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use avsg::Error;

/// What a function of this library answers. Numbers never change their meaning and are never used
/// again; later versions may add some, so treat an unknown one as a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum avsg_status {
    /// Done.
    AVSG_OK = 0,
    /// A value is outside its range, or an array is too short. Nothing has changed.
    AVSG_INVALID = 1,
    /// A pointer that must not be NULL is. Nothing has changed.
    AVSG_NULL = 2,
    /// A handle is not one: destroyed before, never made, or of another kind.
    AVSG_HANDLE = 3,
    /// A struct's `size` is none that this library knows.
    AVSG_SIZE = 4,
    /// Another thread is inside a call on the same handle. Nothing has changed; call again.
    AVSG_BUSY = 5,
    /// This library, or this device, does not have what was asked for.
    AVSG_UNSUPPORTED = 6,
    /// More memory than can be given. Nothing was taken.
    AVSG_NO_MEMORY = 7,
    /// The operating system refused a call.
    AVSG_OS = 8,
    /// A defect of this library. The handle answers this for ever after: destroy it, and report the
    /// sentence of `avsg_last_error`.
    AVSG_INTERNAL = 9,
    /// The device's runtime refused a call; the sentence names the call and its code.
    AVSG_DEVICE = 10,
}

use avsg_status::*;

/// A failure on its way out.
#[derive(Debug)]
pub(crate) struct Fail {
    pub status: avsg_status,
    pub text: String,
}

pub(crate) type Result<T> = core::result::Result<T, Fail>;

impl Fail {
    pub fn new(status: avsg_status, text: String) -> Self {
        Self { status, text }
    }
}

impl From<Error> for Fail {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Invalid { .. } => AVSG_INVALID,
            Error::Os { .. } => AVSG_OS,
            Error::Memory { .. } => AVSG_NO_MEMORY,
            Error::Acl { .. } => AVSG_DEVICE,
            Error::Unavailable { .. } => AVSG_UNSUPPORTED,
            // `Broken`, and whatever a later library adds.
            _ => AVSG_INTERNAL,
        };
        Self::new(status, error.to_string())
    }
}

/// Most bytes of a sentence, with the NUL at its end.
const TEXT: usize = 1024;

thread_local! {
    // Plain bytes without a destructor: usable for as long as the thread runs, and nothing to free.
    static LAST: UnsafeCell<[u8; TEXT]> = const { UnsafeCell::new([0; TEXT]) };
}

/// Keeps a sentence for this thread.
fn keep(text: &str) {
    let mut end = text.len().min(TEXT - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    LAST.with(|last| {
        // SAFETY: only this thread has it, and no reference to it lives longer than this statement
        // (`avsg_last_error` gives out a raw pointer).
        let last = unsafe { &mut *last.get() };
        last[..end].copy_from_slice(&text.as_bytes()[..end]);
        last[end] = 0;
    });
}

/// The body of every function: no panic leaves it, and a failure's sentence is kept.
pub(crate) fn enter(run: impl FnOnce() -> Result<()>) -> avsg_status {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => AVSG_OK,
        Ok(Err(fail)) => {
            keep(&fail.text);
            fail.status
        }
        Err(payload) => {
            panicked(&*payload);
            // Its destructor is somebody's code and may panic as well.
            core::mem::forget(payload);
            AVSG_INTERNAL
        }
    }
}

fn panicked(payload: &(dyn Any + Send)) {
    let why = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without words");
    // Formatting allocates and so could fail as what brought us here did; `keep` of pieces does not.
    let text =
        catch_unwind(|| format!("a defect of libavsg: {why}; destroy the handle, report this"));
    keep(text.as_deref().unwrap_or("a defect of libavsg; destroy the handle, report this"));
}

/// The sentence of the last failure on the calling thread: it names the value, the limit and the
/// remedy. Empty before the first. A success does not change it. The text is valid until the next
/// call that fails on this thread, or the thread's end; other threads have their own.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_last_error() -> *const c_char {
    LAST.with(|last| last.get().cast::<c_char>().cast_const())
}

/// The name of a status, such as "AVSG_BUSY"; "unknown status" for a number that is none. Never NULL,
/// and valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_status_name(status: i32) -> *const c_char {
    const NAMES: [(avsg_status, &CStr); 11] = [
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
    ];
    let name = NAMES.iter().find(|(code, _)| *code as i32 == status);
    name.map_or(c"unknown status", |(_, name)| name).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: the function's own contract: NUL-terminated and valid until the next failure.
        unsafe { CStr::from_ptr(avsg_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_becomes_a_code_and_a_sentence() {
        assert_eq!(enter(|| panic!("slot {} of 5", 7)), AVSG_INTERNAL);
        assert!(last().contains("defect") && last().contains("slot 7 of 5"), "{}", last());
        assert_eq!(enter(|| std::panic::panic_any(5u8)), AVSG_INTERNAL);
        assert!(last().contains("without words"), "{}", last());
        assert_eq!(enter(|| Ok(())), AVSG_OK);
        assert!(last().contains("without words"), "a success keeps the sentence");
    }

    #[test]
    fn a_sentence_is_cut_between_characters_and_is_its_threads_own() {
        let long = "\u{e9}".repeat(TEXT);
        assert_eq!(enter(|| Err(Fail::new(AVSG_OS, long.clone()))), AVSG_OS);
        assert_eq!(last().len(), (TEXT - 1) / 2 * 2);
        assert!(long.starts_with(&last()));
        std::thread::spawn(|| assert_eq!(last(), "")).join().unwrap();
    }
}
