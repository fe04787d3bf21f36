//! A queue for kernels that refuse io_uring: each operation is done when it is accepted.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::io::{Completed, Disk, Operation, Queue};
use crate::Result;
use crate::system::reserve;

/// The most operations between two calls of [`Queue::wait`]. Few, so that their results are used while
/// they are in the cache.
const DEPTH: usize = 8;

pub(super) struct Blocking {
    disk: Arc<dyn Disk>,
    done: VecDeque<(u32, io::Result<usize>)>,
}

impl Blocking {
    pub fn new(disk: Arc<dyn Disk>) -> Result<Self> {
        let done = reserve::with_capacity("results of reads", DEPTH)?.into();
        Ok(Self { disk, done })
    }
}

impl Queue for Blocking {
    fn depth(&self) -> usize {
        DEPTH
    }

    unsafe fn push(&mut self, id: u32, operation: &Operation<'_>) -> io::Result<()> {
        // SAFETY: each piece is valid, and no other code uses its bytes until the operation has completed,
        // which it has when `run` returns (`# Safety`).
        let result = unsafe { self.disk.run(operation) };
        self.done.push_back((id, result));
        Ok(())
    }

    fn wait(&mut self, _: Duration, completed: &mut Completed<'_>) -> io::Result<()> {
        while let Some((id, result)) = self.done.pop_front() {
            completed(id, result);
        }
        Ok(())
    }
}
