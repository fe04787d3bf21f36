//! The fresh rows of a step, segment by segment, as an engine takes them.

use std::slice;

use avsg::rows::{RowFormat, Segment};

use crate::content::fill_row;

/// The fresh rows of one layer. Rows that were not set contain the byte 0xEE.
#[derive(Clone, Debug)]
pub struct FreshRows {
    segments: Vec<Segment>,
    parts: Vec<Vec<u8>>,
}

impl FreshRows {
    /// Returns `rows` unset rows.
    pub fn new(format: &RowFormat, rows: usize) -> Self {
        let segments = format.as_slice().to_vec();
        let parts = segments.iter().map(|s| vec![0xEE; rows * s.stride]).collect();
        Self { segments, parts }
    }

    /// Sets row `at` of the batch to the contents of `id` at `version`.
    pub fn put(&mut self, at: usize, id: i32, version: u32) {
        let mut row = vec![0; self.segments.iter().map(|segment| segment.bytes).sum()];
        fill_row(id, version, &mut row);
        let mut rest = &row[..];
        for (part, segment) in self.parts.iter_mut().zip(&self.segments) {
            let (bytes, after) = rest.split_at(segment.bytes);
            part[at * segment.stride..][..segment.bytes].copy_from_slice(bytes);
            rest = after;
        }
    }

    /// Returns the bytes of each segment.
    pub fn parts(&self) -> &[Vec<u8>] {
        &self.parts
    }

    /// Returns the bytes of each segment as slices, as an engine takes them.
    pub fn segments(&self) -> Vec<&[u8]> {
        Self::segments_of(slice::from_ref(self))
    }

    /// Returns the segments of the fresh rows of several layers, as an engine takes them for a list of layers.
    pub fn segments_of(layers: &[Self]) -> Vec<&[u8]> {
        layers.iter().flat_map(|layer| &layer.parts).map(Vec::as_slice).collect()
    }
}
