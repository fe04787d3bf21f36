//! The setting `every row`: each selected row is read from the file at each step, past the page cache, all of
//! them in flight at once.

use std::fs::File;
use std::time::Instant;

use anyhow::Result;

use super::rows::{Records, Setting, Step};
use crate::command::stats::us_since;
use crate::disk::{Read, Reader};

pub struct EveryRow {
    file: File,
    records: Records,
    reader: Reader,
    reads: Vec<Read>,
}

impl EveryRow {
    /// Takes a file of `records`, which was opened for direct reads or not, and makes room for `k` of them.
    pub fn new(file: File, records: Records, k: usize, depth: usize) -> Result<Self> {
        let reader = Reader::new(depth, k * records.stride)?;
        Ok(Self { file, records, reader, reads: Vec::with_capacity(k) })
    }
}

impl Setting for EveryRow {
    fn name(&self) -> &'static str {
        "every row"
    }

    fn memory_bytes(&self) -> usize {
        self.reader.memory().len()
    }

    fn step(&mut self, ids: &[i32]) -> Result<Step> {
        let start = Instant::now();
        self.records.reads(ids, &mut self.reads);
        self.reader.read(&self.file, &self.reads)?;
        let us = us_since(start);
        let bytes = self.reads.iter().map(|read| read.bytes).sum();
        let stride = self.records.stride;
        let mut wrong_rows = 0;
        for read in &self.reads {
            let records = self.reader.memory()[read.to..][..read.bytes].chunks_exact(stride);
            for (id, record) in (read.offset as usize / stride..).zip(records) {
                wrong_rows += self.records.wrong_rows(id, record);
            }
        }
        Ok(Step { us, reads: self.reads.len(), bytes, wrong_rows })
    }
}
