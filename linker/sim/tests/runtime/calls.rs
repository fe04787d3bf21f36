//! Raw calls as a C program makes them, and the sessions of the tests.

use std::ffi::c_void;
use std::ptr;

use avsg_sim::entries::*;
use avsg_sim::{Options, Session, sys};

pub type Handle = *mut c_void;

pub const OK: i32 = sys::ACL_SUCCESS;
pub const INVALID: i32 = sys::ACL_ERROR_RT_PARAM_INVALID;
pub const TO_HOST: i32 = sys::ACL_MEMCPY_DEVICE_TO_HOST;

/// Calls a function that must succeed and returns the handle that it makes.
macro_rules! create {
    ($name:ident($($arg:expr),*)) => {{
        let mut handle: Handle = null_mut();
        // SAFETY: every pointer is valid during the call.
        assert_eq!(unsafe { $name(&mut handle, $($arg),*) }, OK, stringify!($name));
        handle
    }};
}

/// Calls a function and returns its code.
macro_rules! code {
    ($name:ident($($arg:expr),*)) => {{
        // SAFETY: every pointer is valid during the call; handles may be wrong, as the runtime
        // checks them.
        unsafe { $name($($arg),*) }
    }};
}

/// Calls functions of which each must succeed.
macro_rules! ok {
    ($($name:ident($($arg:expr),*)),+) => {
        $(assert_eq!(code!($name($($arg),*)), OK, stringify!($name));)+
    };
}

pub fn begin(options: Options) -> Session {
    let session = Session::new(options);
    ok!(aclInit(ptr::null()), aclrtSetDevice(0));
    session
}

pub fn no_jitter() -> Options {
    Options { jitter: 0, ..Options::default() }
}

pub fn words(at: Handle, n: usize) -> &'static mut [u64] {
    // SAFETY: `at` is pinned memory of `n` words, which the test frees at its end.
    unsafe { std::slice::from_raw_parts_mut(at.cast(), n) }
}

pub fn end(session: &Session) {
    ok!(aclrtResetDevice(0));
    assert_eq!(session.leaks(), Vec::<String>::new());
}
