//! One function per call of the runtime, grouped by noun, which turns the call's code into a
//! `Result`.
//!
//! Handles are raw pointers here, and the caller guarantees that they are valid; the types of
//! [`super::owned`] do.

pub mod capture;
pub mod context;
pub mod device;
pub mod event;
pub mod kernel;
pub mod memory;
pub mod process;
pub mod registration;
pub mod stream;

/// Calls a function of the table and turns its code into a result.
macro_rules! call {
    ($acl:expr, $name:ident($($arg:expr),* $(,)?)) => {
        match $acl.functions.$name {
            // SAFETY: the pointer has the signature of `acl.h` (`functions::fill`); its arguments
            // are valid by the contract or the body of the enclosing function.
            Some(function) => $acl.check(stringify!($name), unsafe { function($($arg),*) }),
            None => Err($acl.missing(stringify!($name))),
        }
    };
}
use call;
