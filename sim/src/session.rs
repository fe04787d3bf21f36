//! What a test holds while it has the machine for itself.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use crate::binary::NATIVE;
use crate::fault::{Accident, Order};
use crate::kernel::Kernel;
use crate::options::Options;
use crate::world::{replace, with_world};

static ONE: Mutex<()> = Mutex::new(());

/// A new machine, nobody else's until this is dropped.
#[derive(Debug)]
pub struct Session {
    _alone: MutexGuard<'static, ()>,
}

impl Session {
    /// Waits for its turn and starts a new machine.
    pub fn new(options: Options) -> Self {
        // A test that failed leaves nothing behind that the next one would see.
        let _alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        replace(options);
        Self { _alone }
    }

    /// Gives a kernel of the test's own a name, for files of [`Self::kernel_file`].
    pub fn kernel(&self, name: &str, kernel: Kernel) {
        with_world(|world| world.kernels.insert(name.to_owned(), kernel));
    }

    /// Writes a kernel file that stands for the session's kernels.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn kernel_file(&self, folder: &Path) -> io::Result<PathBuf> {
        let path = std::path::absolute(folder.join("session.kernels"))?;
        // Replaced as a whole: another process of the test run may be reading it.
        let fresh = path.with_extension(std::process::id().to_string());
        fs::write(&fresh, NATIVE)?;
        fs::rename(&fresh, &path)?;
        Ok(path)
    }

    /// Fails the n-th call, from 1 on, of a function, counted from the beginning of the session.
    pub fn fail(&self, call: &str, nth: usize, code: i32) {
        self.order(Order::Call(call.to_owned(), nth, code));
    }

    /// Fails the n-th call of any function.
    pub fn fail_any(&self, nth: usize, code: i32) {
        self.order(Order::Any(nth, code));
    }

    /// Takes the device away with the n-th call of any function.
    pub fn lose_device(&self, nth: usize) {
        self.order(Order::Lose(nth));
    }

    /// Lets the n-th kernel never end.
    pub fn hang(&self, nth: usize) {
        with_world(|world| world.faults.accidents.insert(nth, Accident::Hang));
    }

    /// Lets a block of the n-th kernel raise an exception.
    pub fn except(&self, nth: usize, block: u32) {
        with_world(|world| world.faults.accidents.insert(nth, Accident::Exception(block)));
    }

    fn order(&self, order: Order) {
        with_world(|world| world.faults.orders.push(order));
    }

    /// Every call so far, in order.
    pub fn calls(&self) -> Vec<&'static str> {
        with_world(|world| world.faults.log.clone())
    }

    /// Kernels that have begun so far.
    pub fn launches(&self) -> usize {
        with_world(|world| world.faults.launches)
    }

    /// A line for each thing that is alive: nothing, at the end of a program without leaks.
    pub fn leaks(&self) -> Vec<String> {
        with_world(|world| world.leaks())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        replace(Options::default());
    }
}
