//! The surroundings of the operator in a replay: a batch of requests that decode the same trace, the
//! host rows with their contents, and the version that every row must have.

use crate::trace::Trace;
use anyhow::Result;
use avsg::engine::Engine;
use avsg::plan::Plan;
use avsg_measure::batch::OwnedBatch;
use avsg_measure::content::fill_row;
use avsg_measure::exact::for_each_id;
use avsg_measure::fresh::FreshRows;
use avsg_measure::splitmix::SplitMix64;

use super::report::Tally;

/// The batch of the running step, and the current version of every row.
pub struct World {
    pub step: OwnedBatch,
    /// The batch of an append. All requests decode one sequence and read the same host rows, so one of them writes the
    /// rows of the step.
    pub append: OwnedBatch,
    /// The current version of each id's row.
    version: Vec<u32>,
    fresh: FreshRows,
}

impl World {
    /// Creates the batch, and fills the rows of the host pool that are `used` with their version 0.
    pub fn new(trace: &Trace, engine: &Engine, requests: usize, used: &[bool]) -> Result<Self> {
        let (pool, page) = (engine.pool(), engine.config().params.page as usize);
        let (rows, batch_rows) = (pool.rows(), requests * trace.tokens);
        // If `page` is 0, there is no block table and a row's number is its id.
        let mut blocks: Vec<i32> = (0..rows.checked_div(page).unwrap_or(0) as i32).collect();
        SplitMix64::new(page as u64).shuffle(&mut blocks);
        let mut row = vec![0; pool.format().bytes()];
        for id in (0..rows).filter(|&id| used[id]) {
            fill_row(id as i32, 0, &mut row);
            let block = id.checked_div(page).map(|entry| blocks[entry] as usize);
            let at = block.map_or(id, |block| block * page + id % page);
            pool.write_row(0, at, &row)?;
        }
        pool.flush()?;
        let [step, append] = [requests, 1].map(|requests| OwnedBatch {
            blocks: blocks.repeat(requests),
            block_stride: blocks.len(),
            ..OwnedBatch::uniform(trace.k, requests, trace.tokens, rows)
        });
        let fresh = FreshRows::new(pool.format(), batch_rows);
        Ok(Self { step, append, version: vec![0; rows], fresh })
    }

    /// Sets the batch to a step of the trace, and creates the step's new rows.
    pub fn begin_step(&mut self, trace: &Trace, step: usize) {
        let words = trace.tokens * self.step.k;
        let stable = trace.stable.as_ref().map_or(-1, |s| s[step]);
        let seq = if stable < 0 { self.version.len() as i32 } else { stable + trace.tokens as i32 };
        for batch in [&mut self.step, &mut self.append] {
            batch.ids = trace.ids[step * words..][..words].repeat(batch.state.len());
            batch.stable.fill(stable);
            batch.seq.fill(seq);
        }
        if stable < 0 {
            return;
        }
        for row in 0..self.step.rows() {
            let id = stable + (row % trace.tokens) as i32;
            self.version[id as usize] = step as u32 + 1;
            self.fresh.put(row, id, step as u32 + 1);
        }
    }

    /// Returns the fresh rows of the step, segment by segment, if it has any.
    pub fn fresh(&self) -> Option<Vec<&[u8]>> {
        (self.step.stable[0] >= 0).then(|| self.fresh.segments())
    }

    /// Compares every byte of every returned slot with the current content of its row, and returns the first 8 bytes
    /// of request 0's slots, 0 for padding.
    pub fn verify(&self, engine: &Engine, plan: &Plan, tally: &mut Tally) -> Vec<u64> {
        let mut tags = vec![0; self.append.ids.len()];
        for_each_id(
            &self.step.batch(),
            engine.pool().format().bytes(),
            |row| plan.slots(row),
            |state, slot, bytes| engine.buffer().slot_bytes(state, 0, slot, bytes).is_ok(),
            |_, id| (id, self.version[id as usize]),
            |seen| {
                // Padding counts only if it has a slot.
                tally.verified_rows += u64::from(seen.id >= 0 && seen.exact);
                tally.wrong_rows += u64::from(!seen.exact);
                if seen.request == 0 {
                    let mut first = [0; 8];
                    let n = seen.bytes.len().min(8);
                    first[..n].copy_from_slice(&seen.bytes[..n]);
                    tags[seen.row * self.step.k + seen.lane] = u64::from_le_bytes(first);
                }
            },
        );
        tags
    }
}
