//! Reads and writes by io_uring.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use rustix::io::Errno;

use super::io::{Completed, Direction, Operation, Queue};
use crate::system::fork::Birth;

/// The file's place among the registered files of its ring, of which it is the only one.
const FILE: Fixed = Fixed(0);

/// A ring with one registered file.
pub(super) struct Ring {
    /// A forked child does not have the memory of the ring, and must not unmap what it has in its place.
    ring: ManuallyDrop<IoUring>,
    birth: Birth,
}

impl Ring {
    pub fn new(file: BorrowedFd<'_>, depth: u32) -> io::Result<Self> {
        let ring = IoUring::builder().dontfork().build(depth)?;
        // Without the first a wait has no time limit, and without the second the arrays of pieces would
        // have to outlive the submission.
        if !(ring.params().is_feature_ext_arg() && ring.params().is_feature_submit_stable()) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        ring.submitter().register_files(&[file.as_raw_fd()])?;
        // A sandbox may refuse this call and none before it.
        ring.submitter().submit()?;
        Ok(Self { ring: ManuallyDrop::new(ring), birth: Birth::now() })
    }

    /// Hands out the completions that are there and returns their number.
    fn reap(&mut self, completed: &mut Completed<'_>) -> usize {
        let mut count = 0;
        for entry in self.ring.completion() {
            let result = match entry.result() {
                moved @ 0.. => Ok(moved.unsigned_abs() as usize),
                error => Err(io::Error::from_raw_os_error(-error)),
            };
            completed(entry.user_data() as u32, result);
            count += 1;
        }
        count
    }
}

impl Queue for Ring {
    unsafe fn push(&mut self, id: u32, operation: &Operation<'_>) -> io::Result<()> {
        let Operation { direction, offset, pieces } = *operation;
        let (many, count) = (pieces.as_ptr().cast(), pieces.len() as u32);
        let entry = match direction {
            Direction::Read => opcode::Readv::new(FILE, many, count).offset(offset).build(),
            Direction::Write => opcode::Writev::new(FILE, many, count).offset(offset).build(),
        };
        // SAFETY: the pieces and their memory live until the operation has completed (`Queue::push`), and a
        // `Piece` has the layout of `struct iovec`.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(u64::from(id))) };
        pushed.map_err(|_| Errno::BUSY.into())
    }

    fn wait(&mut self, timeout: Duration, completed: &mut Completed<'_>) -> io::Result<()> {
        let there = self.reap(completed);
        let wait = there == 0 && !timeout.is_zero();
        if !wait && self.ring.submission().is_empty() {
            return Ok(());
        }
        let time = Timespec::from(timeout);
        let arguments = SubmitArgs::new().timespec(&time);
        match self.ring.submitter().submit_with_args(usize::from(wait), &arguments) {
            Ok(_) => {}
            Err(error) => match Errno::from_io_error(&error) {
                // The time is over, a signal came, or the kernel lacks memory for the moment.
                Some(Errno::TIME | Errno::INTR | Errno::AGAIN | Errno::BUSY) => {}
                _ => return Err(error),
            },
        }
        self.reap(completed);
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if !self.birth.is_past() {
            // SAFETY: the ring is dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.ring) };
        }
    }
}
