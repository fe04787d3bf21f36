//! A step's own rows, segment by segment, as an engine takes them.

use avsg::rows::{RowFormat, Segment};

use crate::content::fill_row;

/// Room for the rows of one layer. What nobody has put is junk.
#[derive(Clone, Debug)]
pub struct FreshRows {
    segments: Vec<Segment>,
    parts: Vec<Vec<u8>>,
    row: Vec<u8>,
}

impl FreshRows {
    /// Room for so many rows.
    pub fn new(format: &RowFormat, rows: usize) -> Self {
        let segments = format.as_slice().to_vec();
        let parts = segments.iter().map(|s| vec![0xEE; rows * s.stride]).collect();
        Self { segments, parts, row: vec![0; format.bytes()] }
    }

    /// Makes row `at` of the batch that of an id at a version.
    pub fn put(&mut self, at: usize, id: i32, version: u32) {
        fill_row(id, version, &mut self.row);
        let mut rest = &self.row[..];
        for (part, segment) in self.parts.iter_mut().zip(&self.segments) {
            let (bytes, after) = rest.split_at(segment.bytes);
            part[at * segment.stride..][..segment.bytes].copy_from_slice(bytes);
            rest = after;
        }
    }

    /// The bytes of each segment.
    pub fn parts(&self) -> &[Vec<u8>] {
        &self.parts
    }

    /// The same as slices: what a `Fresh` holds.
    pub fn segments(&self) -> Vec<&[u8]> {
        self.parts.iter().map(Vec::as_slice).collect()
    }
}
