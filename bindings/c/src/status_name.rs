//! The names of statuses.

use std::ffi::{CStr, c_char};

use crate::status::avsg_status::{self, *};

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
