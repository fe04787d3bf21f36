//! Reads of records of a pool's file, as Stage Two reads them.

use std::mem;

use anyhow::{Context, Result};
use avsg::disk::Reader;
use avsg::pool::HostPool;
use memmap2::MmapMut;

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
