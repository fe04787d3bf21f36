//! The system calls of a store, as traits, so that a test can put faults between the store and its file.

use std::io;
use std::time::Duration;

/// A range of memory that bytes are read into or written from. It has the layout of `struct iovec`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Piece {
    /// Address of the first byte.
    pub at: *mut u8,
    /// Length in bytes.
    pub len: usize,
}

// SAFETY: a piece is an address and a length, and nothing here follows the address: `Disk::run` and
// `Queue::push` ask that it is valid and that no other code uses its bytes.
unsafe impl Send for Piece {}
// SAFETY: as for `Send`.
unsafe impl Sync for Piece {}

/// Whether bytes are read from the file or written to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the file into memory.
    Read,
    /// From memory into the file.
    Write,
}

/// One read or write of adjacent bytes of the file.
#[derive(Debug, Clone, Copy)]
pub struct Operation<'a> {
    /// Whether it reads or writes.
    pub direction: Direction,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// The memory, in the order of the file's bytes; 1 to 256 pieces.
    pub pieces: &'a [Piece],
}

/// An open file or block device. Its methods are called by several threads at once.
pub trait Disk: Send + Sync {
    /// Does one operation in the calling thread (`preadv`, `pwritev`) and returns the bytes that it
    /// moved, which may be fewer than the pieces have.
    ///
    /// # Errors
    /// The error of the system call.
    ///
    /// # Safety
    /// Each piece is valid for the operation, and no other code uses its bytes during the call, except
    /// that others may read what is written.
    unsafe fn run(&self, operation: &Operation<'_>) -> io::Result<usize>;

    /// Makes all bytes durable whose writes have completed (`fdatasync`).
    ///
    /// # Errors
    /// The error of the system call.
    fn sync(&self) -> io::Result<()>;

    /// Returns the length of the file or the device in bytes.
    ///
    /// # Errors
    /// The error of the system call.
    fn length(&self) -> io::Result<u64>;

    /// Lets another pool take the lock of a kept file.
    fn unlock(&self);

    /// Returns a queue that has up to `depth` operations under way at once (io_uring).
    ///
    /// # Errors
    /// If the kernel refuses io_uring or lacks a feature that is needed.
    fn queue(&self, depth: u32) -> io::Result<Box<dyn Queue>>;
}

/// What a [`Queue`] calls for each completed operation: its id, and the bytes moved or the error.
pub type Completed<'a> = dyn FnMut(u32, io::Result<usize>) + 'a;

/// Operations that are under way at once. They complete in any order.
///
/// If a queue is dropped with operations under way, these may still access their memory.
pub trait Queue: Send + Sync {
    /// Accepts an operation. It need not start before the next [`Self::wait`].
    ///
    /// # Errors
    /// If the queue is full. The operation is not under way then.
    ///
    /// # Safety
    /// - Each piece is valid for the operation until it has completed, and no other code uses its bytes
    ///   until then, except that others may read what is written.
    /// - The array of pieces lives as long.
    /// - At most as many operations are under way as the queue was made for, this one included.
    unsafe fn push(&mut self, id: u32, operation: &Operation<'_>) -> io::Result<()>;

    /// Starts all accepted operations, waits until one has completed or `timeout` has passed, and calls
    /// `completed` for each that has completed since the last call. It returns without an error if none
    /// has. A `timeout` of 0 does not wait.
    ///
    /// # Errors
    /// The error of the system call. Operations stay under way.
    fn wait(&mut self, timeout: Duration, completed: &mut Completed<'_>) -> io::Result<()>;
}
