//! Many operations under way at once, each of which is continued until all its bytes are moved.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::io::{Direction, Disk, Operation, Piece, Queue};
use crate::Result;
use crate::system::reserve;

const WHAT: &str = "reads and writes under way";
/// The most operations that a queue has under way at once.
pub(super) const DEPTH: u32 = 256;
/// The most operations that are done one after another where the kernel refuses io_uring. Few, so that their results
/// are used while they are in the cache.
const IN_TURN: usize = 8;

/// Why an operation has not moved all its bytes.
#[derive(Debug)]
pub(super) struct Unmoved {
    /// Whether it was a read or a write.
    pub direction: Direction,
    /// Offset in the file of the first byte that was not moved.
    pub offset: u64,
    pub error: io::Error,
}

/// Whether an operation that has ended has moved all its bytes.
pub(super) type Outcome = std::result::Result<(), Unmoved>;

/// The id of an operation that has ended, and its outcome.
pub(super) type Ended = (u32, Outcome);

/// What is left of an operation.
#[derive(Clone)]
pub(super) struct Rest {
    pub direction: Direction,
    pub offset: u64,
    pub bytes: usize,
    /// The pieces that are left.
    pub pieces: Range<usize>,
}

impl Rest {
    /// Returns the operation that moves what is left.
    pub fn operation<'a>(&self, pieces: &'a [Piece]) -> Operation<'a> {
        let Self { direction, offset, .. } = *self;
        Operation { direction, offset, pieces: &pieces[self.pieces.clone()] }
    }

    /// Takes the result of the operation, and returns its outcome if it has ended. One that was cut short goes on
    /// at a multiple of `unit` bytes; one that was interrupted is repeated. A read that meets the end of the file is
    /// complete: what is behind it is zeros, as of a hole.
    pub fn take(
        &mut self,
        result: io::Result<usize>,
        unit: usize,
        pieces: &mut [Piece],
    ) -> Option<Outcome> {
        let error = match result {
            Ok(moved) if moved >= self.bytes => return Some(Ok(())),
            Ok(moved) if moved >= unit => {
                self.skip(moved - moved % unit, pieces);
                return None;
            }
            Ok(moved) if self.direction == Direction::Read => {
                self.skip(moved, pieces);
                for piece in &pieces[self.pieces.clone()] {
                    // SAFETY: the pieces are valid and no other code uses them until the operation has ended, which
                    // it does behind this call (`Flight::start`, `Records::run`).
                    unsafe { piece.at.write_bytes(0, piece.len) };
                }
                return Some(Ok(()));
            }
            Ok(_) => io::ErrorKind::WriteZero.into(),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::INTR | Errno::AGAIN) => return None,
                _ => error,
            },
        };
        Some(Err(Unmoved { direction: self.direction, offset: self.offset, error }))
    }

    /// Takes the first `bytes` bytes, which were moved, off the operation.
    fn skip(&mut self, bytes: usize, pieces: &mut [Piece]) {
        self.offset += bytes as u64;
        self.bytes -= bytes;
        let mut moved = bytes;
        while moved > 0 {
            let piece = &mut pieces[self.pieces.start];
            let part = moved.min(piece.len);
            *piece = Piece { at: piece.at.wrapping_add(part), len: piece.len - part };
            moved -= part;
            if piece.len == 0 {
                self.pieces.start += 1;
            }
        }
    }
}

/// Operations with ids below a limit. More than the queue takes wait for their turn. What it needs is
/// allocated when it is made.
pub(super) struct Flight {
    disk: Arc<dyn Disk>,
    /// What has several operations under way; without it each is done in the thread that waits.
    pub queue: Option<Box<dyn Queue>>,
    /// The number of operations whose memory the kernel may use.
    pub under_way: usize,
    pub operations: Operations,
}

pub(super) struct Operations {
    /// An operation that was cut short goes on at a multiple of so many bytes.
    unit: usize,
    rest: Vec<Rest>,
    pub pieces: Vec<Piece>,
    waiting: VecDeque<u32>,
    /// Operations that have ended and were not handed out.
    ended: VecDeque<Ended>,
}

impl Operations {
    /// Takes the result of an operation, and returns whether it has ended or any bytes were moved.
    fn take(&mut self, id: u32, result: io::Result<usize>) -> bool {
        let moved = result.is_ok();
        let ended = self.rest[id as usize].take(result, self.unit, &mut self.pieces);
        let progress = moved || ended.is_some();
        match ended {
            Some(outcome) => self.ended.push_back((id, outcome)),
            None => self.waiting.push_back(id),
        }
        progress
    }
}

impl Flight {
    /// Returns a flight of up to `operations` operations with ids below that, and as many pieces, over a queue that
    /// was made for [`DEPTH`].
    pub fn new(
        disk: &Arc<dyn Disk>,
        queue: Option<Box<dyn Queue>>,
        unit: usize,
        operations: usize,
    ) -> Result<Self> {
        let none = Rest { direction: Direction::Read, offset: 0, bytes: 0, pieces: 0..0 };
        let piece = Piece { at: std::ptr::null_mut(), len: 0 };
        let operations = Operations {
            unit,
            rest: reserve::filled(WHAT, operations, none)?,
            pieces: reserve::filled(WHAT, operations, piece)?,
            waiting: reserve::with_capacity(WHAT, operations)?.into(),
            ended: reserve::with_capacity(WHAT, operations)?.into(),
        };
        Ok(Self { disk: Arc::clone(disk), queue, under_way: 0, operations })
    }

    /// Returns whether [`Self::next`] has an operation to hand out.
    pub fn is_busy(&self) -> bool {
        !self.has_ended() || !self.operations.ended.is_empty()
    }

    /// Returns whether all operations have ended.
    pub fn has_ended(&self) -> bool {
        self.under_way + self.operations.waiting.len() == 0
    }

    /// Starts the operation `id` with these of the pieces. It begins with the next call of [`Self::next`],
    /// [`Self::poll`] or [`Self::pump`].
    ///
    /// # Safety
    /// The pieces are valid until the operation has ended, or, if [`Self::abandon`] was called,
    /// [`Self::under_way`] is 0. No other code uses their bytes until then, except that others may read
    /// what is written. No operation under way has this id or these pieces.
    pub unsafe fn start(
        &mut self,
        id: u32,
        direction: Direction,
        offset: u64,
        pieces: Range<usize>,
    ) {
        let Operations { rest, pieces: all, waiting, .. } = &mut self.operations;
        let bytes = all[pieces.clone()].iter().map(|piece| piece.len).sum();
        rest[id as usize] = Rest { direction, offset, bytes, pieces };
        waiting.push_back(id);
    }

    /// Returns an operation that has ended. It waits for one until none has moved a byte for `timeout`; `None`
    /// if no operation is left.
    ///
    /// # Errors
    /// `TimedOut`, or the error of the queue.
    pub fn next(&mut self, timeout: Duration) -> io::Result<Option<Ended>> {
        let mut last = Instant::now();
        while self.operations.ended.is_empty() && !self.has_ended() {
            let left = timeout.saturating_sub(last.elapsed());
            if self.pump(left)? {
                last = Instant::now();
            } else if left.is_zero() {
                return Err(Errno::TIMEDOUT.into());
            }
        }
        Ok(self.operations.ended.pop_front())
    }

    /// Returns an operation that has ended, if there is one.
    ///
    /// # Errors
    /// The error of the queue.
    pub fn poll(&mut self) -> io::Result<Option<Ended>> {
        if self.operations.ended.is_empty() {
            self.pump(Duration::ZERO)?;
        }
        Ok(self.operations.ended.pop_front())
    }

    /// Starts operations as far as the queue has room, and waits until one completes or the time is over. It returns
    /// whether one has ended or any bytes were moved.
    ///
    /// # Errors
    /// The error of the queue.
    pub fn pump(&mut self, timeout: Duration) -> io::Result<bool> {
        let Self { disk, queue, under_way, operations } = self;
        let mut progress = false;
        let most = if queue.is_some() { DEPTH as usize - *under_way } else { IN_TURN };
        for _ in 0..most.min(operations.waiting.len()) {
            let Some(id) = operations.waiting.pop_front() else { break };
            let operation = operations.rest[id as usize].operation(&operations.pieces);
            // SAFETY: the pieces are valid until the operation has ended, and no other code uses their bytes
            // (`start`). The array of pieces never grows, so that it stays where it is. At most as many operations
            // are under way as the queue takes.
            let done = unsafe {
                match queue {
                    Some(queue) => queue.push(id, &operation).map(|()| None),
                    None => disk.run(&operation).map(Some),
                }
            };
            match done.transpose() {
                Some(result) => progress |= operations.take(id, result),
                None => *under_way += 1,
            }
        }
        let Some(queue) = queue.as_mut().filter(|_| *under_way > 0) else { return Ok(progress) };
        let timeout = if progress { Duration::ZERO } else { timeout };
        queue.wait(timeout, &mut |id, result| {
            *under_way -= 1;
            progress |= operations.take(id, result);
        })?;
        Ok(progress)
    }

    /// Forgets the operations that the queue does not have, and those that it has when they complete.
    pub fn abandon(&mut self) {
        self.operations.waiting.clear();
        self.operations.ended.clear();
    }

    /// Waits for what is under way after [`Self::abandon`], and returns whether nothing is left.
    pub fn settle(&mut self, timeout: Duration) -> bool {
        let start = Instant::now();
        while let Some(queue) = self.queue.as_mut().filter(|_| self.under_way > 0) {
            let left = timeout.saturating_sub(start.elapsed());
            let under_way = &mut self.under_way;
            let waited = queue.wait(left, &mut |_, _| *under_way -= 1);
            if waited.is_err() || (left.is_zero() && self.under_way > 0) {
                return false;
            }
        }
        true
    }
}
