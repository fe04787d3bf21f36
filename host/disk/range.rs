//! Reads of rows that are neighbours in the file.

use std::ops::Range;

use super::aligned::Aligned;
use super::store::Store;
use crate::Result;
use crate::system::reserve;

const WHAT: &str = "records of a range";
/// The most bytes of a read, unless a record is longer.
const READ_BYTES: usize = 1 << 20;

impl Store {
    /// Reads existing rows of existing layers in this thread. `into` gets all rows of each layer, in the order of
    /// the list, each with its segments back to back. Several threads may read at once.
    ///
    /// # Errors
    /// If a row is not whole or cannot be read.
    pub(crate) fn read_rows(
        &self,
        layers: &[usize],
        rows: Range<usize>,
        mut into: &mut [u8],
    ) -> Result<()> {
        self.records.birth.check("pool")?;
        let indexer = |layer: usize| self.layout().indexer_of(layer);
        for group in layers.chunk_by(|&a, &b| indexer(a) == indexer(b)) {
            let bytes = group.len() * rows.len() * self.format.bytes();
            let part = into.split_off_mut(..bytes).unwrap_or_default();
            self.read_group(group, rows.clone(), part)?;
        }
        Ok(())
    }

    /// Reads rows of layers that share an indexer.
    fn read_group(&self, layers: &[usize], rows: Range<usize>, into: &mut [u8]) -> Result<()> {
        let (layout, bytes) = (self.layout(), self.format.bytes());
        let indexer = layout.indexer_of(layers[0]);
        let record = layout.record_bytes(indexer);
        let places = layers.iter().map(|&layer| layout.place(layer));
        let first = places.clone().min().unwrap_or(0);
        let end = places.max().unwrap_or(0) + 1;
        let mut span = self.records.blocks_of(indexer, first..end);
        if span.len() * 4 >= record {
            // One read of many records is faster than many reads that leave out little.
            span = 0..record;
        }
        let most = if span.len() == record { (READ_BYTES / record).max(1) } else { 1 };
        let most = most.min(rows.len());
        let mut memory = Aligned::zeroed(WHAT, most * record)?;
        let mut queued = reserve::filled(WHAT, most * layers.len(), false)?;
        for start in rows.clone().step_by(most.max(1)) {
            let count = most.min(rows.end - start);
            let of = |n: usize| {
                let (layer, row) = (n / count, start + n % count);
                let at = (layer * rows.len() + row - rows.start) * bytes;
                (layers[layer], row, at..at + bytes)
            };
            let all = 0..count * layers.len();
            for n in all.clone() {
                let (layer, row, at) = of(n);
                // What has left the queue is in the file.
                queued[n] = self.records.queued.get(layout.record_number(indexer, row))
                    && self.lock()?.copy_row(layer, row, &mut into[at]);
            }
            if queued[all.clone()].iter().all(|&queued| queued) {
                continue;
            }
            let offset = layout.record_offset(indexer, start) + span.start as u64;
            let len = (count - 1) * record + span.len();
            self.records.read(offset, &mut memory.bytes_mut()[span.start..][..len])?;
            self.records.count_read(len, count);
            for n in all.filter(|&n| !queued[n]) {
                let (layer, row, at) = of(n);
                let of_row = &memory.bytes()[n % count * record..][..record];
                into[at].copy_from_slice(self.row_in(of_row, layer, row)?);
            }
        }
        Ok(())
    }
}
