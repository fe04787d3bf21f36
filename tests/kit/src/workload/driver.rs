//! Makes the batch and the fresh rows of each step of a workload and checks the results, for any
//! engine and any interface to it.

use avsg::device::params::ID_LIMIT;

use super::pool_model::{PoolModel, Sequence, WriteRow};
use super::shape::EngineSetting;
use super::verify::{self, SlotModel};
use super::{Request, Step};
use crate::batch::{BatchRequest, OwnedBatch, requests};
use crate::fresh::FreshRows;
use crate::step_result::StepResult;

/// The input of one step of a workload, as an engine takes it.
pub struct StepInput {
    /// The batch to plan.
    pub batch: OwnedBatch,
    /// The same batch with complete, valid block tables, for the append.
    pub append_batch: OwnedBatch,
    /// The fresh rows of the step on each layer.
    pub fresh: Vec<FreshRows>,
    /// Of each request, whether its table must be empty before the step.
    cold: Vec<bool>,
}

impl StepInput {
    /// Returns whether some request has fresh rows.
    pub fn has_fresh(&self) -> bool {
        self.batch.stable.iter().any(|&stable| stable >= 0)
    }

    /// Returns the number of rows that the append writes on each layer.
    pub fn appended_rows(&self) -> usize {
        let rows = |r: BatchRequest<'_>| Some(r.rows.len().min(r.seq - r.state.and(r.stable)?));
        requests(&self.batch).filter_map(rows).sum()
    }
}

/// Drives an engine through a workload: the requests, their rows, and the expected contents of all
/// slots.
pub struct WorkloadDriver {
    pool_model: PoolModel,
    slot_model: SlotModel,
}

impl WorkloadDriver {
    /// Begins a workload on an engine whose slots are zero. `write(layer, row, bytes)` writes a row
    /// of the pool and is called for each row.
    pub fn new(setting: EngineSetting, write: WriteRow<'_>) -> Self {
        let slot_model = SlotModel::new(&setting);
        Self { pool_model: PoolModel::new(setting, write), slot_model }
    }

    /// Makes the input of a step. The rows of requests that join are written with `write`.
    pub fn next_step(&mut self, step: &Step, write: WriteRow<'_>) -> StepInput {
        let states = self.pool_model.sequences.len();
        if step.swap.is_multiple_of(8) && states > 1 {
            let a = usize::from(step.swap / 8) % states;
            let b = (a + 1) % states;
            self.pool_model.sequences.swap(a, b);
            self.pool_model.new_generation(a);
            self.pool_model.new_generation(b);
        }
        let (batch, cold) = self.batch(step, write);
        let fresh =
            (0..self.pool_model.setting.layers).map(|layer| self.fresh(&batch, layer)).collect();
        let sequences = &self.pool_model.sequences;
        let blocks = |state: &i32| &sequences[(*state).max(0) as usize].blocks[..];
        let blocks = batch.state.iter().flat_map(blocks).copied().collect();
        let block_stride = sequences[0].blocks.len();
        let append_batch = OwnedBatch { blocks, block_stride, ..batch.clone() };
        StepInput { batch, append_batch, fresh, cold }
    }

    /// Gives every request of a step a new generation, as a runtime does after a failure of the
    /// work in its stream.
    pub fn renew_generations(&mut self, step_input: &mut StepInput) {
        for r in 0..step_input.cold.len() {
            let Ok(state) = usize::try_from(step_input.batch.state[r]) else { continue };
            self.pool_model.new_generation(state);
            let Sequence { generation, cold, .. } = &mut self.pool_model.sequences[state];
            step_input.cold[r] = std::mem::take(cold);
            step_input.batch.generation[r] = *generation;
            step_input.append_batch.generation[r] = *generation;
        }
    }

    /// Checks the results of the last step after the transfer of all layers. `read(state, layer,
    /// slot, bytes)` reads a slot.
    ///
    /// # Panics
    /// If a result or the contents of a slot are wrong.
    pub fn check(
        &mut self,
        StepInput { batch, cold, .. }: &StepInput,
        result: &StepResult,
        read: impl FnMut(usize, usize, usize, &mut [u8]),
    ) {
        self.slot_model.check_step(result, batch, cold, &self.pool_model);
        self.slot_model.check_contents(&self.pool_model.setting, read);
    }

    /// Checks that the ids of the last step have slots that hold their rows if they select rows, whatever else the
    /// results are. `read(state, layer, slot, bytes)` reads a slot.
    ///
    /// # Panics
    /// If a slot does not hold its row.
    pub fn check_rows(
        &self,
        input: &StepInput,
        result: &StepResult,
        read: impl FnMut(usize, usize, usize, &mut [u8]),
    ) {
        verify::check_rows(result, &input.batch, &self.pool_model, read);
    }

    /// Checks the whole pool after the append of the last step. `read(layer, row, bytes)`
    /// reads a row.
    ///
    /// # Panics
    /// If a row does not have its latest contents.
    pub fn check_pool(&self, read: impl FnMut(usize, usize, &mut [u8])) {
        self.pool_model.check_contents(read);
    }

    /// Returns the batch of a step, and of each request whether it is cold.
    fn batch(&mut self, step: &Step, write: WriteRow<'_>) -> (OwnedBatch, Vec<bool>) {
        let EngineSetting { params, max_requests, .. } = self.pool_model.setting;
        let k = params.k as usize - usize::from(step.form / 2 % 4).min(params.k as usize - 1);
        let mut owned = OwnedBatch::new(k, usize::from(step.form / 8 % 3));
        let blocks_per_request = self.pool_model.sequences[0].blocks.len();
        if blocks_per_request != 0 {
            // The entry of the last block may be missing, or up to two unused entries may follow
            // it.
            owned.block_stride = blocks_per_request + usize::from(step.form / 32 % 4) - 1;
        }
        let states = self.pool_model.sequences.len();
        let mut cold = Vec::new();
        for request in step.requests.iter().take(max_requests) {
            let state = usize::from(request.state) % states;
            let tokens = usize::from(request.tokens) % (params.tokens as usize + 1);
            if request.action % 8 == 1 || owned.state.contains(&(state as i32)) {
                let rows = vec![vec![i32::from(request.choice); k]; tokens];
                owned.push([-1, 9, i32::from(request.accepted) - 1, -5], &rows);
                owned.blocks.resize(owned.blocks.len() + owned.block_stride, i32::MIN);
                cold.push(false);
                continue;
            }
            self.request(request, state, tokens, &mut owned, write);
            cold.push(std::mem::take(&mut self.pool_model.sequences[state].cold));
        }
        (owned, cold)
    }

    /// Adds a request to the batch.
    fn request(
        &mut self,
        r: &Request,
        state: usize,
        tokens: usize,
        owned: &mut OwnedBatch,
        write: WriteRow<'_>,
    ) {
        let choice = usize::from(r.choice);
        if r.action.is_multiple_of(8) {
            self.pool_model.replace_request(state, choice, write);
            self.pool_model.new_generation(state);
        }
        let pool_rows = self.pool_model.setting.pool_rows();
        let sequence = &mut self.pool_model.sequences[state];
        let (base, end, generation) = (sequence.base, sequence.end(), sequence.generation);
        if r.action % 8 == 5 || sequence.stable >= end {
            sequence.stable = base + choice % (sequence.stable - base + 1);
        }
        let read_only = (2..=4).contains(&(r.action % 8));
        let (stable, tokens) =
            (sequence.stable, tokens.min(if read_only { 9 } else { end - sequence.stable }));
        let seq = match r.action % 8 {
            2 | 3 => end,
            4 => ID_LIMIT as usize,
            // The last row of a step may be at the sequence length and thus not be a token.
            _ => stable + tokens - usize::from(choice % 4 == 3).min(tokens),
        };
        if !read_only {
            // Rows from the sequence length on are not tokens: they are neither appended nor accepted.
            let appended = tokens.min(seq - stable);
            let accepted = usize::from(r.accepted) % tokens.max(1) + 1;
            sequence.stable += accepted.min(appended);
            for id in stable..stable + appended {
                self.pool_model.new_version(state, id);
            }
        }
        let mut raw_ids = r.ids.iter().chain((r.ids.is_empty()).then_some(&15)).cycle();
        let mut rows: Vec<Vec<i32>> = Vec::new();
        for _ in 0..tokens {
            let mut row: Vec<i32> = Vec::new();
            for raw in raw_ids.by_ref().take(owned.k) {
                let x = i32::from(raw >> 4);
                let within = |from: usize, to: usize| from as i32 + x % (to - from) as i32;
                row.push(match raw & 15 {
                    0 => -1,
                    1 => i32::MIN + x,
                    2 => seq as i32 + x,
                    3 => i32::MAX - x,
                    4 => row.last().copied().unwrap_or(-1),
                    5 | 6 if !read_only && seq > stable => within(stable, seq),
                    7 | 8 if seq > end => pool_rows as i32 + x,
                    _ if seq > base => within(base, seq.min(end)),
                    _ => -1,
                });
            }
            rows.push(row);
        }
        let stable_len = if read_only { -1 } else { stable as i32 };
        owned.push([state as i32, generation, stable_len, seq as i32], &rows);
        let mut blocks = self.pool_model.sequences[state].blocks.clone();
        blocks.resize(owned.block_stride, -7);
        if choice.is_multiple_of(5) && !blocks.is_empty() {
            let total = pool_rows / self.pool_model.setting.params.page as usize;
            let at = choice / 5 % blocks.len();
            blocks[at] = [-1, total as i32, i32::MAX, i32::MIN][choice % 4];
        }
        owned.blocks.extend(&blocks);
    }

    /// Returns the fresh rows of one layer; rows of padded and read-only requests stay unset.
    fn fresh(&self, owned: &OwnedBatch, layer: usize) -> FreshRows {
        let mut rows = FreshRows::new(&self.pool_model.setting.format, owned.rows());
        for request in requests(owned) {
            let (Some(state), Some(stable)) = (request.state, request.stable) else { continue };
            for (id, row) in (stable..).zip(request.rows) {
                let version = self.pool_model.version(state, id) + layer as u32;
                rows.put(row, id as i32, version);
            }
        }
        rows
    }
}
