//! A disk whose operations a test lets fail.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, thread};

use avsg::disk::{Completed, Direction, Disk, Operation, Piece, Queue};

/// What happens to an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// It ends with this errno.
    Errno(i32),
    /// It moves no byte, as behind the end of a file that shrank.
    End,
    /// It moves the first 100 bytes only.
    Short,
    /// One bit of what it read is wrong.
    Flip,
    /// It does not end before [`Faults::release`].
    Hang,
}

/// The faults of a disk, shared by the test and the disk.
#[derive(Default)]
pub struct Faults {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The fault of later operations in a direction, after how many others, and how many it hits.
    next: Vec<(bool, Fault, usize, usize)>,
    released: bool,
    hits: usize,
}

impl Faults {
    /// Lets `count` operations in a direction fail after `skip` others.
    pub fn inject(&self, direction: Direction, fault: Fault, skip: usize, count: usize) {
        let mut state = self.state.lock().unwrap();
        state.next = vec![(direction == Direction::Read, fault, skip, count)];
        state.released = false;
    }

    /// Ends all faults, and lets operations go on that hang.
    pub fn release(&self) {
        let mut state = self.state.lock().unwrap();
        state.next.clear();
        state.released = true;
    }

    /// Returns how many operations failed so far.
    pub fn hits(&self) -> usize {
        self.state.lock().unwrap().hits
    }

    fn released(&self) -> bool {
        self.state.lock().unwrap().released
    }

    fn fault(&self, direction: Direction) -> Option<Fault> {
        let mut state = self.state.lock().unwrap();
        let State { next, hits, .. } = &mut *state;
        let (_, fault, skip, count) =
            next.iter_mut().find(|next| next.0 == (direction == Direction::Read))?;
        match (*skip, *count) {
            (0, 0) => None,
            (0, _) => {
                *count -= 1;
                *hits += 1;
                Some(*fault)
            }
            _ => {
                *skip -= 1;
                None
            }
        }
    }
}

/// A disk with faults.
pub struct Faulty {
    pub disk: Arc<dyn Disk>,
    pub faults: Arc<Faults>,
}

/// Cuts pieces down to `bytes` bytes.
fn cut(pieces: &[Piece], mut bytes: usize) -> Vec<Piece> {
    let mut short = Vec::new();
    for piece in pieces {
        let len = piece.len.min(bytes);
        short.push(Piece { at: piece.at, len });
        bytes -= len;
    }
    short.retain(|piece| piece.len > 0);
    short
}

/// Changes a bit of the first byte.
fn flip(pieces: &[Piece]) {
    // SAFETY: the operation on this piece has ended, and its caller does not use it yet.
    unsafe { *pieces[0].at ^= 4 };
}

impl Disk for Faulty {
    unsafe fn run(&self, operation: &Operation<'_>) -> io::Result<usize> {
        let run = |operation: &Operation<'_>| {
            // SAFETY: the caller keeps the contract of this function for all pieces.
            unsafe { self.disk.run(operation) }
        };
        match self.faults.fault(operation.direction) {
            None => run(operation),
            Some(Fault::Errno(errno)) => Err(io::Error::from_raw_os_error(errno)),
            Some(Fault::End) => Ok(0),
            // The shortest read that O_DIRECT allows.
            Some(Fault::Short) => {
                run(&Operation { pieces: &cut(operation.pieces, 512), ..*operation })
            }
            Some(Fault::Flip) => run(operation).inspect(|_| flip(operation.pieces)),
            Some(Fault::Hang) => {
                while !self.faults.released() {
                    thread::sleep(Duration::from_millis(1));
                }
                run(operation)
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }

    fn unlock(&self) {
        self.disk.unlock();
    }

    fn queue(&self, depth: u32) -> io::Result<Box<dyn Queue>> {
        let (queue, faults) = (self.disk.queue(depth)?, Arc::clone(&self.faults));
        let (held, flips, short) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Box::new(FaultyQueue { queue, faults, held, flips, short, ended: VecDeque::new() }))
    }
}

/// An operation that waits, with its pieces in memory of the store.
struct Held {
    id: u32,
    direction: Direction,
    offset: u64,
    pieces: *const [Piece],
}

struct FaultyQueue {
    queue: Box<dyn Queue>,
    faults: Arc<Faults>,
    held: Vec<Held>,
    /// The pieces of operations whose bytes become wrong.
    flips: BTreeMap<u32, Vec<Piece>>,
    /// The pieces of operations that were cut.
    short: BTreeMap<u32, Vec<Piece>>,
    ended: VecDeque<(u32, io::Result<usize>)>,
}

// SAFETY: the store keeps the pieces of an operation alive until it has ended, on any thread.
unsafe impl Send for FaultyQueue {}
// SAFETY: as for `Send`; a shared reference gives no access to the pieces.
unsafe impl Sync for FaultyQueue {}

impl Queue for FaultyQueue {
    fn depth(&self) -> usize {
        self.queue.depth()
    }

    unsafe fn push(&mut self, id: u32, operation: &Operation<'_>) -> io::Result<()> {
        match self.faults.fault(operation.direction) {
            Some(Fault::Errno(errno)) => {
                self.ended.push_back((id, Err(io::Error::from_raw_os_error(errno))));
                return Ok(());
            }
            Some(Fault::End) => {
                self.ended.push_back((id, Ok(0)));
                return Ok(());
            }
            Some(Fault::Hang) => {
                let Operation { direction, offset, pieces } = *operation;
                self.held.push(Held { id, direction, offset, pieces });
                return Ok(());
            }
            Some(Fault::Short) => {
                let pieces = cut(operation.pieces, 512);
                self.short.insert(id, pieces);
                let operation = Operation { pieces: &self.short[&id], ..*operation };
                // SAFETY: the pieces are kept until the operation has ended.
                return unsafe { self.queue.push(id, &operation) };
            }
            Some(Fault::Flip) => drop(self.flips.insert(id, operation.pieces.to_vec())),
            None => {}
        }
        // SAFETY: the caller keeps the contract of this function.
        unsafe { self.queue.push(id, operation) }
    }

    fn wait(&mut self, timeout: Duration, completed: &mut Completed<'_>) -> io::Result<()> {
        if self.faults.released() {
            for Held { id, direction, offset, pieces } in self.held.drain(..) {
                // SAFETY: the store keeps the pieces of an operation alive until it has ended.
                let operation = Operation { direction, offset, pieces: unsafe { &*pieces } };
                // SAFETY: as for the pieces.
                unsafe { self.queue.push(id, &operation)? };
            }
        }
        let timeout = if self.ended.is_empty() { timeout } else { Duration::ZERO };
        for (id, result) in self.ended.drain(..) {
            completed(id, result);
        }
        let (flips, short) = (&mut self.flips, &mut self.short);
        self.queue.wait(timeout, &mut |id, result| {
            flips.remove(&id).inspect(|pieces| flip(pieces));
            short.remove(&id);
            completed(id, result);
        })
    }
}
