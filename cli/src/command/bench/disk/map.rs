//! The process that maps a file of rows for the setting `mapped`, and reads them through the page cache.
//!
//! It is a process of its own, so that a control group can limit its page cache and nothing else. It gets a
//! step as a line of ids in JSON, and answers with a line. When its standard input ends, because its
//! parent ended in any way, it removes its control group and ends; a terminal's signals do not reach it.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use memmap2::{Advice, Mmap, UncheckedAdvice};
use rustix::fs::{Advice as FileAdvice, fadvise};
use rustix::param::page_size;
use serde::Serialize;

use super::page_cache::{Limit, LimitBy};
use super::rows::{Records, Step, sorted};
use crate::command::bench::stats::us_since;

#[derive(Args, Debug)]
pub struct MapOptions {
    /// The file of records without padding
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Bytes of the page cache
    #[arg(long, value_name = "BYTES")]
    memory: usize,
    /// How the page cache is limited
    #[arg(long, value_enum, value_name = "HOW")]
    page_cache: LimitBy,
    /// Bytes of a row
    #[arg(long, value_name = "BYTES")]
    row_bytes: usize,
    /// Layers of a record
    #[arg(long, value_name = "N")]
    layers: usize,
}

/// The first line of the process: how its page cache is limited and the folder of its control group, or why
/// the page cache cannot be limited.
pub type Ready = Result<(String, Option<PathBuf>), String>;

/// Runs steps until standard input ends.
pub fn run(options: &MapOptions) -> Result<()> {
    let mut rows = MappedRows::open(options);
    let ready: Ready = match &rows {
        Ok(rows) => Ok((rows.limit.describe(), rows.limit.folder())),
        Err(fault) => Err(format!("{fault:#}")),
    };
    say(&ready)?;
    if let Ok(rows) = &mut rows {
        for line in io::stdin().lock().lines() {
            say(&rows.step(&serde_json::from_str::<Vec<i32>>(&line?)?)?)?;
        }
    }
    Ok(())
}

/// Writes a value as a line of JSON.
fn say(value: &impl Serialize) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(value)?)?;
    Ok(out.flush()?)
}

/// A mapped file of records, and the limit of its page cache.
struct MappedRows {
    file: File,
    map: Mmap,
    limit: Limit,
    records: Records,
    page: usize,
    /// For each page of the file whether it is in the page cache; `mincore` writes it.
    cached: Vec<u8>,
}

impl MappedRows {
    fn open(options: &MapOptions) -> Result<Self> {
        let file = File::open(&options.file).context("opening the file of rows")?;
        let page = page_size();
        let limit = Limit::new(options.page_cache, options.memory, page)?;
        // SAFETY: nobody writes or truncates the file while this process runs: only its parent has it,
        // and it wrote the file before it started this process.
        let map = unsafe { Mmap::map(&file) }.context("mapping the file of rows")?;
        map.advise(Advice::Random).context("advising that reads are random")?;
        let cached = vec![0; map.len().div_ceil(page)];
        let &MapOptions { row_bytes, layers, .. } = options;
        let stride = row_bytes * layers;
        let records = Records { count: map.len() / stride, row_bytes, layers, stride };
        Ok(Self { file, map, limit, records, page, cached })
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

    /// Brings the rows of `ids` into the page cache and touches every page of them.
    fn step(&mut self, ids: &[i32]) -> Result<Step> {
        let runs = self.pages(ids);
        let runs_to_read = self.missing(&runs)?;
        let before = Counters::now()?;
        let start = Instant::now();
        self.want(&runs)?;
        let mut sum = 0u8;
        for page in runs.iter().cloned().flatten() {
            // SAFETY: the pages are inside of the map. A volatile read is not left out.
            sum ^= unsafe { self.map.as_ptr().add(page * self.page).read_volatile() };
        }
        let us = us_since(start);
        black_box(sum);
        let after = Counters::now()?;
        let bytes = after.read_bytes - before.read_bytes;
        // The advice did not bring a page that takes a fault of its own.
        let reads = runs_to_read + (after.faults - before.faults);
        let wrong_rows = self.wrong_rows(ids);
        for page in self.limit.use_pages(runs.into_iter().flatten()) {
            self.drop_page(page)?;
        }
        Ok(Step { us, reads, bytes, wrong_rows })
    }

    /// Advises the kernel to read the pages ahead, all of them in as few calls as it takes.
    fn want(&self, runs: &[Range<usize>]) -> Result<()> {
        for run in runs {
            let (start, bytes) = (run.start * self.page, run.len() * self.page);
            let bytes = bytes.min(self.map.len() - start);
            self.map.advise_range(Advice::WillNeed, start, bytes)?;
        }
        Ok(())
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

/// What the kernel has counted for this process.
struct Counters {
    /// Bytes that it read from disks.
    read_bytes: usize,
    /// Page faults that waited for a disk.
    faults: usize,
}

impl Counters {
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
