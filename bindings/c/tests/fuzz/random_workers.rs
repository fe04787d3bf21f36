//! Random workers, of which engines are made. An executor with a thread for each task is in `tests/calls/guest.rs`.

use std::ffi::c_void;
use std::ptr::null_mut;

use avsg_capi::*;
use avsg_capi_testkit::sized;

use super::random_caller::RandomCaller;
use super::shared_handles::Kind;

/// An executor that runs the tasks from the last to the first and leaves the first one out, as
/// executors may.
unsafe extern "C" fn backwards(_: *mut c_void, task: avsg_task, data: *mut c_void, count: usize) {
    let Some(task) = task else { return };
    // SAFETY: this function has not returned, and each index is passed once.
    (1..count).rev().for_each(|index| unsafe { task(data, index) });
}

impl RandomCaller<'_> {
    /// Creates workers, at times with a mistake, and keeps their handle.
    pub(super) fn create_workers(&mut self) {
        let mut config: avsg_workers_config = sized();
        config.threads = match (self.below(8), self.word() as u32) {
            // A few thousand threads are a valid wish, but not one for a test.
            (0, 4..=1024) => 0,
            (0, word) => word,
            (n, _) => 1 + n as u32 % 3,
        };
        let cpus = [0, 1, self.word() as i32];
        config.cpu_count = self.mostly(0).min(cpus.len());
        if self.rarely(6) {
            config.cpu_count = 1 + self.below(3);
        }
        config.cpus = cpus.as_ptr();
        config.pin = if self.rarely(6) { self.below(3) as u32 } else { 0 };
        config.spin_us = if self.rarely(6) { self.word() as i32 % 200 } else { -1 };
        config.executor = if self.rarely(3) { Some(backwards) } else { None };
        self.corrupt_size(&mut config);
        let mut created = null_mut();
        let to = self.pointer(&mut created);
        // SAFETY: `config` is a struct with a `size` that may be wrong, its array has the length
        // beside it, and `to` is NULL or a local variable.
        if self.record(unsafe { avsg_workers_create(&config, to) }) {
            self.keep(Kind::Workers, created.addr());
        }
    }
}
