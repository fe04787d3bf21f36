//! Many operations under way at once, each of which is continued until all its bytes are moved.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::io::{Direction, Operation, Piece, Queue};
use crate::Result;
use crate::system::reserve;

const WHAT: &str = "reads and writes under way";

/// Why an operation has not moved all its bytes.
#[derive(Debug)]
pub(super) struct Unmoved {
    /// Whether it was a read or a write.
    pub direction: Direction,
    /// Offset in the file of the first byte that was not moved.
    pub offset: u64,
    pub error: io::Error,
}

/// Returns how many of the `bytes` bytes of an operation with this result were moved. One that was cut short
/// goes on behind them, at a multiple of `unit` bytes; one that was interrupted is repeated. A read that meets the
/// end of the file is complete: `clear` writes zeros, as of a hole, behind so many bytes.
pub(super) fn moved(
    result: io::Result<usize>,
    direction: Direction,
    bytes: usize,
    unit: usize,
    clear: impl FnOnce(usize),
) -> io::Result<usize> {
    match result {
        Ok(moved) if moved >= bytes => Ok(bytes),
        Ok(moved) if moved >= unit => Ok(moved - moved % unit),
        Ok(moved) if direction == Direction::Read => {
            clear(moved);
            Ok(bytes)
        }
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::INTR | Errno::AGAIN) => Ok(0),
            _ => Err(error),
        },
    }
}

/// The id of an operation that has ended, and whether it has moved all its bytes.
pub(super) type Ended = (u32, std::result::Result<(), Unmoved>);

/// What is left of an operation.
#[derive(Clone)]
struct Rest {
    direction: Direction,
    offset: u64,
    bytes: usize,
    /// The pieces that are left.
    pieces: Range<usize>,
}

/// Operations with ids below a limit. More than the queue takes wait for their turn. What it needs is
/// allocated when it is made.
pub(super) struct Flight {
    queue: Box<dyn Queue>,
    /// An operation that was cut short goes on at a multiple of so many bytes.
    unit: usize,
    rest: Vec<Rest>,
    pub pieces: Vec<Piece>,
    waiting: VecDeque<u32>,
    under_way: usize,
    /// Operations that have ended and were not handed out.
    ended: VecDeque<Ended>,
}

impl Flight {
    /// Returns a flight of up to `operations` operations with ids below that, and as many pieces.
    pub fn new(queue: Box<dyn Queue>, unit: usize, operations: usize) -> Result<Self> {
        let none = Rest { direction: Direction::Read, offset: 0, bytes: 0, pieces: 0..0 };
        let piece = Piece { at: std::ptr::null_mut(), len: 0 };
        Ok(Self {
            queue,
            unit,
            rest: reserve::filled(WHAT, operations, none)?,
            pieces: reserve::filled(WHAT, operations, piece)?,
            waiting: reserve::with_capacity(WHAT, operations)?.into(),
            under_way: 0,
            ended: reserve::with_capacity(WHAT, operations)?.into(),
        })
    }

    /// Returns the number of operations whose memory the kernel may use.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Returns whether [`Self::next`] has an operation to hand out.
    pub fn is_busy(&self) -> bool {
        self.under_way + self.waiting.len() + self.ended.len() > 0
    }

    /// Starts the operation `id` with these of [`Self::pieces`]. It begins with the next call of [`Self::next`]
    /// or [`Self::poll`].
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
        let bytes = self.pieces[pieces.clone()].iter().map(|piece| piece.len).sum();
        self.rest[id as usize] = Rest { direction, offset, bytes, pieces };
        self.waiting.push_back(id);
    }

    /// Returns an operation that has ended. It waits for one until none has moved a byte for `timeout`; `None`
    /// if no operation is left.
    ///
    /// # Errors
    /// `TimedOut`, or the error of the queue.
    pub fn next(&mut self, timeout: Duration) -> io::Result<Option<Ended>> {
        let mut last = Instant::now();
        loop {
            let left = timeout.saturating_sub(last.elapsed());
            let progress = self.advance(left)?;
            if !self.ended.is_empty() || !self.is_busy() {
                return Ok(self.ended.pop_front());
            }
            if progress {
                last = Instant::now();
            } else if left.is_zero() {
                return Err(Errno::TIMEDOUT.into());
            }
        }
    }

    /// Returns an operation that has ended, if there is one.
    ///
    /// # Errors
    /// The error of the queue.
    pub fn poll(&mut self) -> io::Result<Option<Ended>> {
        self.advance(Duration::ZERO)?;
        Ok(self.ended.pop_front())
    }

    /// Notes what has completed without waiting, starts others, and returns whether all have ended.
    ///
    /// # Errors
    /// The error of the queue.
    pub fn pump(&mut self) -> io::Result<bool> {
        self.submit();
        self.collect(Duration::ZERO)?;
        Ok(self.under_way + self.waiting.len() == 0)
    }

    /// Gives operations to the queue and, unless one has ended, waits until one completes or the time is over.
    /// It returns whether any bytes were moved.
    fn advance(&mut self, timeout: Duration) -> io::Result<bool> {
        self.submit();
        if self.ended.is_empty() { self.collect(timeout) } else { Ok(false) }
    }

    fn submit(&mut self) {
        let Self { queue, rest, pieces, waiting, under_way, ended, .. } = self;
        while *under_way < queue.depth()
            && let Some(id) = waiting.pop_front()
        {
            let Rest { direction, offset, pieces: ref which, .. } = rest[id as usize];
            let operation = Operation { direction, offset, pieces: &pieces[which.clone()] };
            // SAFETY: the pieces are valid until the operation has ended, and no other code uses their bytes
            // (`start`). The array of pieces never grows, so that it stays where it is. The condition above
            // keeps the depth.
            match unsafe { queue.push(id, &operation) } {
                Ok(()) => *under_way += 1,
                Err(error) => ended.push_back((id, Err(Unmoved { direction, offset, error }))),
            }
        }
    }

    /// Waits until an operation completes or the time is over, and returns whether any bytes were moved.
    fn collect(&mut self, timeout: Duration) -> io::Result<bool> {
        let Self { queue, unit, rest, pieces, waiting, under_way, ended } = self;
        let mut progress = false;
        if *under_way == 0 {
            return Ok(progress);
        }
        queue.wait(timeout, &mut |id, result| {
            *under_way -= 1;
            let rest = &mut rest[id as usize];
            let Rest { direction, offset, bytes, .. } = *rest;
            let moved = moved(result, direction, bytes, *unit, |moved| rest.clear(moved, pieces));
            progress |= !matches!(moved, Ok(0));
            match moved {
                Ok(moved) if moved < bytes => {
                    rest.skip(moved, pieces);
                    waiting.push_back(id);
                }
                moved => {
                    let failed = |error| Unmoved { direction, offset, error };
                    ended.push_back((id, moved.map(drop).map_err(failed)));
                }
            }
        })?;
        Ok(progress)
    }

    /// Forgets the operations that the queue does not have, and those that it has when they complete.
    pub fn abandon(&mut self) {
        self.waiting.clear();
        self.ended.clear();
    }

    /// Waits for what is under way after [`Self::abandon`], and returns whether nothing is left.
    pub fn settle(&mut self, timeout: Duration) -> bool {
        let start = Instant::now();
        while self.under_way > 0 {
            let left = timeout.saturating_sub(start.elapsed());
            let under_way = &mut self.under_way;
            let waited = self.queue.wait(left, &mut |_, _| *under_way -= 1);
            if waited.is_err() || (left.is_zero() && self.under_way > 0) {
                return false;
            }
        }
        true
    }
}

impl Rest {
    /// Writes zeros to what is left behind the first `bytes` bytes of a read, which has ended.
    fn clear(&mut self, bytes: usize, pieces: &mut [Piece]) {
        self.skip(bytes, pieces);
        for piece in &pieces[self.pieces.clone()] {
            // SAFETY: the pieces are valid and no other code uses them until the operation has ended, which
            // it does behind this call (`Flight::start`).
            unsafe { piece.at.write_bytes(0, piece.len) };
        }
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
