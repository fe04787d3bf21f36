//! Panics that become a status print nothing.
//!
//! Rust's panic hook prints to standard error before a panic is caught. The hook here passes panics
//! inside a call of this library, and inside a piece of a launch on any thread, to the log instead.
//! Other panics, which exist if the process has Rust code of its own, go to the hook before it.

use std::cell::Cell;
use std::panic::{set_hook, take_hook};
use std::sync::Once;

use avsg::cpu::worker_pool::in_piece;

thread_local! {
    static IN_CALL: Cell<bool> = const { Cell::new(false) };
}

/// Runs `call` as a call of this library on this thread.
pub(crate) fn within<T>(call: impl FnOnce() -> T) -> T {
    let outer = IN_CALL.replace(true);
    let result = call();
    IN_CALL.set(outer);
    result
}

/// Installs the hook, at the first call.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            if IN_CALL.get() || in_piece() {
                log::error!("a defect of libavsg: {info}");
            } else {
                previous(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests;
