//! Random arguments of calls, now and then with a mistake.

use std::ffi::c_void;
use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::atomic::Ordering;

use avsg_capi::*;
use avsg_capi_testkit::*;
use avsg_testkit::batch::{OwnedBatch, requests};
use avsg_testkit::fresh::FreshRows;

use super::models::EngineModel;
use super::random_caller::RandomCaller;

impl RandomCaller<'_> {
    /// Returns the generation of a state, which changes at times.
    pub(super) fn generation(&self, state: usize) -> i32 {
        let calls = self.shared.calls.load(Ordering::Relaxed);
        2 * self.epoch + if state == 1 { (calls / 2000 % 2) as i32 } else { 0 }
    }

    /// Returns a batch of one or two requests with at most `most` rows each.
    pub(super) fn batch(&mut self, model: Option<&EngineModel>, most: usize) -> OwnedBatch {
        let blocks = EngineModel::blocks(model.is_none_or(|model| model.paged));
        let mut owned = OwnedBatch::new(K, self.below(3));
        owned.block_stride = blocks.len();
        let (requests, first, near) = (1 + self.below(2), self.below(2), self.below(ROWS));
        for n in 0..requests {
            let state = (first + n) % 2;
            let generation = self.generation(state);
            let rows = if self.rarely(30) { 0 } else { 1 + self.below(most) };
            let (stable, seq) = if self.rarely(2) {
                (-1, ROWS - self.below(3))
            } else {
                let stable = self.below(ROWS - rows + 1);
                (stable as i32, stable + rows)
            };
            let ids: Vec<Vec<i32>> = (0..rows)
                .map(|row| (0..K).map(|i| self.id(near + 5 * row + 3 * i, seq)).collect())
                .collect();
            let state = if self.rarely(12) { -1 } else { state as i32 };
            owned.push([state, generation, stable, seq as i32], &ids);
            owned.blocks.extend(&blocks);
        }
        owned
    }

    /// Returns an id that is usually near `near` and below `seq`.
    fn id(&mut self, near: usize, seq: usize) -> i32 {
        match self.below(60) {
            0 => [-1, i32::MIN, -7][self.below(3)],
            1 => [seq as i32, i32::MAX][self.below(2)],
            2..8 if seq > 0 => (seq - 1 - self.below(seq.min(3))) as i32,
            _ => ((near + self.below(4)) % seq.max(1)) as i32,
        }
    }

    /// Returns the fresh rows of a batch in one layer.
    pub(super) fn fresh_rows(
        model: Option<&EngineModel>,
        owned: &OwnedBatch,
        layer: usize,
    ) -> FreshRows {
        let mut rows = FreshRows::new(&format(), owned.rows());
        let Some(model) = model else { return rows };
        for (at, id) in stored_ids(owned) {
            let host = model.host_row(id);
            rows.put(at, host as i32, model.pool.version(layer, host));
        }
        rows
    }

    /// Makes a mistake in the numbers of a batch.
    fn spoil_numbers(&mut self, owned: &mut OwnedBatch) {
        let bad = [-1, -2, 2, i32::MAX, i32::MIN, 0, 1, 3][self.below(8)];
        let n = self.below(owned.state.len());
        match self.below(6) {
            0 => owned.state[n] = bad,
            1 => owned.cu_q[n] = bad,
            2 => owned.cu_q[n + 1] = bad,
            3 => owned.seq[n] = bad,
            4 => owned.stable[n] = bad,
            _ if !owned.blocks.is_empty() => {
                let at = self.below(owned.blocks.len());
                owned.blocks[at] = bad;
            }
            _ => owned.indexer = bad as usize,
        }
    }

    /// Makes a mistake in the struct of a batch.
    fn spoil_struct(&mut self, batch: &mut avsg_batch) {
        let avsg_batch { k, ids_stride, block_stride, indexer, append_rows, .. } = batch;
        for number in [k, ids_stride, block_stride, indexer, append_rows] {
            *number = self.mostly(*number);
        }
        let avsg_batch { ids, cu_q, state, generation, stable_len, seq_len, block_table, .. } =
            batch;
        for array in [ids, cu_q, state, generation, stable_len, seq_len, block_table] {
            let right = array.len;
            array.len = self.mostly(right);
            if self.rarely(40) {
                array.data = null();
            }
            if self.rarely(40) {
                array.data = array.data.wrapping_byte_add(1);
                // The array stays inside the allocation if the call accepts it.
                array.len = array.len.min(right).saturating_sub(1);
            }
        }
        self.corrupt_size(batch);
    }

    /// Returns the struct of fresh rows, which may have a mistake.
    pub(super) fn fresh(&mut self, rows: &FreshRows) -> avsg_fresh {
        let mut fresh = c_fresh(rows);
        fresh.bytes[0] = self.mostly(fresh.bytes[0]);
        fresh.segments = self.mostly(2);
        if self.mistake(200) {
            fresh.data[1] = null();
        }
        self.corrupt_size(&mut fresh);
        fresh
    }

    /// Makes a batch's mistakes and returns its struct.
    pub(super) fn c_batch(&mut self, owned: &mut OwnedBatch) -> avsg_batch {
        if self.mistake(30) {
            self.spoil_numbers(owned);
        }
        let mut batch = c_batch(owned);
        if self.mistake(20) {
            self.spoil_struct(&mut batch);
        }
        batch
    }

    pub(super) fn stream(&mut self) -> *mut c_void {
        if self.mistake(300) { without_provenance_mut(8) } else { null_mut() }
    }
}

/// Returns the rows of a batch that an append stores, as the row's index in the batch and its id.
pub(super) fn stored_ids(owned: &OwnedBatch) -> impl Iterator<Item = (usize, usize)> {
    let requests = requests(owned).filter(|request| request.state.is_some());
    requests.filter_map(|request| Some(request.rows.zip(request.stable?..))).flatten()
}
