//! The setting `mapped`: the file is mapped, without padding, and its page cache is an exact LRU of pages. The
//! pages that it evicts are dropped after each step.

use std::fs::{self, File};
use std::hint::black_box;
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::time::Instant;

use anyhow::{Context, Result};
use memmap2::{Advice, Mmap, UncheckedAdvice};
use rustix::fs::{Advice as FileAdvice, fadvise};
use rustix::param::page_size;

use super::rows::{Records, Setting, Step, sorted};
use crate::baseline::ExactLru;
use crate::stats::us_since;

/// A mapped file of records.
pub struct Mapped {
    file: File,
    map: Mmap,
    /// The pages that may stay in the page cache.
    cache: ExactLru,
    memory_bytes: usize,
    records: Records,
    page: usize,
    /// For each page of the file whether it is in the page cache; `mincore` writes it.
    cached: Vec<u8>,
}

impl Mapped {
    /// Maps a file of `records` without padding, which nobody else writes or truncates, with a page cache of
    /// `memory_bytes` bytes.
    pub fn new(file: File, records: Records, memory_bytes: usize) -> Result<Self> {
        let page = page_size();
        // SAFETY: the caller wrote this file, which has no name, and has given it away, so nobody writes or
        // truncates it.
        let map = unsafe { Mmap::map(&file) }.context("mapping the file of rows")?;
        map.advise(Advice::Random).context("advising that reads are random")?;
        let cached = vec![0; map.len().div_ceil(page)];
        let cache = ExactLru::new((memory_bytes / page).max(1))?;
        Ok(Self { file, map, cache, memory_bytes, records, page, cached })
    }

    /// Returns the pages of the records of `ids`, as runs in ascending order.
    fn pages(&self, ids: &[i32]) -> Vec<Range<usize>> {
        let bytes = self.records.stride;
        let mut runs: Vec<Range<usize>> = Vec::with_capacity(ids.len());
        for id in sorted(ids) {
            let (first, end) = (id * bytes / self.page, (id * bytes + bytes).div_ceil(self.page));
            match runs.last_mut() {
                Some(last) if first <= last.end => last.end = last.end.max(end),
                _ => runs.push(first..end),
            }
        }
        runs
    }

    fn wrong_rows(&self, ids: &[i32]) -> usize {
        let stride = self.records.stride;
        let wrong = |id| self.records.wrong_rows(id, &self.map[id * stride..][..stride]);
        sorted(ids).into_iter().map(wrong).sum()
    }

    /// Counts the runs of neighbouring pages that are not in the page cache.
    fn missing(&mut self, runs: &[Range<usize>]) -> Result<usize> {
        let (start, bytes) = (self.map.as_ptr().cast_mut().cast(), self.map.len());
        // SAFETY: the range is the map, and `cached` has a byte for each of its pages.
        let code = unsafe { libc::mincore(start, bytes, self.cached.as_mut_ptr()) };
        if code != 0 {
            return Err(io::Error::last_os_error()).context("asking which pages are cached");
        }
        let is_missing = |page: usize| self.cached[page] & 1 == 0;
        let starts = |run: &Range<usize>| {
            let first =
                |&page: &usize| is_missing(page) && (page == run.start || !is_missing(page - 1));
            run.clone().filter(first).count()
        };
        Ok(runs.iter().map(starts).sum())
    }

    /// Drops a page from the page cache.
    fn drop_page(&self, page: usize) -> Result<()> {
        let (start, bytes) = (page * self.page, self.page.min(self.map.len() - page * self.page));
        // SAFETY: a page of a file that nobody writes has the same bytes when it is read again.
        unsafe { self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, bytes)? };
        let length = NonZeroU64::new(self.page as u64);
        Ok(fadvise(&self.file, start as u64, length, FileAdvice::DontNeed)?)
    }
}

impl Setting for Mapped {
    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn step(&mut self, ids: &[i32]) -> Result<Step> {
        let runs = self.pages(ids);
        let runs_to_read = self.missing(&runs)?;
        let before = ReadCounters::now()?;
        let start = Instant::now();
        // The kernel reads the pages ahead, in as few calls as it takes.
        for run in &runs {
            let (start, bytes) = (run.start * self.page, run.len() * self.page);
            let bytes = bytes.min(self.map.len() - start);
            self.map.advise_range(Advice::WillNeed, start, bytes)?;
        }
        let mut sum = 0u8;
        for page in runs.iter().cloned().flatten() {
            // SAFETY: the pages are inside of the map. A volatile read is not left out.
            sum ^= unsafe { self.map.as_ptr().add(page * self.page).read_volatile() };
        }
        let us = us_since(start);
        black_box(sum);
        let after = ReadCounters::now()?;
        let bytes = after.read_bytes - before.read_bytes;
        // The advice did not bring a page that takes a fault of its own.
        let reads = runs_to_read + (after.faults - before.faults);
        let wrong_rows = self.wrong_rows(ids);
        let used: Vec<i32> = runs.into_iter().flatten().map(|page| page as i32).collect();
        let mut evicted = Vec::new();
        self.cache.select(&used, |_, old| evicted.extend(old));
        evicted.into_iter().try_for_each(|page| self.drop_page(page as usize))?;
        Ok(Step { us, reads, bytes, wrong_rows })
    }
}

/// What the kernel has counted for this process.
struct ReadCounters {
    /// Bytes that it read from disks.
    read_bytes: usize,
    /// Page faults that waited for a disk.
    faults: usize,
}

impl ReadCounters {
    fn now() -> Result<Self> {
        let io = fs::read_to_string("/proc/self/io").context("reading /proc/self/io")?;
        let line = io.lines().find_map(|line| line.strip_prefix("read_bytes: "));
        let read_bytes = line.and_then(|n| n.parse().ok());
        // The faults are the tenth field behind the name, which ends at the last parenthesis.
        let stat = fs::read_to_string("/proc/self/stat").context("reading /proc/self/stat")?;
        let fields = stat.rsplit_once(')').map(|(_, fields)| fields);
        let faults = fields.and_then(|fields| fields.split_whitespace().nth(9)?.parse().ok());
        let all = read_bytes.zip(faults).map(|(read_bytes, faults)| Self { read_bytes, faults });
        all.context("/proc/self/io or /proc/self/stat lacks a counter")
    }
}
