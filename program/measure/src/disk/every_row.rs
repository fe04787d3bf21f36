//! The setting `every row`: each selected row is read from AVSG's file at each step, all of an indexer in flight at once.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use avsg::disk::{Reader, Store};
use avsg::pool::HostPool;
use memmap2::MmapMut;

use super::setting::{Setting, Step, setting};
use crate::content::check_row;
use crate::stats::us_since;

/// Returns the setting that reads every row which the first request selects, as without a buffer.
pub fn every_row(pool: &HostPool, k: usize) -> Result<Setting<'static>> {
    let mut reader = RecordReader::new(pool, k)?;
    let store = Arc::clone(&reader.store);
    Ok(setting("every row", reader.memory.len(), move |ids| {
        let (layout, ids, before) = (store.layout(), sorted(&ids[..k]), store.stats());
        let (mut us, mut wrong_rows) = (0.0, 0);
        for indexer in 0..layout.indexers() {
            let start = Instant::now();
            reader.read(indexer, ids.iter().copied())?;
            us += us_since(start);
            let layers =
                || (0..layout.layers()).filter(|&layer| layout.indexer_of(layer) == indexer);
            for (record, &id) in reader.memory.chunks_exact(reader.bytes).zip(&ids) {
                let right = |&layer: &usize| {
                    let row = store.row_in(record, layer, id);
                    row.is_ok_and(|row| check_row(id as i32, layer as u32, row))
                };
                wrong_rows += layers().filter(|layer| !right(layer)).count();
            }
        }
        Ok(Step::of_file(us, [before, store.stats()], wrong_rows))
    }))
}

/// Returns the ids that are no padding, in ascending order.
pub(super) fn sorted(ids: &[i32]) -> Vec<usize> {
    let mut ids: Vec<usize> = ids.iter().filter_map(|&id| usize::try_from(id).ok()).collect();
    ids.sort_unstable();
    ids
}

/// Reads lists of records, with the reader of the library, into memory of its own.
pub(super) struct RecordReader {
    store: Arc<Store>,
    reader: Reader,
    bytes: usize,
    /// The records of the last list, each with room for the longest.
    memory: MmapMut,
}

impl RecordReader {
    /// Makes a reader for lists of up to `most` records of a pool in a file.
    pub fn new(pool: &HostPool, most: usize) -> Result<Self> {
        let store = Arc::clone(pool.store().context("the pool has no file")?);
        let bytes = store.layout().max_record_bytes();
        let memory = MmapMut::map_anon(most * bytes).context("mapping memory for reads")?;
        Ok(Self { reader: Reader::new(&store, most)?, store, bytes, memory })
    }

    /// Reads the records of some rows, all of them in flight as far as the queue of the kernel is deep.
    pub fn read(&mut self, indexer: usize, rows: impl Iterator<Item = usize>) -> Result<()> {
        for (row, to) in rows.zip(self.memory.chunks_exact_mut(self.bytes)) {
            // SAFETY: each record has its own part of the memory, which is not used until the list is read, and
            // which stays mapped below if reads are under way then.
            unsafe { self.reader.push(indexer, row, to.as_mut_ptr()) }?;
        }
        let read = self.reader.run(&mut |_| {});
        if self.reader.under_way() > 0 {
            let none = MmapMut::map_anon(1).context("mapping memory for reads")?;
            mem::forget(mem::replace(&mut self.memory, none));
        }
        Ok(read?)
    }
}
