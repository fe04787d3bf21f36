//! The world around the operator in a replay: a batch of requests that decode the same trace, the
//! host rows with their contents, and what every row must hold now.

use crate::trace::Trace;
use anyhow::Result;
use avsg::engine::{Batch, Engine};
use avsg::plan::Plan;
use avsg_testkit::content::{check_row, fill_row};
use avsg_testkit::splitmix::SplitMix64;

use super::report::Report;

/// Requests, their arrays, and the current version of every row.
pub struct World {
    k: usize,
    tokens: usize,
    ids: Vec<i32>,
    cu_q: Vec<i32>,
    state: Vec<i32>,
    generation: Vec<i32>,
    stable: Vec<i32>,
    seq: Vec<i32>,
    blocks: Vec<i32>,
    block_stride: usize,
    rows: usize,
    /// The version of each id's row.
    version: Vec<u32>,
    /// This step's rows, one buffer per segment.
    fresh: Vec<Vec<u8>>,
    segments: Vec<(usize, usize)>,
    row: Vec<u8>,
}

impl World {
    /// Fills the host pool with version 0 of every row.
    pub fn new(trace: &Trace, engine: &Engine, requests: usize) -> Result<Self> {
        let (pool, page) = (engine.pool(), engine.config().params.page as usize);
        let rows = pool.rows();
        // Without a block table there are no blocks, and a row is its id.
        let mut blocks: Vec<i32> = (0..rows.checked_div(page).unwrap_or(0) as i32).collect();
        SplitMix64::new(page as u64).shuffle(&mut blocks);
        let mut row = vec![0; pool.format().bytes()];
        for id in 0..rows {
            fill_row(id as i32, 0, &mut row);
            let block = id.checked_div(page).map(|entry| blocks[entry] as usize);
            let at = block.map_or(id, |block| block * page + id % page);
            pool.write_row(0, at, &row)?;
        }
        let segments: Vec<_> =
            pool.format().as_slice().iter().map(|s| (s.bytes, s.stride)).collect();
        let batch_rows = requests * trace.tokens;
        Ok(Self {
            k: trace.k,
            tokens: trace.tokens,
            ids: Vec::new(),
            cu_q: (0..=requests).map(|r| (r * trace.tokens) as i32).collect(),
            state: (0..requests as i32).collect(),
            generation: vec![1; requests],
            stable: vec![-1; requests],
            seq: vec![rows as i32; requests],
            block_stride: blocks.len(),
            blocks: blocks.repeat(requests),
            rows,
            version: vec![0; rows],
            fresh: segments.iter().map(|&(_, stride)| vec![0; batch_rows * stride]).collect(),
            segments,
            row,
        })
    }

    /// Takes a step of the trace: its ids for every request, and its new rows.
    pub fn begin_step(&mut self, trace: &Trace, step: usize) {
        let words = self.tokens * self.k;
        self.ids = trace.ids[step * words..][..words].repeat(self.state.len());
        let stable = trace.stable.as_ref().map_or(-1, |s| s[step]);
        self.stable.fill(stable);
        self.seq.fill(if stable < 0 { self.rows as i32 } else { stable + self.tokens as i32 });
        if stable < 0 {
            return;
        }
        for batch_row in 0..self.state.len() * self.tokens {
            let id = stable + (batch_row % self.tokens) as i32;
            self.version[id as usize] = step as u32 + 1;
            fill_row(id, step as u32 + 1, &mut self.row);
            let mut rest = &self.row[..];
            for (buffer, &(bytes, stride)) in self.fresh.iter_mut().zip(&self.segments) {
                let (part, after) = rest.split_at(bytes);
                buffer[batch_row * stride..][..bytes].copy_from_slice(part);
                rest = after;
            }
        }
    }

    /// Whether this step has fresh rows.
    pub fn has_fresh(&self) -> bool {
        self.stable[0] >= 0
    }

    /// This step's rows.
    pub fn fresh(&self) -> Vec<&[u8]> {
        self.fresh.iter().map(Vec::as_slice).collect()
    }

    /// The step's batch.
    pub fn batch(&self) -> Batch<'_> {
        Batch {
            ids: &self.ids,
            ids_stride: self.k,
            k: self.k,
            cu_q: &self.cu_q,
            state: &self.state,
            generation: &self.generation,
            stable_len: &self.stable,
            seq_len: &self.seq,
            block_table: &self.blocks,
            block_stride: self.block_stride,
        }
    }

    /// Compares every byte of every returned slot of a request with its row's current contents.
    pub fn verify(
        &self,
        engine: &Engine,
        plan: &Plan,
        request: usize,
        report: &mut Report,
        mut tags: Option<&mut Vec<u64>>,
    ) {
        let mut row = vec![0; self.row.len()];
        for token in 0..self.tokens {
            let at = (request * self.tokens + token) * self.k;
            let slots = plan.slots(request * self.tokens + token);
            for (lane, (&id, &slot)) in self.ids[at..][..self.k].iter().zip(slots).enumerate() {
                let mut tag = 0;
                if id < 0 {
                    // Padding must come back as padding.
                    report.wrong_rows += u64::from(slot != -1);
                } else {
                    let read = usize::try_from(slot).is_ok_and(|slot| {
                        engine.buffer().slot_bytes(request, 0, slot, &mut row).is_ok()
                    });
                    let right = read && check_row(id, self.version[id as usize], &row);
                    report.verified_rows += u64::from(right);
                    report.wrong_rows += u64::from(!right);
                    if read {
                        let mut first = [0; 8];
                        let n = row.len().min(8);
                        first[..n].copy_from_slice(&row[..n]);
                        tag = u64::from_le_bytes(first);
                    }
                }
                if let Some(tags) = &mut tags {
                    tags[token * self.k + lane] = tag;
                }
            }
        }
    }
}
