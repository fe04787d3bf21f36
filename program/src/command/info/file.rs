//! The file that would hold the rows in the place of the host pool.

use anyhow::Result;
use avsg::rows::RowFormat;
use serde::Serialize;

use crate::checks::product;
use crate::disk::layout;

/// The blocks of most disks.
const BLOCKS: [usize; 2] = [512, 4096];

/// The records of a pool in a file on a disk with blocks of one size.
#[derive(Serialize)]
pub struct PlannedFile {
    block: usize,
    /// Bytes of the longest record: the rows of the layers of an indexer, checksums and padding.
    record_bytes: usize,
    padding_percent: f64,
    pub per_request: usize,
    pub bytes: usize,
}

impl PlannedFile {
    /// Computes the files of `requests` requests for disks with the usual blocks; the shape is layers, indexers and
    /// rows.
    pub fn on_disks(shape: [usize; 3], format: &RowFormat, requests: usize) -> Result<Vec<Self>> {
        let file = |block| {
            let layout = layout(shape, format, block)?;
            let per_request = usize::try_from(layout.end())?;
            Ok(Self {
                block,
                record_bytes: layout.max_record_bytes(),
                padding_percent: 100.0 * layout.padding(),
                per_request,
                bytes: product("file", &[per_request, requests])?,
            })
        };
        BLOCKS.into_iter().map(file).collect()
    }

    /// Returns its name in the table of memory, and what it consists of.
    pub fn words(&self) -> [String; 2] {
        let (record, padding) = (self.record_bytes, self.padding_percent);
        [
            format!("file, blocks of {}", self.block),
            format!(
                "in the place of the host pool: records of at most {record} B, {padding:.1} % padding"
            ),
        ]
    }
}
