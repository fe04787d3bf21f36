//! A disk that fails as a test says.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use avsg::disk::{Completed, Direction, Disk, Operation, Piece, Queue};

/// What happens to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails with this errno.
    Errno(i32),
    /// It moves at most so many bytes.
    Short(usize),
    /// The file ends before it.
    End,
    /// It moves all bytes, and one bit of the first of them is wrong that the fault is set for.
    Flip,
    /// It does not begin as long as the fault is set. Only queues know this fault.
    Slow,
}

/// The operations that a [`Fault`] hits.
#[derive(Debug, Clone)]
struct Rule {
    fault: Fault,
    direction: Direction,
    bytes: Range<u64>,
    /// How many operations are spared before the first that is hit.
    spared: usize,
    times: usize,
}

#[derive(Debug, Default)]
struct State {
    rule: Option<Rule>,
    hits: usize,
    sync: Option<i32>,
    no_queue: bool,
}

/// The faults of a disk, which a test changes while the disk is used.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics under the lock")
    }

    /// Sets the fault of the next `times` operations of this direction that touch `bytes` of the file.
    pub fn set(&self, fault: Fault, direction: Direction, bytes: Range<u64>, times: usize) {
        self.state().rule = Some(Rule { fault, direction, bytes, spared: 0, times });
    }

    /// Sets the fault of one operation of this direction, after `spared` others.
    pub fn set_nth(&self, fault: Fault, direction: Direction, spared: usize) {
        let (bytes, times) = (0..u64::MAX, 1);
        self.state().rule = Some(Rule { fault, direction, bytes, spared, times });
    }

    /// Returns how many operations were hit since the last [`Self::clear`].
    pub fn hits(&self) -> usize {
        self.state().hits
    }

    /// Sets the fault of all operations of this direction.
    pub fn set_all(&self, fault: Fault, direction: Direction) {
        self.set(fault, direction, 0..u64::MAX, usize::MAX);
    }

    /// Sets the errno of `fdatasync`.
    pub fn set_sync(&self, errno: i32) {
        self.state().sync = Some(errno);
    }

    /// Refuses queues, as a kernel without io_uring does.
    pub fn refuse_queues(&self) {
        self.state().no_queue = true;
    }

    /// Ends all faults.
    pub fn clear(&self) {
        *self.state() = State::default();
    }

    /// Returns the disk of these faults, for `HostPool::new_through`.
    pub fn wrap(&self, disk: Arc<dyn Disk>) -> Arc<dyn Disk> {
        Arc::new(FaultyDisk { disk, faults: self.clone() })
    }

    /// Returns the fault of an operation, and the first of its bytes that the fault is set for.
    fn of(&self, operation: &Operation<'_>) -> Option<(Fault, usize)> {
        let mut state = self.state();
        let State { rule, hits, .. } = &mut *state;
        let rule = rule.as_mut()?;
        let len: usize = operation.pieces.iter().map(|piece| piece.len).sum();
        let (start, end) = (operation.offset, operation.offset + len as u64);
        let hit = rule.times > 0
            && rule.direction == operation.direction
            && start < rule.bytes.end
            && rule.bytes.start < end;
        if !hit {
            return None;
        }
        if rule.spared > 0 {
            rule.spared -= 1;
            return None;
        }
        rule.times -= 1;
        *hits += 1;
        Some((rule.fault, rule.bytes.start.saturating_sub(start) as usize))
    }
}

struct FaultyDisk {
    disk: Arc<dyn Disk>,
    faults: Faults,
}

/// Returns the first `bytes` bytes of pieces.
fn shortened(pieces: &[Piece], bytes: usize) -> Vec<Piece> {
    let mut left = bytes;
    let cut = pieces.iter().map(|&Piece { at, len }| {
        let len = len.min(left);
        left -= len;
        Piece { at, len }
    });
    cut.filter(|piece| piece.len > 0).collect()
}

/// Changes one bit of what was read.
fn flip(piece: Piece) {
    // SAFETY: the read of this piece has ended, and the store has not been told yet.
    unsafe { *piece.at ^= 4 };
}

/// Returns pieces from a byte on, as far as the end of its piece.
fn piece_from(pieces: &[Piece], mut byte: usize) -> Piece {
    for &Piece { at, len } in pieces {
        if byte < len {
            return Piece { at: at.wrapping_add(byte), len: len - byte };
        }
        byte -= len;
    }
    panic!("the pieces end {byte} bytes before")
}

impl Disk for FaultyDisk {
    unsafe fn run(&self, operation: &Operation<'_>) -> io::Result<usize> {
        let short;
        let operation = match self.faults.of(operation) {
            Some((Fault::Errno(errno), _)) => return Err(io::Error::from_raw_os_error(errno)),
            Some((Fault::End, _)) => return Ok(0),
            Some((Fault::Short(bytes), _)) => {
                short = shortened(operation.pieces, bytes);
                &Operation { pieces: &short, ..*operation }
            }
            Some((Fault::Flip, byte)) => {
                // SAFETY: the caller guarantees it.
                let moved = unsafe { self.disk.run(operation) };
                return moved.inspect(|_| flip(piece_from(operation.pieces, byte)));
            }
            Some((Fault::Slow, _)) | None => operation,
        };
        // SAFETY: the caller guarantees it for all of the pieces.
        unsafe { self.disk.run(operation) }
    }

    fn sync(&self) -> io::Result<()> {
        match self.faults.state().sync {
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => self.disk.sync(),
        }
    }

    fn length(&self) -> io::Result<u64> {
        self.disk.length()
    }

    fn unlock(&self) {
        self.disk.unlock();
    }

    fn queue(&self, depth: u32) -> io::Result<Box<dyn Queue>> {
        if self.faults.state().no_queue {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let queue = self.disk.queue(depth)?;
        let faults = self.faults.clone();
        let (ended, held, flipped, pieces) = (vec![], vec![], vec![], vec![]);
        Ok(Box::new(FaultyQueue { queue, faults, ended, held, flipped, pieces }))
    }
}

/// An operation that waits for the end of [`Fault::Slow`].
struct Held {
    id: u32,
    direction: Direction,
    offset: u64,
    pieces: Vec<Piece>,
}

struct FaultyQueue {
    queue: Box<dyn Queue>,
    faults: Faults,
    ended: Vec<(u32, io::Result<usize>)>,
    held: Vec<Held>,
    /// The ids of reads that bring a wrong bit, and the piece from there on.
    flipped: Vec<(u32, Piece)>,
    /// The pieces of shortened operations.
    pieces: Vec<Vec<Piece>>,
}

impl Queue for FaultyQueue {
    fn depth(&self) -> usize {
        self.queue.depth()
    }

    unsafe fn push(&mut self, id: u32, operation: &Operation<'_>) -> io::Result<()> {
        let Operation { direction, offset, pieces } = *operation;
        let short;
        let operation = match self.faults.of(operation) {
            Some((Fault::Errno(errno), _)) => {
                self.ended.push((id, Err(io::Error::from_raw_os_error(errno))));
                return Ok(());
            }
            Some((Fault::End, _)) => {
                self.ended.push((id, Ok(0)));
                return Ok(());
            }
            Some((Fault::Slow, _)) => {
                self.held.push(Held { id, direction, offset, pieces: pieces.to_vec() });
                return Ok(());
            }
            Some((Fault::Flip, byte)) => {
                self.flipped.push((id, piece_from(pieces, byte)));
                operation
            }
            Some((Fault::Short(bytes), _)) => {
                short = shortened(pieces, bytes);
                self.pieces.push(short);
                let pieces = self.pieces.last().expect("pushed just now");
                &Operation { direction, offset, pieces }
            }
            None => operation,
        };
        // SAFETY: the caller guarantees it for all of the pieces, and the shortened array lives as long as
        // the queue.
        unsafe { self.queue.push(id, operation) }
    }

    fn wait(&mut self, timeout: Duration, completed: &mut Completed<'_>) -> io::Result<()> {
        let timeout = if self.ended.is_empty() { timeout } else { Duration::ZERO };
        for (id, result) in std::mem::take(&mut self.ended) {
            completed(id, result);
        }
        let slow = matches!(self.faults.state().rule, Some(Rule { fault: Fault::Slow, .. }));
        if !slow {
            for Held { id, direction, offset, pieces } in std::mem::take(&mut self.held) {
                self.pieces.push(pieces);
                let pieces = self.pieces.last().expect("pushed just now");
                // SAFETY: the caller of `push` guaranteed it until the operation completes.
                unsafe { self.queue.push(id, &Operation { direction, offset, pieces }) }?;
            }
        }
        let flipped = &mut self.flipped;
        let mut completed = |id: u32, result: io::Result<usize>| {
            if let Some(at) = flipped.iter().position(|flipped| flipped.0 == id) {
                flip(flipped.swap_remove(at).1);
            }
            completed(id, result);
        };
        if self.held.is_empty() {
            return self.queue.wait(timeout, &mut completed);
        }
        self.queue.wait(Duration::ZERO, &mut completed)?;
        thread::sleep(timeout.min(Duration::from_millis(1)));
        Ok(())
    }
}
