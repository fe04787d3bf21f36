//! The log: what the library has to say besides its statuses.

use std::ffi::{c_char, c_void};
use std::sync::{OnceLock, PoisonError, RwLock};

use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::boundary::enter;
use crate::c_text::write_c_text;
use crate::status::{Failure, avsg_status, avsg_status::AVSG_UNSUPPORTED, unknown_constant};

/// The importance of a message.
#[repr(C)]
pub enum avsg_log_level {
    /// A defect of the library.
    AVSG_LOG_ERROR = 1,
    /// Something works, but slower than asked for.
    AVSG_LOG_WARN = 2,
    /// What was measured and chosen.
    AVSG_LOG_INFO = 3,
    /// What was made.
    AVSG_LOG_DEBUG = 4,
}

/// Takes a message: one line without a line break, valid during the call. It may be called on any
/// thread and at the same time, and must not call this library.
pub type avsg_log_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, level: i32, message: *const c_char)>;

/// The caller's function and its first argument.
#[derive(Clone, Copy)]
struct Sink {
    callback: avsg_log_callback,
    user: *mut c_void,
}

// SAFETY: the pointer is only passed to the callback, which may be called on any thread.
unsafe impl Send for Sink {}
// SAFETY: as for Send.
unsafe impl Sync for Sink {}

/// Passes messages to the caller's function.
struct Forward(RwLock<Sink>);

static FORWARD: Forward = Forward(RwLock::new(Sink { callback: None, user: std::ptr::null_mut() }));

impl Log for Forward {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        // While the sink is being replaced, a message is left out.
        let Ok(sink) = self.0.try_read() else { return };
        let Some(callback) = sink.callback else { return };
        let mut text = [0; 1024];
        write_c_text(&mut text, record.args());
        // That of a panic has several lines.
        text.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
        let level = match record.level() {
            Level::Error => avsg_log_level::AVSG_LOG_ERROR,
            Level::Warn => avsg_log_level::AVSG_LOG_WARN,
            Level::Info => avsg_log_level::AVSG_LOG_INFO,
            Level::Debug | Level::Trace => avsg_log_level::AVSG_LOG_DEBUG,
        };
        // SAFETY: the callback may be called on any thread with `user` (`avsg_log_callback`), and the string
        // ends with NUL and lives until the call has returned.
        unsafe { callback(sink.user, level as i32, text.as_ptr().cast()) };
    }

    fn flush(&self) {}
}

/// Sets the function that takes the messages of the library up to `level`, an `avsg_log_level`, for
/// the whole process; NULL takes none, as before the first call. After this function has returned,
/// an earlier callback is not called any more. The library writes messages nowhere else, and no
/// call of a step says anything. AVSG_UNSUPPORTED: the process is a Rust program with a logger of
/// its own, which gets the messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_set_log(
    callback: avsg_log_callback,
    user: *mut c_void,
    level: i32,
) -> avsg_status {
    enter(|| {
        let filter = match level {
            1 => LevelFilter::Error,
            2 => LevelFilter::Warn,
            3 => LevelFilter::Info,
            4 => LevelFilter::Debug,
            _ if callback.is_none() => LevelFilter::Off,
            other => return unknown_constant("level", other, 4),
        };
        static OWN: OnceLock<bool> = OnceLock::new();
        if !OWN.get_or_init(|| log::set_logger(&FORWARD).is_ok()) {
            let text = "this process has a logger of its own, which gets the messages; use that";
            return Err(Failure::new(AVSG_UNSUPPORTED, text.into()));
        }
        *FORWARD.0.write().unwrap_or_else(PoisonError::into_inner) = Sink { callback, user };
        log::set_max_level(filter);
        Ok(())
    })
}
