//! A call of the runtime has a code for its result and leaves a message behind when it fails.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::ptr;

use crate::fault::{Fail, Outcome};
use crate::world::{World, with_world};
use crate::{schedule, sys};

thread_local! {
    static MESSAGE: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Every call of the runtime goes through here: it is counted, it may fail on order, and its message is
/// kept for this thread.
pub(crate) fn call(name: &'static str, body: impl FnOnce(&mut World) -> Outcome) -> c_int {
    forget_message();
    let done = with_world(|world| {
        world.faults.enter(name)?;
        if world.draw() % 100 < u64::from(world.options.jitter) {
            schedule::some(world);
        }
        body(world)
    });
    match done {
        Ok(()) => sys::ACL_SUCCESS,
        Err(Fail { code, text }) => {
            // The runtime's messages have a first line with the code and run over several.
            let text = format!("E{code}: {name}\n        {text}");
            MESSAGE.set(CString::new(text.replace('\0', " ")).ok());
            code
        }
    }
}

/// This gives the thread's message. The pointer dies with the next call, as documented.
pub(crate) fn message() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ref().map_or(ptr::null(), |text| text.as_ptr()))
}

/// This overwrites the message before it goes, so that whoever kept the pointer sees it.
fn forget_message() {
    if let Some(text) = MESSAGE.take() {
        let mut bytes = text.into_bytes();
        bytes.fill(b'?');
        drop(bytes);
    }
}
