//! The setting `every row`: each selected row is read from AVSG's file at each step, all of them in flight at once.

use std::sync::Arc;
use std::time::Instant;

use crate::content::check_row;
use anyhow::{Context, Result};
use avsg::disk::Store;
use avsg::pool::HostPool;

use super::records::RecordReader;
use super::rows::{Setting, Step, sorted};
use crate::stats::us_since;

/// Reads every selected row, as without a buffer.
pub struct EveryRow {
    store: Arc<Store>,
    reader: RecordReader,
}

impl EveryRow {
    /// Makes room for `k` records of a pool in a file.
    pub fn new(pool: &HostPool, k: usize) -> Result<Self> {
        let store = Arc::clone(pool.store().context("the pool has no file")?);
        Ok(Self { store, reader: RecordReader::new(pool, k)? })
    }
}

impl Setting for EveryRow {
    fn memory_bytes(&self) -> usize {
        self.reader.memory_bytes()
    }

    fn step(&mut self, ids: &[i32]) -> Result<Step> {
        let before = self.store.stats();
        let start = Instant::now();
        let ids = sorted(ids);
        self.reader.read(ids.iter().copied())?;
        let us = us_since(start);
        let after = self.store.stats();
        let mut wrong_rows = 0;
        for (record, &id) in self.reader.records().zip(&ids) {
            for layer in 0..self.store.layout().layers() {
                let row = self.store.row_in(record, layer, id);
                wrong_rows +=
                    usize::from(!row.is_ok_and(|row| check_row(id as i32, layer as u32, row)));
            }
        }
        let (reads, bytes) = (after.reads - before.reads, after.read_bytes - before.read_bytes);
        Ok(Step { us, reads: reads as usize, bytes: bytes as usize, wrong_rows })
    }
}
