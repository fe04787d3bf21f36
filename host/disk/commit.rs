//! The record of which rows of a kept file are valid.
//!
//! A bit per row is in *pages*, and a *root* has the number of the last commit. Both have a checksum and
//! two places in the file. A commit writes each page that changed to the place that the page does not have,
//! makes it durable together with the rows, and then writes the root to the place that the last root does not
//! have. So until the new root is whole and durable, the old one counts, with its pages: those with a
//! larger number than the root do not count.

use std::ops::Range;

use super::aligned::{ALIGNMENT, Aligned};
use super::bits::Bits;
use super::checksum;
use super::flight::Failure;
use super::info::Counters;
use super::io::Direction;
use super::records::Records;
use crate::{Error, Result, invalid, reserve};

const WHAT: &str = "bits of valid rows";
/// Words before the bits of a page: checksum, commit, index of the page, and zeros.
const HEAD: usize = 8;
/// Words of bits in a page.
const WORDS: usize = 504;
/// What stands in place of a page's index in a root.
const ROOT: u64 = u64::MAX;

/// Where the commits of a file are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    /// Bytes of a page or a root in the file.
    unit: u64,
    /// Offset of the first root.
    start: u64,
    pages: usize,
}

impl Places {
    /// Returns the places behind a header of `header` bytes, for this number of rows.
    pub fn new(header: usize, block: usize, rows: usize) -> Self {
        let unit = block.max(ALIGNMENT) as u64;
        let pages = Bits::words_for(rows).div_ceil(WORDS);
        Self { unit, start: (header as u64).next_multiple_of(unit), pages }
    }

    /// Returns the offset of the first record.
    pub fn end(&self) -> u64 {
        self.page(self.pages, 0)
    }

    fn root(&self, slot: u64) -> u64 {
        self.start + slot * self.unit
    }

    fn page(&self, page: usize, slot: u64) -> u64 {
        self.start + (2 + 2 * page as u64 + slot) * self.unit
    }
}

#[derive(Clone)]
struct Page {
    /// The place of the last committed contents.
    slot: u64,
    /// Whether the next commit must write the page.
    changed: bool,
}

/// The commits of a kept file.
pub(super) struct Commits {
    places: Places,
    /// Number of the last commit.
    last: u64,
    pages: Vec<Page>,
    /// The bits that the next commit writes.
    bits: Vec<u64>,
    block: Aligned,
    /// Whether a commit may or may not be in the file, so that another one could damage it.
    broken: bool,
}

impl Commits {
    fn new(places: Places) -> Result<Self> {
        let page = Page { slot: 0, changed: false };
        Ok(Self {
            places,
            last: 0,
            pages: reserve::filled(WHAT, places.pages, page)?,
            bits: reserve::filled(WHAT, places.pages * WORDS, 0)?,
            block: Aligned::zeroed(WHAT, places.unit as usize)?,
            broken: false,
        })
    }

    /// Makes the first commit of a new file, in which no row is valid.
    pub fn create(places: Places, records: &Records) -> Result<Self> {
        let mut commits = Self::new(places)?;
        commits.write_root(records, 1)?;
        commits.last = 1;
        Ok(commits)
    }

    /// Reads the last commit, and sets the bits of its rows.
    pub fn open(places: Places, records: &Records) -> Result<Self> {
        let mut commits = Self::new(places)?;
        for slot in 0..2 {
            let root = commits.read(records, places.root(slot), ROOT)?;
            commits.last = commits.last.max(root.unwrap_or(0));
        }
        if commits.last == 0 {
            return Err(invalid!("commit of the pool file" is "damaged", but
                "a kept file has a whole one"; "make the pool anew"));
        }
        for index in 0..places.pages {
            let mut newest = 0;
            for slot in 0..2 {
                let commit = commits.read(records, places.page(index, slot), index as u64)?;
                let page = &mut commits.pages[index];
                match commit {
                    // It is of a commit that was not finished. The next one has the same number, so that it must
                    // write this page anew.
                    Some(commit) if commit > commits.last => page.changed = true,
                    Some(commit) if commit > newest => {
                        (newest, page.slot) = (commit, slot);
                        let from = commits.block.bytes()[HEAD * 8..].as_chunks::<8>().0;
                        let bits = &mut commits.bits[index * WORDS..][..WORDS];
                        bits.iter_mut()
                            .zip(from)
                            .for_each(|(to, &bytes)| *to = u64::from_le_bytes(bytes));
                    }
                    _ => {}
                }
            }
        }
        let words = commits.bits.iter().enumerate();
        words.for_each(|(at, &word)| records.written.set_word(at, word));
        Ok(commits)
    }

    /// Returns whether the last commit has this row.
    pub fn has(&self, row: usize) -> bool {
        self.bits[row / 64] >> (row % 64) & 1 == 1
    }

    /// Takes rows out of the next commit.
    pub fn take_out(&mut self, row: usize) {
        self.bits[row / 64] &= !(1 << (row % 64));
        self.pages[row / 64 / WORDS].changed = true;
    }

    /// Puts all rows that are written into the next commit.
    pub fn put_all(&mut self, written: &Bits) {
        for (at, word) in self.bits.iter_mut().enumerate() {
            let new = written.word(at);
            if *word != new {
                *word = new;
                self.pages[at / WORDS].changed = true;
            }
        }
    }

    /// Makes all completed writes durable, and commits.
    ///
    /// # Errors
    /// If a write fails: the last commit stays and the call can be repeated. If `fdatasync` or the write of the
    /// root fails, it is not known which commit the file has, and later calls fail.
    pub fn commit(&mut self, records: &Records) -> Result<()> {
        if self.broken {
            return Err(Error::os(
                "fdatasync",
                format!("{}, at an earlier commit", records.path.display()),
                rustix::io::Errno::IO,
                "open the file again: the rows of the last whole commit are valid",
            ));
        }
        let next = self.last + 1;
        for index in 0..self.pages.len() {
            if self.pages[index].changed {
                let place = self.places.page(index, 1 - self.pages[index].slot);
                self.write(records, place, next, index as u64, index * WORDS..(index + 1) * WORDS)?;
            }
        }
        // If this fails, the kernel may have dropped bytes that it will not report again.
        self.broken = true;
        sync(records)?;
        if self.pages.iter().any(|page| page.changed) {
            self.write_root(records, next)?;
            self.last = next;
            for page in self.pages.iter_mut().filter(|page| page.changed) {
                *page = Page { slot: 1 - page.slot, changed: false };
            }
        }
        self.broken = false;
        Counters::add(&records.counters.commits, 1);
        Ok(())
    }

    fn write_root(&mut self, records: &Records, commit: u64) -> Result<()> {
        self.write(records, self.places.root(commit % 2), commit, ROOT, 0..0)?;
        sync(records)
    }

    /// Writes a page or a root.
    fn write(
        &mut self,
        records: &Records,
        place: u64,
        commit: u64,
        index: u64,
        bits: Range<usize>,
    ) -> Result<()> {
        let bytes = self.block.bytes_mut();
        bytes.fill(0);
        let words = bytes.as_chunks_mut::<8>().0;
        (words[1], words[2]) = (commit.to_le_bytes(), index.to_le_bytes());
        let places = words[HEAD..].iter_mut();
        places.zip(&self.bits[bits]).for_each(|(place, word)| *place = word.to_le_bytes());
        let sum = checksum::of_block(records.number, &bytes[8..]);
        bytes[..8].copy_from_slice(&sum.to_le_bytes());
        let written = records.write(place, bytes);
        written.map_err(|failure| of_commit(records, failure))
    }

    /// Reads a page or a root, and returns the number of its commit; `None` if it is not whole.
    fn read(&mut self, records: &Records, place: u64, index: u64) -> Result<Option<u64>> {
        let bytes = self.block.bytes_mut();
        let read = records.read(place, bytes);
        read.map_err(|failure| of_commit(records, failure))?;
        let words = bytes.as_chunks::<8>().0;
        let whole = u64::from_le_bytes(words[0]) == checksum::of_block(records.number, &bytes[8..])
            && u64::from_le_bytes(words[2]) == index;
        Ok(whole.then(|| u64::from_le_bytes(words[1])))
    }
}

fn of_commit(records: &Records, failure: Failure) -> Error {
    let what = format!("a commit at byte {} of {}", failure.offset, records.path.display());
    let (call, remedy) = match failure.direction {
        Direction::Read => ("read", "check the device, or make the pool anew"),
        Direction::Write => ("write", "free space, and repeat the call or open the file again"),
    };
    Error::os(call, what, failure.error, remedy)
}

/// Makes all completed writes durable.
pub(super) fn sync(records: &Records) -> Result<()> {
    records.disk.sync().map_err(|error| {
        let remedy = "open the file again: the rows of the last whole commit are valid";
        Error::os("fdatasync", records.path.display().to_string(), error, remedy)
    })
}
