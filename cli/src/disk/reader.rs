//! Reads of a file, many of them in flight at once.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, bail, ensure};
use io_uring::{IoUring, opcode, types};
use memmap2::MmapMut;

/// One read.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The first byte in the file.
    pub offset: u64,
    /// The first byte in the reader's memory.
    pub to: usize,
    /// Its length.
    pub bytes: usize,
}

/// A queue of reads, and the memory that they read into, which starts on a page.
pub struct Reader {
    /// The queue of the kernel; `None` if it refuses io_uring, and reads then follow each other.
    ring: Option<IoUring>,
    depth: usize,
    memory: MmapMut,
}

impl Reader {
    /// Creates a queue for `depth` reads in flight, and `bytes` bytes of memory.
    pub fn new(depth: usize, bytes: usize) -> Result<Self> {
        let memory = MmapMut::map_anon(bytes).context("mapping memory for reads")?;
        let ring = IoUring::new(depth as u32).ok();
        Ok(Self { ring, depth, memory })
    }

    /// Returns the call that reads.
    pub fn engine(&self) -> &'static str {
        if self.ring.is_some() { "io_uring" } else { "pread" }
    }

    /// Returns what the reads have brought.
    pub fn memory(&self) -> &[u8] {
        &self.memory
    }

    /// Performs all of `reads`, at most `depth` of them at a time, and waits for them.
    ///
    /// # Errors
    /// If a read fails, is short, or lies outside of the memory.
    pub fn read(&mut self, file: &File, reads: &[Read]) -> Result<()> {
        let bytes = self.memory.len();
        let fits = |read: &Read| read.to.checked_add(read.bytes).is_some_and(|end| end <= bytes);
        ensure!(reads.iter().all(fits), "a read ends after the {bytes} bytes of memory");
        let Some(ring) = &mut self.ring else {
            for read in reads {
                let into = &mut self.memory[read.to..][..read.bytes];
                let read = file.read_exact_at(into, read.offset);
                read.context("reading the file")?;
            }
            return Ok(());
        };
        let (mut next, mut in_flight, mut fault) = (0, 0, None);
        while in_flight > 0 || (next < reads.len() && fault.is_none()) {
            if fault.is_none() {
                let count = (reads.len() - next).min(self.depth - in_flight);
                push(ring, file, &mut self.memory, &reads[next..next + count], next);
                (next, in_flight) = (next + count, in_flight + count);
            }
            if let Err(error) = submit_and_wait(ring) {
                // Reads in flight still write this memory, so it is never unmapped.
                let memory = MmapMut::map_anon(1).context("mapping memory for reads")?;
                std::mem::forget(std::mem::replace(&mut self.memory, memory));
                return Err(error).context("waiting for reads by io_uring");
            }
            for entry in ring.completion() {
                in_flight -= 1;
                let read = reads[entry.user_data() as usize];
                if entry.result() != read.bytes as i32 {
                    fault.get_or_insert((read, entry.result()));
                }
            }
        }
        let Some((Read { offset, bytes, .. }, result)) = fault else { return Ok(()) };
        if result >= 0 {
            bail!("a read of {bytes} bytes at {offset} found {result}");
        }
        let error = io::Error::from_raw_os_error(-result);
        Err(error).with_context(|| format!("reading {bytes} bytes at {offset}"))
    }
}

/// Queues reads, which are numbered from `first` and lie in the memory. The queue has room for them.
fn push(ring: &mut IoUring, file: &File, memory: &mut MmapMut, reads: &[Read], first: usize) {
    let (fd, start) = (types::Fd(file.as_raw_fd()), memory.as_mut_ptr());
    let mut queue = ring.submission();
    for (number, read) in (first as u64..).zip(reads) {
        let entry = opcode::Read::new(fd, start.wrapping_add(read.to), read.bytes as u32);
        let entry = entry.offset(read.offset).build().user_data(number);
        // SAFETY: `Reader::read` has checked that the range lies in the memory, borrows the file, and
        // returns when no read is in flight; if it cannot wait, the memory is never unmapped.
        let pushed = unsafe { queue.push(&entry) };
        pushed.expect("the queue has room for as many reads as may be in flight");
    }
}

/// Submits what is queued and waits for one read at least, unless a signal comes.
fn submit_and_wait(ring: &IoUring) -> io::Result<()> {
    use io::ErrorKind::{Interrupted, ResourceBusy, WouldBlock};
    match ring.submit_and_wait(1) {
        Err(error) if ![Interrupted, ResourceBusy, WouldBlock].contains(&error.kind()) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Returns a reader for a file of 64 KiB in which byte n is n / 256, with and without io_uring.
    fn readers() -> (File, [Reader; 2]) {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..1 << 16).map(|n: u32| (n / 256) as u8).collect();
        file.write_all(&bytes).unwrap();
        let mut plain = Reader::new(8, 4096).unwrap();
        plain.ring = None;
        (file, [Reader::new(8, 4096).unwrap(), plain])
    }

    #[test]
    fn more_reads_than_the_depth_bring_their_bytes() {
        let (file, readers) = readers();
        for mut reader in readers {
            let read = |n: usize| Read { offset: 256 * (255 - n as u64), to: 16 * n, bytes: 16 };
            let reads: Vec<Read> = (0..256).map(read).collect();
            reader.read(&file, &reads).unwrap();
            let all = reader.memory().chunks_exact(16).enumerate();
            all.for_each(|(n, chunk)| assert_eq!(chunk, [(255 - n) as u8; 16]));
        }
    }

    #[test]
    fn short_reads_and_reads_outside_of_the_memory_are_errors() {
        let (file, readers) = readers();
        for mut reader in readers {
            let short = Read { offset: (1 << 16) - 8, to: 0, bytes: 16 };
            assert!(reader.read(&file, &[short]).is_err());
            let outside = Read { offset: 0, to: 4090, bytes: 16 };
            let fault = reader.read(&file, &[outside]).unwrap_err();
            assert!(fault.to_string().contains("4096 bytes"), "{fault}");
        }
    }
}
