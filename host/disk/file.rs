//! The file itself, as a [`Disk`].

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::AsFd;
use std::slice;

use rustix::fs::{self, FlockOperation, SeekFrom};

use super::io::{Direction, Disk, Operation, Queue};
use super::ring::Ring;

/// The most pieces of an operation.
pub(super) const MAX_PIECES: usize = 256;

/// An open file or block device.
pub(super) struct File {
    pub fd: std::fs::File,
}

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
                    rustix::io::preadv(&self.fd, slices, offset)?
                }
                Direction::Write => {
                    let slices = slice::from_raw_parts(at.cast::<IoSlice<'_>>(), count);
                    rustix::io::pwritev(&self.fd, slices, offset)?
                }
            }
        })
    }

    fn sync(&self) -> io::Result<()> {
        Ok(fs::fdatasync(&self.fd)?)
    }

    fn length(&self) -> io::Result<u64> {
        let stat = fs::fstat(&self.fd)?;
        // The length of a block device is not in its inode.
        if fs::FileType::from_raw_mode(stat.st_mode) == fs::FileType::BlockDevice {
            return Ok(fs::seek(&self.fd, SeekFrom::End(0))?);
        }
        Ok(stat.st_size.cast_unsigned())
    }

    fn unlock(&self) {
        // A failure only leaves the lock to the end of the process.
        let _ = fs::flock(&self.fd, FlockOperation::Unlock);
    }

    fn queue(&self, depth: u32) -> io::Result<Box<dyn Queue>> {
        Ok(Box::new(Ring::new(self.fd.as_fd(), depth)?))
    }
}
