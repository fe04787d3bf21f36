//! The rows of a file, and what every setting of `bench disk` does with them in a step.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::content::{check_row, fill_row};
use anyhow::{Context, Result};

use rustix::fs::{Advice, fadvise};

/// What a step did.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The time in microseconds.
    pub us: f64,
    /// Reads of the disk; what lies side by side in the file is one read.
    pub reads: usize,
    /// Bytes that were read.
    pub bytes: usize,
    /// Rows whose bytes are not those of their ids.
    pub wrong_rows: usize,
}

/// A way to bring the selected rows from the disk into memory.
pub trait Setting {
    /// Returns the bytes of the memory that has rows, and of what finds them there.
    fn memory_bytes(&self) -> usize;

    /// Brings the rows of `ids` into memory, and then, which is not timed, compares every byte of them.
    fn step(&mut self, ids: &[i32]) -> Result<Step>;
}

/// A file with a record for each id: the rows of all layers side by side.
#[derive(Clone, Copy, Debug)]
pub struct Records {
    /// The number of records.
    pub count: usize,
    /// Bytes of the row of one layer.
    pub row_bytes: usize,
    /// Rows of a record, one for each layer.
    pub layers: usize,
    /// Bytes from one record to the next.
    pub stride: usize,
}

impl Records {
    /// Writes all records to a file, of which the page cache then has nothing. It has no name, and is gone when
    /// nobody has it open any more, also after a signal.
    pub fn write(&self, folder: &Path) -> Result<File> {
        let context = || format!("creating a file in {}", folder.display());
        let file = tempfile::tempfile_in(folder).with_context(context)?;
        let mut out = BufWriter::with_capacity(1 << 20, &file);
        let mut record = vec![0; self.stride];
        for id in 0..self.count as i32 {
            for (layer, row) in (0..self.layers).zip(record.chunks_exact_mut(self.row_bytes)) {
                fill_row(id, layer as u32, row);
            }
            let bytes = self.count * self.stride;
            let context = || format!("writing {bytes} bytes to a file in {}", folder.display());
            out.write_all(&record).with_context(context)?;
        }
        out.flush()?;
        drop(out);
        file.sync_all().context("writing a file to the disk")?;
        let dropped = fadvise(&file, 0, None, Advice::DontNeed);
        dropped.context("dropping a file from the page cache")?;
        Ok(file)
    }

    /// Returns how many rows of a record are wrong.
    pub fn wrong_rows(&self, id: usize, record: &[u8]) -> usize {
        let rows = (0..self.layers).zip(record.chunks_exact(self.row_bytes));
        rows.filter(|&(layer, row)| !check_row(id as i32, layer as u32, row)).count()
    }
}

/// Returns the ids that are no padding, in ascending order.
pub fn sorted(ids: &[i32]) -> Vec<usize> {
    let mut ids: Vec<usize> = ids.iter().filter_map(|&id| usize::try_from(id).ok()).collect();
    ids.sort_unstable();
    ids
}

#[cfg(test)]
mod tests;
