//! Random calls that read from or write to a handle outside of a step, and the log.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use avsg_capi::*;
use avsg_capi_testkit::*;

use super::random_caller::RandomCaller;
use super::shared_handles::Kind;

/// The user pointer and the level of the log.
static LOG: (AtomicUsize, AtomicI32) = (AtomicUsize::new(0), AtomicI32::new(0));
/// The messages of the log so far.
pub static MESSAGES: AtomicUsize = AtomicUsize::new(0);

/// Checks a message, and that it is for the log that a single thread set; the user pointer of others is NULL.
unsafe extern "C" fn check_message(user: *mut c_void, level: i32, message: *const c_char) {
    // SAFETY: the message is a NUL-terminated string that is valid during the call.
    let text = unsafe { CStr::from_ptr(message) }.to_bytes();
    assert!(!text.is_empty() && !text.contains(&b'\n'));
    let (expected, most) = (LOG.0.load(Ordering::Relaxed), LOG.1.load(Ordering::Relaxed));
    let right = user.addr() == expected && (1..=most).contains(&level);
    assert!(right || user.is_null(), "level {level} of {most}");
    MESSAGES.fetch_add(1, Ordering::Relaxed);
}

impl RandomCaller<'_> {
    fn set_log(&mut self) -> avsg_status {
        let level = if self.mistake(8) { self.word() as i32 } else { 1 + self.below(4) as i32 };
        let user = if self.verify { 1 + self.below(1000) } else { 0 };
        let callback: avsg_log_callback = if self.rarely(4) { None } else { Some(check_message) };
        // SAFETY: the functions may be called on any thread at any time.
        let status = unsafe { avsg_set_log(callback, without_provenance_mut(user), level) };
        if status == avsg_status::AVSG_OK {
            LOG.0.store(user, Ordering::Relaxed);
            LOG.1.store(level, Ordering::Relaxed);
        }
        status
    }

    /// Makes a call that reads from or writes to a handle, outside of a step.
    pub(super) fn query(&mut self) {
        let (pool, engine) =
            (self.handle::<avsg_pool>(Kind::Pool), self.handle::<avsg_engine>(Kind::Engine));
        let plan = self.handle::<avsg_plan>(Kind::Plan);
        let (layer, segment, index) = (self.index(2), self.index(2), self.index(ROWS));
        macro_rules! info {
            ($call:ident, $($arg:expr),*) => {{
                let mut value = sized();
                self.corrupt_size(&mut value);
                let to = self.pointer(&mut value);
                $call($($arg,)* to)
            }};
        }
        // SAFETY: each pointer is NULL or to local memory of the stated length, and handles are
        // looked up.
        let status = unsafe {
            match self.below(19) {
                0 => info!(avsg_pool_get_info, pool),
                1 => info!(avsg_engine_get_info, engine),
                2..5 => {
                    let memory = [HOST, DEVICE, self.mostly(2) as i32][self.below(3)];
                    info!(avsg_plan_get_arrays, plan, memory)
                }
                5 => info!(avsg_plan_get_counters, plan),
                6 => info!(avsg_engine_get_buffer, engine, layer, segment),
                7 => info!(avsg_engine_get_stats, engine),
                8 => {
                    let (mut used, states) = ([0; 2], self.mostly(2));
                    let used = self.pointer(&mut used).cast();
                    avsg_engine_get_used_slots(engine, index % 2, used, states)
                }
                9..11 => {
                    avsg_pool_get_row(pool, layer, segment, index, self.pointer(&mut null_mut()))
                }
                11 => avsg_engine_invalidate(engine, self.index(2), index, self.mostly(ROWS)),
                12..14 => {
                    let ((mut config, _parts), mut of_pool) = (self.engine_config(), pool_config());
                    (of_pool.layers, of_pool.rows) = (self.mostly(2), self.mostly(ROWS));
                    self.corrupt_size(&mut of_pool);
                    let (config, of_pool) = (self.pointer(&mut config), self.pointer(&mut of_pool));
                    let largest = [self.mostly(4), self.mostly(2), self.mostly(8)];
                    let [rows, requests, stride] = [[0; 3], largest][self.below(2)];
                    info!(avsg_get_memory, config, of_pool, rows, requests, stride)
                }
                14 => {
                    let (mut ids, request) = ([0; 4], self.index(2));
                    let to = self.pointer(&mut ids).cast();
                    avsg_plan_get_lost_ids(plan, request, to, self.below(5), &mut 0)
                }
                15 => self.set_log(),
                16 => {
                    let (mut bits, state) = ([0u64; 2], self.index(2));
                    let (first, end) = (self.mostly(0), self.mostly(ROWS));
                    let (at, words) = (self.pointer(&mut bits), self.mostly(2));
                    let words = if words > 2 { usize::MAX } else { words };
                    avsg_engine_get_held(engine, layer, state, 1, first, end, at.cast(), words)
                }
                17 => avsg_pool_flush(pool),
                // A folder, or a file that does not exist.
                _ => avsg_pool_open(&self.file().file, self.pointer(&mut null_mut())),
            }
        };
        self.record(status);
    }
}
