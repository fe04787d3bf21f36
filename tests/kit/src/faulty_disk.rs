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
        self.state().rule = Some(Rule { fault, direction, bytes: 0..u64::MAX, spared, times: 1 });
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

    /// Returns the disk of these faults, for `HostPool::in_file`.
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
        let touched = start < rule.bytes.end && rule.bytes.start < end;
        if rule.times == 0 || rule.direction != operation.direction || !touched {
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

#[derive(Clone)]
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

/// Returns the address of a byte of pieces.
fn address(pieces: &[Piece], byte: usize) -> *mut u8 {
    let bytes = |&Piece { at, len }: &Piece| (0..len).map(move |n| at.wrapping_add(n));
    pieces.iter().flat_map(bytes).nth(byte).expect("the pieces have this byte")
}

impl FaultyDisk {
    /// Does an operation that has this fault.
    ///
    /// # Safety
    /// As for [`Disk::run`].
    unsafe fn run_with(
        &self,
        fault: Option<(Fault, usize)>,
        operation: &Operation<'_>,
    ) -> io::Result<usize> {
        // SAFETY: the caller guarantees it for all of the pieces.
        let run = |operation: &Operation<'_>| unsafe { self.disk.run(operation) };
        match fault {
            Some((Fault::Errno(errno), _)) => Err(io::Error::from_raw_os_error(errno)),
            Some((Fault::Short(bytes), _)) => {
                run(&Operation { pieces: &shortened(operation.pieces, bytes), ..*operation })
            }
            Some((Fault::Flip, byte)) => {
                let moved = run(operation);
                // SAFETY: the read has ended, and the store has not been told yet.
                unsafe { *address(operation.pieces, byte) ^= 4 };
                moved
            }
            Some((Fault::Slow, _)) | None => run(operation),
        }
    }
}

impl Disk for FaultyDisk {
    unsafe fn run(&self, operation: &Operation<'_>) -> io::Result<usize> {
        // SAFETY: the caller guarantees it.
        unsafe { self.run_with(self.faults.of(operation), operation) }
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

    fn queue(&self, _: u32) -> io::Result<Box<dyn Queue>> {
        if self.faults.state().no_queue {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Box::new(FaultyQueue { disk: self.clone(), ended: vec![], held: vec![] }))
    }
}

/// An operation that waits for the end of [`Fault::Slow`].
type Held = Box<dyn FnOnce() -> (u32, io::Result<usize>) + Send + Sync>;

/// A queue that does each operation in the calling thread, and whose operations complete in the reverse order.
struct FaultyQueue {
    disk: FaultyDisk,
    ended: Vec<(u32, io::Result<usize>)>,
    held: Vec<Held>,
}

impl Queue for FaultyQueue {
    unsafe fn push(&mut self, id: u32, operation: &Operation<'_>) -> io::Result<()> {
        let Operation { direction, offset, pieces } = *operation;
        let fault = self.disk.faults.of(operation);
        if let Some((Fault::Slow, _)) = fault {
            let (disk, pieces) = (self.disk.clone(), pieces.to_vec());
            self.held.push(Box::new(move || {
                let operation = Operation { direction, offset, pieces: &pieces };
                // SAFETY: the caller guarantees it until the operation completes.
                (id, unsafe { disk.run_with(None, &operation) })
            }));
        } else {
            // SAFETY: the caller guarantees it for all of the pieces.
            self.ended.push((id, unsafe { self.disk.run_with(fault, operation) }));
        }
        Ok(())
    }

    fn wait(&mut self, timeout: Duration, completed: &mut Completed<'_>) -> io::Result<()> {
        let slow = matches!(self.disk.faults.state().rule, Some(Rule { fault: Fault::Slow, .. }));
        if !slow {
            self.ended.extend(self.held.drain(..).map(|run| run()));
        }
        if self.ended.is_empty() {
            thread::sleep(timeout.min(Duration::from_millis(1)));
        }
        while let Some((id, result)) = self.ended.pop() {
            completed(id, result);
        }
        Ok(())
    }
}
