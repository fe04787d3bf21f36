//! The session of a test, which has exclusive use of the simulated machine.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use crate::binary::CLOSURE_FILE;
use crate::fault::{CallFault, LaunchFault};
use crate::kernel::ClosureKernel;
use crate::machine::{replace, with_machine};
use crate::options::Options;

static SESSION_LOCK: Mutex<()> = Mutex::new(());

/// Exclusive use of a new simulated machine, until it is dropped.
#[derive(Debug)]
pub struct Session {
    _lock: MutexGuard<'static, ()>,
}

impl Session {
    /// Waits for the end of other sessions and starts a new machine.
    pub fn new(options: Options) -> Self {
        // A panic of another test may poison the lock; the machine is replaced in any case.
        let _lock = SESSION_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        replace(options);
        Self { _lock }
    }

    /// Registers a closure kernel by name, for the file of [`Self::kernel_file`].
    pub fn kernel(&self, name: &str, kernel: ClosureKernel) {
        with_machine(|machine| machine.kernels.insert(name.to_owned(), kernel));
    }

    /// Writes a kernel file that selects the registered closure kernels, and returns its absolute
    /// path.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn kernel_file(&self, folder: &Path) -> io::Result<PathBuf> {
        let path = std::path::absolute(folder.join("session.kernels"))?;
        // The file is renamed into place, because another process of the test run may be reading
        // it.
        let temporary = path.with_extension(std::process::id().to_string());
        fs::write(&temporary, CLOSURE_FILE)?;
        fs::rename(&temporary, &path)?;
        Ok(path)
    }

    /// Fails the n-th call of a function with `code`; calls count from 1 since the start of the
    /// session.
    pub fn fail(&self, call: &str, nth: usize, code: i32) {
        self.inject(CallFault::Call(call.to_owned(), nth, code));
    }

    /// Fails the n-th call of any function with `code`.
    pub fn fail_any(&self, nth: usize, code: i32) {
        self.inject(CallFault::Any(nth, code));
    }

    /// Loses the device from the n-th call of any function on.
    pub fn lose_device(&self, nth: usize) {
        self.inject(CallFault::Lose(nth));
    }

    /// Makes the n-th kernel hang.
    pub fn hang(&self, nth: usize) {
        with_machine(|machine| machine.faults.launch_faults.insert(nth, LaunchFault::Hang));
    }

    /// Makes a block of the n-th kernel raise an exception.
    pub fn raise_exception(&self, nth: usize, block: u32) {
        with_machine(|machine| {
            machine.faults.launch_faults.insert(nth, LaunchFault::Exception(block))
        });
    }

    /// After the n-th kernel, sets a word of the array behind an argument to a value.
    pub fn corrupt(&self, nth: usize, arg: usize, word: usize, value: i32) {
        let fault = LaunchFault::Corrupt { arg, word, value };
        with_machine(|machine| machine.faults.launch_faults.insert(nth, fault));
    }

    fn inject(&self, call_fault: CallFault) {
        with_machine(|machine| machine.faults.call_faults.push(call_fault));
    }

    /// Returns the names of all calls so far, in order.
    pub fn calls(&self) -> Vec<&'static str> {
        with_machine(|machine| machine.faults.log.clone())
    }

    /// Returns the number of kernels that have started so far.
    pub fn launches(&self) -> usize {
        with_machine(|machine| machine.faults.launches)
    }

    /// Returns a line for each object that was not released; none after a program without leaks.
    pub fn leaks(&self) -> Vec<String> {
        with_machine(|machine| machine.leaks())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        replace(Options::default());
    }
}
