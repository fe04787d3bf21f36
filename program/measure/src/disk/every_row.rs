//! The setting `every row`: each selected row is read from AVSG's file at each step, all of them in flight at once.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use avsg::disk::{Reader, Store};
use avsg::pool::HostPool;
use memmap2::MmapMut;

use super::rows::{Setting, Step, sorted};
use crate::content::check_row;
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

/// Reads lists of records of the first indexer, with the reader of the library, into memory of its own.
pub struct RecordReader {
    reader: Reader,
    bytes: usize,
    memory: MmapMut,
}

impl RecordReader {
    /// Makes a reader for lists of up to `most` records of a pool in a file.
    pub fn new(pool: &HostPool, most: usize) -> Result<Self> {
        let store = pool.store().context("the pool has no file")?;
        let bytes = store.layout().record_bytes(0);
        let memory = MmapMut::map_anon(most * bytes).context("mapping memory for reads")?;
        Ok(Self { reader: Reader::new(store, most)?, bytes, memory })
    }

    /// Returns the bytes of the memory.
    pub fn memory_bytes(&self) -> usize {
        self.memory.len()
    }

    /// Returns the records of the last list.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.memory.chunks_exact(self.bytes)
    }

    /// Reads the records of some rows, all of them in flight as far as the queue of the kernel is deep.
    pub fn read(&mut self, rows: impl Iterator<Item = usize>) -> Result<()> {
        for (row, to) in rows.zip(self.memory.chunks_exact_mut(self.bytes)) {
            // SAFETY: each record has its own part of the memory, which is not used until the list is read, and
            // which stays mapped below if reads are under way then.
            unsafe { self.reader.push(0, row, to.as_mut_ptr()) }?;
        }
        let read = self.reader.run(&mut |_| {});
        if self.reader.under_way() > 0 {
            let none = MmapMut::map_anon(1).context("mapping memory for reads")?;
            mem::forget(mem::replace(&mut self.memory, none));
        }
        Ok(read?)
    }
}
