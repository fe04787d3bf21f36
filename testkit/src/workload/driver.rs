//! Makes the batch and the fresh rows of each step of a workload and checks the results, for any
//! engine and any interface to it.

use avsg::device::params::ID_LIMIT;

use super::pool_model::{PoolModel, WriteRow};
use super::setting::EngineSetting;
use super::verify::{self, RequestInput, SlotModel};
use super::{Request, Step};
use crate::batch::OwnedBatch;
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
    inputs: Vec<RequestInput>,
}

impl StepInput {
    /// Returns whether some request has fresh rows.
    pub fn has_fresh(&self) -> bool {
        self.batch.stable.iter().any(|&stable| stable >= 0)
    }

    /// Returns the number of rows that the append writes on each layer.
    pub fn appended_rows(&self) -> usize {
        self.inputs.iter().map(|input| input.appended).sum()
    }
}

/// Drives an engine through a workload: the requests, their rows, and the expected contents of all
/// slots.
pub struct WorkloadDriver {
    setting: EngineSetting,
    pool_model: PoolModel,
    slot_model: SlotModel,
    /// Generation of the request at each state.
    generation: Vec<i32>,
    /// Generation of the table at each state.
    table: Vec<i32>,
    /// Number of generations made so far.
    generations: i32,
}

impl WorkloadDriver {
    /// Begins a workload on an engine whose slots are zero. `write(layer, row, bytes)` writes a row
    /// of the pool and is called for each row.
    pub fn new(setting: EngineSetting, write: &mut dyn FnMut(usize, usize, &[u8])) -> Self {
        Self {
            pool_model: PoolModel::new(&setting, write),
            slot_model: SlotModel::new(&setting),
            generation: vec![0; setting.states],
            table: vec![0; setting.states],
            generations: 0,
            setting,
        }
    }

    /// Makes the input of a step. The rows of requests that join are written with `write`.
    pub fn next_step(
        &mut self,
        step: &Step,
        write: &mut dyn FnMut(usize, usize, &[u8]),
    ) -> StepInput {
        let states = self.generation.len();
        if step.swap.is_multiple_of(8) && states > 1 {
            let a = usize::from(step.swap / 8) % states;
            let b = (a + 1) % states;
            self.pool_model.sequences.swap(a, b);
            self.new_generation(a);
            self.new_generation(b);
        }
        let (batch, inputs) = self.batch(step, write);
        let fresh = (0..self.setting.layers).map(|layer| self.fresh(&batch, &inputs, layer));
        let fresh = fresh.collect();
        let append_batch = self.with_complete_tables(&batch, &inputs);
        for input in &inputs {
            if let Some(state) = input.state {
                self.table[state] = self.generation[state];
                self.pool_model.sequences[state].stable += input.accepted;
            }
        }
        StepInput { batch, append_batch, fresh, inputs }
    }

    /// Gives every request of a step a new generation, as a runtime does after a failure of the
    /// work in its stream.
    pub fn renew_generations(&mut self, step_input: &mut StepInput) {
        for (r, input) in step_input.inputs.iter_mut().enumerate() {
            let Some(state) = input.state else { continue };
            self.new_generation(state);
            input.cold = true;
            self.table[state] = self.generation[state];
            step_input.batch.generation[r] = self.generation[state];
            step_input.append_batch.generation[r] = self.generation[state];
        }
    }

    /// Checks the results of the last step after the transfer of all layers. `read(state, layer,
    /// slot, bytes)` reads a slot.
    ///
    /// # Panics
    /// If a result or the contents of a slot are wrong.
    pub fn check(
        &mut self,
        step_input: &StepInput,
        result: &StepResult,
        read: impl FnMut(usize, usize, usize, &mut [u8]),
    ) {
        verify::check_step(
            result,
            &step_input.batch,
            &step_input.inputs,
            &self.pool_model,
            &mut self.slot_model,
            read,
        );
    }

    /// Checks the whole pool after the append of the last step. `read(layer, row, bytes)`
    /// reads a row.
    ///
    /// # Panics
    /// If a row does not have its latest contents.
    pub fn check_pool(&self, read: impl FnMut(usize, usize, &mut [u8])) {
        self.pool_model.check_contents(read);
    }

    fn new_generation(&mut self, state: usize) {
        self.generations += 1;
        // The factor is odd, so the generations are distinct, and they have both signs.
        self.generation[state] = self.generations.wrapping_mul(0x4000_0001);
    }

    fn batch(&mut self, step: &Step, write: WriteRow<'_>) -> (OwnedBatch, Vec<RequestInput>) {
        let params = self.setting.params;
        let k =
            (params.k as usize - usize::from(step.form / 2 % 4).min(params.k as usize - 1)).max(1);
        let mut owned = OwnedBatch::new(k, usize::from(step.form / 8 % 3));
        let blocks_per_request = self.pool_model.sequences[0].blocks.len();
        if blocks_per_request != 0 {
            // The entry of the last block may be missing, or up to two unused entries may follow
            // it.
            owned.block_stride = blocks_per_request + usize::from(step.form / 32 % 4) - 1;
        }
        let mut used = vec![false; self.generation.len()];
        let mut inputs = Vec::new();
        for request in step.requests.iter().take(self.setting.max_requests) {
            let state = usize::from(request.state) % used.len();
            let tokens = usize::from(request.tokens) % (params.tokens as usize + 1);
            if request.action % 8 == 1 || used[state] {
                let rows = vec![vec![i32::from(request.choice); k]; tokens];
                owned.push([-1, 9, i32::from(request.accepted) - 1, -5], &rows);
                owned.blocks.resize(owned.blocks.len() + owned.block_stride, i32::MIN);
                inputs.push(RequestInput::padded(tokens));
                continue;
            }
            used[state] = true;
            inputs.push(self.request(request, state, tokens, &mut owned, write));
        }
        (owned, inputs)
    }

    fn request(
        &mut self,
        r: &Request,
        state: usize,
        tokens: usize,
        owned: &mut OwnedBatch,
        write: WriteRow<'_>,
    ) -> RequestInput {
        let choice = usize::from(r.choice);
        if r.action.is_multiple_of(8) {
            self.pool_model.replace_request(state, choice, write);
            self.new_generation(state);
        }
        let sequence = &mut self.pool_model.sequences[state];
        let (base, end) = (sequence.base, sequence.end());
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
        // Rows from the sequence length on are not tokens: they are neither appended nor accepted.
        let appended = if read_only { 0 } else { tokens.min(seq - stable) };
        if !read_only {
            (stable..stable + appended).for_each(|id| {
                self.pool_model.new_version(state, id);
            });
        }
        let mut rows: Vec<Vec<i32>> = Vec::new();
        for g in 0..tokens {
            let mut row: Vec<i32> = Vec::new();
            for lane in 0..owned.k {
                let raw = match r.ids.len() {
                    0 => 15,
                    n => r.ids[(g * owned.k + lane) % n],
                };
                let x = i32::from(raw >> 4);
                row.push(match raw & 15 {
                    0 => -1,
                    1 => i32::MIN + x,
                    2 => seq as i32 + x,
                    3 => i32::MAX - x,
                    4 => row.last().copied().unwrap_or(-1),
                    5 | 6 if !read_only && seq > stable => {
                        stable as i32 + x % (seq - stable) as i32
                    }
                    7 | 8 if seq > end => self.pool_model.pool_rows as i32 + x,
                    _ if seq > base => base as i32 + x % (seq.min(end) - base) as i32,
                    _ => -1,
                });
            }
            rows.push(row);
        }
        let stable_len = if read_only { -1 } else { stable as i32 };
        owned.push([state as i32, self.generation[state], stable_len, seq as i32], &rows);
        let mut blocks = self.pool_model.sequences[state].blocks.clone();
        blocks.resize(owned.block_stride, -7);
        if choice.is_multiple_of(5) && !blocks.is_empty() {
            let (at, total) = (
                choice / 5 % blocks.len(),
                self.pool_model.pool_rows / self.setting.params.page as usize,
            );
            blocks[at] = [-1, total as i32, i32::MAX, i32::MIN][choice % 4];
        }
        owned.blocks.extend(&blocks);
        let accepted = usize::from(r.accepted) % tokens.max(1) + 1;
        RequestInput {
            state: Some(state),
            tokens,
            stable: (!read_only).then_some(stable),
            seq,
            cold: self.table[state] != self.generation[state],
            accepted: accepted.min(appended),
            appended,
            blocks,
        }
    }

    /// Returns the fresh rows of one layer; rows of padded and read-only requests stay unset.
    fn fresh(&self, owned: &OwnedBatch, inputs: &[RequestInput], layer: usize) -> FreshRows {
        let mut rows = FreshRows::new(&self.setting.format, owned.rows());
        for (r, input) in inputs.iter().enumerate() {
            let (Some(state), Some(stable)) = (input.state, input.stable) else { continue };
            for g in 0..input.tokens {
                let version = self.pool_model.version(state, stable + g) + layer as u32;
                rows.put(owned.cu_q[r] as usize + g, (stable + g) as i32, version);
            }
        }
        rows
    }

    /// Returns the batch with complete, valid block tables, for the append.
    fn with_complete_tables(&self, owned: &OwnedBatch, inputs: &[RequestInput]) -> OwnedBatch {
        let mut append_batch = owned.clone();
        append_batch.blocks.clear();
        append_batch.block_stride = self.pool_model.sequences[0].blocks.len();
        for input in inputs {
            let state = input.state.unwrap_or(0);
            append_batch.blocks.extend(&self.pool_model.sequences[state].blocks);
        }
        append_batch
    }
}
