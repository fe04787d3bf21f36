use super::*;
use std::ffi::CStr;

use crate::boundary::enter;
use crate::status::{MAX_MESSAGE, avsg_last_error};

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
