//! Calls of the runtime: they return a code, and a call that fails leaves a message for its thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::ptr;

use crate::fault::{CallFailure, Outcome};
use crate::machine::{Runtime, with_machine};
use crate::{schedule, sys};

thread_local! {
    static MESSAGE: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Runs a call of the runtime: counts it, injects a fault if one is due, and keeps the message of a
/// failure for this thread.
pub(crate) fn call(name: &'static str, body: impl FnOnce(&mut Runtime) -> Outcome) -> c_int {
    forget_message();
    let done = with_machine(|machine| {
        machine.faults.on_call(name)?;
        if machine.draw() % 100 < u64::from(machine.options.jitter) {
            schedule::run_some(machine);
        }
        body(machine)
    });
    match done {
        Ok(()) => sys::ACL_SUCCESS,
        Err(CallFailure { code, text }) => {
            // As in the runtime, the first line of the message has the code and the text follows.
            let text = format!("E{code}: {name}\n        {text}");
            MESSAGE.set(CString::new(text.replace('\0', " ")).ok());
            code
        }
    }
}

/// Returns this thread's message or null. The pointer is valid until the thread's next call, as
/// documented.
pub(crate) fn message() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ref().map_or(ptr::null(), |text| text.as_ptr()))
}

/// Overwrites and frees the message, so that the use of an old pointer shows wrong text.
fn forget_message() {
    if let Some(text) = MESSAGE.take() {
        let mut bytes = text.into_bytes();
        bytes.fill(b'?');
        drop(bytes);
    }
}
