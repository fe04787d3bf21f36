//! The rows of a file, and what every setting of `bench disk` does with them in a step.

use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::{Context, Result};
use avsg_testkit::content::{check_row, fill_row};

use super::file::{Folder, drop_from_page_cache};

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
    /// Writes all records to a file without a name, of which the page cache then has nothing.
    pub fn write(&self, folder: &Folder) -> Result<File> {
        let file = folder.unnamed_file()?;
        let mut out = BufWriter::with_capacity(1 << 20, &file);
        let mut record = vec![0; self.stride];
        for id in 0..self.count as i32 {
            for (layer, row) in (0..self.layers).zip(record.chunks_exact_mut(self.row_bytes)) {
                fill_row(id, layer as u32, row);
            }
            let bytes = self.count * self.stride;
            let context =
                || format!("writing {bytes} bytes to a file in {}", folder.path().display());
            out.write_all(&record).with_context(context)?;
        }
        out.flush()?;
        drop(out);
        drop_from_page_cache(&file)?;
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
mod tests {
    use super::*;

    #[test]
    fn a_wrong_byte_is_one_wrong_row() {
        let records = Records { count: 9, row_bytes: 24, layers: 2, stride: 64 };
        let mut record = vec![0; 64];
        fill_row(3, 0, &mut record[..24]);
        fill_row(3, 1, &mut record[24..48]);
        assert_eq!(records.wrong_rows(3, &record), 0);
        assert_eq!(records.wrong_rows(4, &record), 2);
        record[30] ^= 1;
        assert_eq!(records.wrong_rows(3, &record), 1);
    }
}
