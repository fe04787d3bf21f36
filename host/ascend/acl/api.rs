//! One function for each call of the runtime, grouped by noun, with its code turned into a `Result`.
//!
//! Still raw: handles are pointers, and whoever passes one promises that it is alive. [`super::owned`]
//! keeps those promises.

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
            // SAFETY: the pointer has the signature of `acl.h` (`functions::fill`); its arguments are
            // valid by the contract or the body of the function that this stands in.
            Some(function) => $acl.answer(stringify!($name), unsafe { function($($arg),*) }),
            None => Err($acl.missing(stringify!($name))),
        }
    };
}
use call;
