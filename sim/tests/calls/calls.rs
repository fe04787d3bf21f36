//! Raw calls as a C program makes them, and a session around them.

use std::ffi::c_void;
use std::ptr;

use avsg_sim::entries::*;
use avsg_sim::{Options, Session, sys};

pub type Handle = *mut c_void;

pub const OK: i32 = sys::ACL_SUCCESS;
pub const INVALID: i32 = sys::ACL_ERROR_RT_PARAM_INVALID;
pub const TO_HOST: i32 = sys::ACL_MEMCPY_DEVICE_TO_HOST;

/// Calls that must succeed and return a handle.
macro_rules! made {
    ($name:ident($($arg:expr),*)) => {{
        let mut handle: Handle = null_mut();
        // SAFETY: every pointer lives across the call.
        assert_eq!(unsafe { $name(&mut handle, $($arg),*) }, OK, stringify!($name));
        handle
    }};
}

/// A call whose code is looked at.
macro_rules! code {
    ($name:ident($($arg:expr),*)) => {{
        // SAFETY: every pointer lives across the call; wrong handles are what is tested.
        unsafe { $name($($arg),*) }
    }};
}

pub fn begin(options: Options) -> Session {
    let session = Session::new(options);
    assert_eq!(code!(aclInit(ptr::null())), OK);
    assert_eq!(code!(aclrtSetDevice(0)), OK);
    session
}

pub fn quiet() -> Options {
    Options { jitter: 0, ..Options::default() }
}

pub fn words(at: Handle, n: usize) -> &'static mut [u64] {
    // SAFETY: pinned memory of the test's own, alive until it is freed at its end.
    unsafe { std::slice::from_raw_parts_mut(at.cast(), n) }
}

pub fn end(session: &Session) {
    assert_eq!(code!(aclrtResetDevice(0)), OK);
    assert_eq!(session.leaks(), Vec::<String>::new());
}
