//! The file itself, as a [`Disk`], and io_uring, as its [`Queue`].

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::slice;
use std::time::Duration;

use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use rustix::fs::{self, FlockOperation, SeekFrom};
use rustix::io::Errno;

use super::io::{Completed, Direction, Disk, Operation, Queue};
use crate::system::fork::Birth;

/// The most pieces of an operation.
pub(super) const MAX_PIECES: usize = 256;

impl Disk for File {
    unsafe fn run(&self, operation: &Operation<'_>) -> io::Result<usize> {
        let Operation { direction, offset, pieces } = *operation;
        let mut pieces: heapless::Vec<_, MAX_PIECES> =
            pieces.iter().copied().take(MAX_PIECES).collect();
        let (at, count) = (pieces.as_mut_ptr(), pieces.len());
        // SAFETY: both types of slices and a `Piece` have the layout of `struct iovec`. The pieces are valid for this
        // direction, and no other code uses or, if they are written from, changes their bytes (`Disk::run`).
        Ok(unsafe {
            match direction {
                Direction::Read => {
                    let slices = slice::from_raw_parts_mut(at.cast::<IoSliceMut<'_>>(), count);
                    rustix::io::preadv(self, slices, offset)?
                }
                Direction::Write => {
                    let slices = slice::from_raw_parts(at.cast::<IoSlice<'_>>(), count);
                    rustix::io::pwritev(self, slices, offset)?
                }
            }
        })
    }

    fn sync(&self) -> io::Result<()> {
        Ok(fs::fdatasync(self)?)
    }

    fn length(&self) -> io::Result<u64> {
        let stat = fs::fstat(self)?;
        // The length of a block device is not in its inode.
        if fs::FileType::from_raw_mode(stat.st_mode) == fs::FileType::BlockDevice {
            return Ok(fs::seek(self, SeekFrom::End(0))?);
        }
        Ok(stat.st_size.cast_unsigned())
    }

    fn unlock(&self) {
        // A failure only leaves the lock to the end of the process.
        let _ = fs::flock(self, FlockOperation::Unlock);
    }

    fn queue(&self, depth: u32) -> io::Result<Box<dyn Queue>> {
        Ok(Box::new(Ring::new(self.as_fd(), depth)?))
    }
}

/// The file's place among the registered files of its ring, of which it is the only one.
const FILE: Fixed = Fixed(0);

/// A ring with one registered file.
struct Ring {
    /// A forked child does not have the memory of the ring, and must not unmap what it has in its place.
    ring: ManuallyDrop<IoUring>,
    birth: Birth,
}

impl Ring {
    fn new(file: BorrowedFd<'_>, depth: u32) -> io::Result<Self> {
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
