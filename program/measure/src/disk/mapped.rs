//! The setting `mapped`: the file is mapped, without padding, and its page cache is an exact LRU of pages. The
//! pages that it evicts are dropped after each step.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use memmap2::{Advice, Mmap, UncheckedAdvice};
use rustix::fs::{Advice as FileAdvice, fadvise};
use rustix::param::page_size;

use super::every_row::sorted;
use super::places::FileShape;
use super::setting::{Setting, Step, setting};
use crate::baseline::ExactLru;
use crate::content::{check_row, fill_row};
use crate::stats::us_since;

/// Returns the setting that maps a file of rows in `folder`, with a page cache of `memory_bytes` bytes. The first request
/// selects `k` ids.
pub fn mapped(
    folder: &Path,
    shape: FileShape,
    k: usize,
    memory_bytes: usize,
) -> Result<Setting<'static>> {
    let (file, page) = (write(folder, shape)?, page_size());
    // SAFETY: this file was made here and has no name, so nobody else writes or truncates it.
    let map = unsafe { Mmap::map(&file) }.context("mapping the file of rows")?;
    map.advise(Advice::Random).context("advising that reads are random")?;
    let cache = ExactLru::new((memory_bytes / page).max(1))?;
    let mut mapped = Mapped { file, map, cache, shape, page };
    Ok(setting("mapped", memory_bytes, move |ids| mapped.step(&sorted(&ids[..k]))))
}

/// A mapped file: for each indexer the rows of all of its layers side by side, id by id.
struct Mapped {
    file: File,
    map: Mmap,
    /// The pages that may stay in the page cache.
    cache: ExactLru,
    shape: FileShape,
    page: usize,
}

impl Mapped {
    /// Returns the pages of the records of `ids` in ascending order.
    fn pages(&self, ids: &[usize]) -> Vec<usize> {
        let records = |indexer| ids.iter().map(move |&id| record(&self.shape, indexer, id));
        let of_record =
            |bytes: Range<usize>| bytes.start / self.page..bytes.end.div_ceil(self.page);
        let mut pages: Vec<usize> =
            (0..self.shape.indexers).flat_map(records).flat_map(of_record).collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    fn wrong_rows(&self, ids: &[usize]) -> usize {
        let records = |indexer| ids.iter().map(move |&id| (indexer, id));
        let wrong = |(indexer, id)| {
            let record = &self.map[record(&self.shape, indexer, id)];
            let rows = self.shape.layers_of(indexer).zip(record.chunks_exact(self.shape.row_bytes));
            rows.filter(|&(layer, row)| !check_row(id as i32, layer as u32, row)).count()
        };
        (0..self.shape.indexers).flat_map(records).map(wrong).sum()
    }

    /// Drops a page from the page cache.
    fn drop_page(&self, page: usize) -> Result<()> {
        let (start, bytes) = (page * self.page, self.page.min(self.map.len() - page * self.page));
        // SAFETY: a page of a file that nobody writes has the same bytes when it is read again.
        unsafe { self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, bytes)? };
        let length = NonZeroU64::new(self.page as u64);
        Ok(fadvise(&self.file, start as u64, length, FileAdvice::DontNeed)?)
    }

    fn step(&mut self, ids: &[usize]) -> Result<Step> {
        let pages = self.pages(ids);
        let before = read_bytes()?;
        let start = Instant::now();
        // The kernel reads the pages ahead, in as few calls as it takes.
        for run in pages.chunk_by(|a, b| a + 1 == *b) {
            let (start, bytes) = (run[0] * self.page, run.len() * self.page);
            let bytes = bytes.min(self.map.len() - start);
            self.map.advise_range(Advice::WillNeed, start, bytes)?;
        }
        let mut sum = 0u8;
        for page in &pages {
            // SAFETY: the pages are inside of the map. A volatile read is not left out.
            sum ^= unsafe { self.map.as_ptr().add(page * self.page).read_volatile() };
        }
        let us = us_since(start);
        black_box(sum);
        let bytes = read_bytes()? - before;
        let wrong_rows = self.wrong_rows(ids);
        let used: Vec<i32> = pages.into_iter().map(|page| page as i32).collect();
        let (mut missing, mut evicted) = (Vec::new(), Vec::new());
        self.cache.select(&used, |page, _, old| {
            missing.push(page);
            evicted.extend(old);
        });
        evicted.into_iter().try_for_each(|page| self.drop_page(page as usize))?;
        let operations = missing.chunk_by(|a, b| a + 1 == *b).count();
        Ok(Step { us, operations, bytes, wrong_rows })
    }
}

/// Returns where the rows of an id are in the file.
fn record(shape: &FileShape, indexer: usize, id: usize) -> Range<usize> {
    let layers = shape.layers_of(indexer);
    let start = (layers.start * shape.rows + id * layers.len()) * shape.row_bytes;
    start..start + layers.len() * shape.row_bytes
}

/// Writes all rows to a file, of which the page cache then has nothing. It has no name, and is gone when nobody has it
/// open any more, also after a signal.
fn write(folder: &Path, shape: FileShape) -> Result<File> {
    let context = || format!("writing rows to a file in {}", folder.display());
    let file = tempfile::tempfile_in(folder).with_context(context)?;
    let mut out = BufWriter::with_capacity(1 << 20, &file);
    let mut row = vec![0; shape.row_bytes];
    for indexer in 0..shape.indexers {
        for id in 0..shape.rows as i32 {
            for layer in shape.layers_of(indexer) {
                fill_row(id, layer as u32, &mut row);
                out.write_all(&row).with_context(context)?;
            }
        }
    }
    out.flush().with_context(context)?;
    drop(out);
    file.sync_all().context("writing a file to the disk")?;
    let dropped = fadvise(&file, 0, None, FileAdvice::DontNeed);
    dropped.context("dropping a file from the page cache")?;
    Ok(file)
}

/// Returns the bytes that the kernel has read from disks for this process.
fn read_bytes() -> Result<usize> {
    let io = fs::read_to_string("/proc/self/io").context("reading /proc/self/io")?;
    let bytes = io.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    bytes.and_then(|n| n.parse().ok()).context("/proc/self/io has no read_bytes")
}
