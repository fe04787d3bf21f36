//! Where each row is in the file of a store.
//!
//! The layers of an indexer select the same ids, so their rows of one id are one *record*: for each
//! layer, in ascending order, the segments of its row back to back, and behind them the checksum of the
//! row. A record is padded to the block of the file. The records of an indexer are in the order of the
//! rows, and the indexers follow each other.

use std::ops::Range;

use crate::indexers::Indexers;
use crate::rows::{self, RowFormat};
use crate::system::reserve;
use crate::{Result, invalid};

const WHAT: &str = "layout of the pool file";
/// Bytes of the checksum behind each row.
pub(super) const CHECKSUM: usize = 8;

/// The geometry of the rows in a file, which a kept file must be opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Number of layers.
    pub layers: usize,
    /// Number of rows in each layer.
    pub rows: usize,
    /// The format of a row. The file holds no bytes between rows, so strides do not matter.
    pub format: RowFormat,
    /// The layers whose rows of one id are side by side.
    pub indexers: Indexers,
}

/// The records of one indexer.
#[derive(Debug, Clone)]
struct Group {
    layers: usize,
    record_bytes: usize,
    /// Offset of the record of row 0, and the number of row 0 of the first layer among all rows.
    offset: u64,
    first: usize,
}

/// The place of each row in the file.
#[derive(Debug, Clone)]
pub struct Layout {
    rows: usize,
    /// Bytes of a row of one layer: its segments back to back, without a checksum.
    row_bytes: usize,
    /// The block of the file in bytes. Records begin at multiples of it and have multiples of it, unless they
    /// are behind the header of a kept file, which is a multiple of it, too.
    pub(super) block: usize,
    groups: Vec<Group>,
    /// The indexer of each layer, and the number of the layer among those of its indexer.
    of_layer: Vec<(usize, usize)>,
    end: u64,
}

impl Layout {
    /// Returns the layout of records that begin at `start`, in a file with blocks of `block` bytes.
    ///
    /// # Errors
    /// If a number is out of range, or the file would exceed 2^63 bytes.
    pub fn new(shape: &Shape, block: usize, start: u64) -> Result<Self> {
        let Shape { layers, rows, format, indexers } = shape;
        rows::at_least_one("layers", *layers)?;
        rows::at_least_one("rows", *rows)?;
        indexers.check(*layers)?;
        let too_large = || {
            invalid!("pool geometry" is format!("{layers} layers of {rows} rows"), but
                "a file has fewer than 2^63 bytes"; "ask for fewer rows")
        };
        let stride = format.bytes().checked_add(CHECKSUM).ok_or_else(too_large)?;
        let mut groups = reserve::with_capacity(WHAT, indexers.count())?;
        let mut of_layer = reserve::filled(WHAT, *layers, (0, 0))?;
        let (mut offset, mut first) = (start, 0usize);
        for indexer in 0..indexers.count() {
            let mut count = 0;
            for layer in indexers.layers_of(indexer, *layers) {
                of_layer[layer] = (indexer, count);
                count += 1;
            }
            let record = stride.checked_mul(count).and_then(|n| n.checked_next_multiple_of(block));
            let record_bytes = record.filter(|&n| n <= i32::MAX as usize).ok_or_else(too_large)?;
            groups.push(Group { layers: count, record_bytes, offset, first });
            let bytes = (record_bytes as u64).checked_mul(*rows as u64);
            let end = bytes.and_then(|bytes| offset.checked_add(bytes));
            offset = end.filter(|&end| end <= i64::MAX as u64).ok_or_else(too_large)?;
            // The rows are fewer than the bytes, so that nothing overflows.
            first += count * rows;
        }
        let (rows, row_bytes) = (*rows, format.bytes());
        Ok(Self { rows, row_bytes, block, groups, of_layer, end: offset })
    }

    /// Returns the number of layers.
    pub fn layers(&self) -> usize {
        self.of_layer.len()
    }

    /// Returns the number of rows in each layer.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of indexers.
    pub fn indexers(&self) -> usize {
        self.groups.len()
    }

    /// Returns the bytes from one row of a record to the next: the row and its checksum.
    pub fn row_stride(&self) -> usize {
        self.row_bytes + CHECKSUM
    }

    /// Returns the number of layers of an indexer; 0 if there is no such indexer.
    pub fn group_layers(&self, indexer: usize) -> usize {
        self.groups.get(indexer).map_or(0, |group| group.layers)
    }

    /// Returns the bytes of a record of an indexer, with padding; 0 if there is no such indexer.
    pub fn record_bytes(&self, indexer: usize) -> usize {
        self.groups.get(indexer).map_or(0, |group| group.record_bytes)
    }

    /// Returns the bytes of the longest record.
    pub fn max_record_bytes(&self) -> usize {
        self.groups.iter().map(|group| group.record_bytes).max().unwrap_or(0)
    }

    /// Returns the most layers of an indexer.
    pub fn max_group_layers(&self) -> usize {
        self.groups.iter().map(|group| group.layers).max().unwrap_or(0)
    }

    /// Returns the share of the records' bytes that is padding, from 0 to 1.
    pub fn padding(&self) -> f64 {
        let records: usize = self.groups.iter().map(|group| group.record_bytes).sum();
        1.0 - (self.layers() * self.row_stride()) as f64 / records as f64
    }

    /// Returns the offset in the file of a record.
    ///
    /// # Panics
    /// If there is no such indexer.
    pub fn record_offset(&self, indexer: usize, row: usize) -> u64 {
        let group = &self.groups[indexer];
        group.offset + row as u64 * group.record_bytes as u64
    }

    /// Returns the indexer of a layer.
    ///
    /// # Panics
    /// If there is no such layer.
    pub fn indexer_of(&self, layer: usize) -> usize {
        self.of_layer[layer].0
    }

    /// Returns where the row of a layer is in its record, without the checksum.
    ///
    /// # Panics
    /// If there is no such layer.
    pub fn row_range(&self, layer: usize) -> Range<usize> {
        let at = self.of_layer[layer].1 * self.row_stride();
        at..at + self.row_bytes
    }

    /// Returns the offset in the file behind the last record.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the number of a layer among those of its indexer.
    pub(super) fn place(&self, layer: usize) -> usize {
        self.of_layer[layer].1
    }

    /// Returns the number of a row among all rows of the file. The rows of a record are adjacent.
    pub(super) fn row_number(&self, indexer: usize, row: usize, place: usize) -> usize {
        let group = &self.groups[indexer];
        group.first + row * group.layers + place
    }

    /// Returns the number of the row of a layer among all rows of the file.
    pub(super) fn number_of(&self, layer: usize, row: usize) -> usize {
        let (indexer, place) = self.of_layer[layer];
        self.row_number(indexer, row, place)
    }

    /// Returns the number of a record among all records of the file.
    pub(crate) fn record_number(&self, indexer: usize, row: usize) -> usize {
        indexer * self.rows + row
    }

    /// Returns the indexer and the row of the record that has this byte of the file.
    pub(super) fn record_at(&self, offset: u64) -> Option<(usize, usize)> {
        let indexer = self.groups.iter().rposition(|group| group.offset <= offset)?;
        let group = &self.groups[indexer];
        let row = (offset - group.offset) / group.record_bytes as u64;
        (row < self.rows as u64).then_some((indexer, row as usize))
    }

    /// Returns the number of rows of all layers.
    pub(super) fn row_count(&self) -> usize {
        self.layers() * self.rows
    }

    /// Checks that there is such a row.
    pub(super) fn check_row(&self, layer: usize, row: usize) -> Result<()> {
        rows::index("layer", layer, self.layers())?;
        rows::index("row", row, self.rows)
    }
}
