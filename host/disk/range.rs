//! Reads of rows that are neighbours in the file.

use std::ops::Range;
use std::sync::Arc;
use std::{mem, slice};

use super::reader::{MAX_BYTES, Reader};
use super::store::Store;
use crate::Result;
use crate::system::mapping::Mapping;
use crate::system::reserve;

const WHAT: &str = "records of a range";
/// The bytes of the records of a list, unless one is longer: as much is under way at once, and a longer list would
/// not be read faster.
const LIST_BYTES: usize = 8 << 20;

impl Store {
    /// Reads existing rows of existing layers. `into` gets all rows of each layer, in the order of the list, each
    /// with its segments back to back. Several threads may read at once.
    ///
    /// # Errors
    /// If a row is not whole or cannot be read.
    pub(crate) fn read_rows(
        self: &Arc<Self>,
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
    fn read_group(
        self: &Arc<Self>,
        layers: &[usize],
        rows: Range<usize>,
        into: &mut [u8],
    ) -> Result<()> {
        let layout = self.layout();
        let indexer = layout.indexer_of(layers[0]);
        let record = layout.record_bytes(indexer);
        let places = layers.iter().map(|&layer| layout.place(layer));
        let first = places.clone().min().unwrap_or(0);
        let end = places.max().unwrap_or(0) + 1;
        let mut part = self.records.blocks_of(indexer, first..end);
        if part.len() * 4 >= record {
            // One read of many records is faster than many reads that leave out little.
            part = 0..record;
        }
        let most = (LIST_BYTES / record).max(1).min(rows.len());
        let memory = Mapping::unforked(WHAT, (most * record).max(1), None)?;
        // What one operation reads needs no queue.
        let one = most == 1 || part.len() == record && rows.len() * record <= MAX_BYTES;
        let mut reader = Reader::of(self, most, !one)?;
        let mut listed = reserve::with_capacity(WHAT, most)?;
        let bytes = self.format.bytes();
        let place = |n: usize, row: usize| {
            let at = (n * rows.len() + row - rows.start) * bytes;
            at..at + bytes
        };
        let mut read = |list: Range<usize>| {
            listed.clear();
            for row in list {
                // What has left the queue is in the file.
                let mut copied = 0;
                if self.records.queued.get(layout.record_number(indexer, row)) {
                    let queue = self.lock()?;
                    let rows = layers.iter().enumerate();
                    let copy = |&(n, &layer): &(usize, &usize)| {
                        queue.copy_row(layer, row, &mut into[place(n, row)])
                    };
                    copied = rows.filter(copy).count();
                }
                if copied == layers.len() {
                    continue;
                }
                let to = memory.ptr().wrapping_add(listed.len() * record);
                // SAFETY: each record of the list has its part of the memory, which is kept until nothing is under way
                // and which is read behind `done` only.
                unsafe {
                    if copied == 0 {
                        reader.push_part(indexer, row, part.clone(), to)?;
                    } else {
                        // The file lacks the rows that were copied, until the queue has written the record.
                        reader.push(indexer, row, to)?;
                    }
                }
                listed.push(row);
            }
            let mut wrong = None;
            let done = &mut |number: usize| {
                let at = memory.ptr().wrapping_add(number * record);
                // SAFETY: the record is in its part of the memory, to which nothing writes any more.
                let (row, of_row) = (listed[number], unsafe { slice::from_raw_parts(at, record) });
                for (n, &layer) in layers.iter().enumerate() {
                    match self.row_in(of_row, layer, row) {
                        Ok(bytes) => into[place(n, row)].copy_from_slice(bytes),
                        // The error of the first row is told, whatever is read first.
                        Err(error) if wrong.as_ref().is_none_or(|&(first, _)| row < first) => {
                            wrong = Some((row, error));
                        }
                        Err(_) => {}
                    }
                }
            };
            reader.run(done)?;
            wrong.map_or(Ok(()), |(_, error)| Err(error))
        };
        let lists = rows.clone().step_by(most.max(1));
        let done = lists.map(|start| start..rows.end.min(start + most)).try_for_each(&mut read);
        if reader.under_way() > 0 {
            // After an error about the time limit the kernel may still write to it.
            mem::forget(memory);
        }
        done
    }
}
