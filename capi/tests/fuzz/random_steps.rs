//! Random steps. A single thread demands that each one without a mistake succeeds and is
//! exact.

use std::ffi::c_void;
use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::atomic::Ordering;

use avsg_capi::avsg_status::{AVSG_LOST_ROWS, AVSG_OK};
use avsg_capi::*;
use avsg_capi_testkit::*;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::exact::{assert_exact, for_each_id};
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::memory::read_words;

use super::models::EngineModel;
use super::random_caller::RandomCaller;
use super::random_files::Failed;
use super::shared_handles::Kind;

impl RandomCaller<'_> {
    /// Returns the generation of a state, which changes at times.
    pub(super) fn generation(&self, state: usize) -> i32 {
        let calls = self.shared.calls.load(Ordering::Relaxed);
        2 * self.epoch + if state == 1 { (calls / 2000 % 2) as i32 } else { 0 }
    }

    /// Returns a batch of one or two requests with at most `most` rows each.
    pub(super) fn batch(&mut self, model: Option<&EngineModel>, most: usize) -> OwnedBatch {
        let blocks = EngineModel::blocks(model.is_none_or(|model| model.paged));
        let stride = blocks.len();
        let mut owned = OwnedBatch { block_stride: stride, ..OwnedBatch::new(K, self.below(3)) };
        let (requests, first_state, first_id) =
            (1 + self.below(2), self.below(2), self.below(ROWS));
        for n in 0..requests {
            let state = (first_state + n) % 2;
            let generation = self.generation(state);
            let rows = if self.rarely(30) { 0 } else { 1 + self.below(most) };
            let (stable, seq) = if self.rarely(2) {
                (-1, ROWS - self.below(3))
            } else {
                let stable = self.below(ROWS - rows + 1);
                (stable as i32, stable + rows)
            };
            let ids: Vec<Vec<i32>> = (0..rows)
                .map(|row| (0..K).map(|i| self.id(first_id + 5 * row + 3 * i, seq)).collect())
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
            rows.put(at, host as i32, model.pool.0.version(layer, host));
        }
        rows
    }

    /// Makes a mistake in the numbers of a batch.
    fn spoil_numbers(&mut self, owned: &mut OwnedBatch) {
        self.mistakes += 1;
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
        self.mistakes += 1;
        batch.k = self.mostly(batch.k);
        batch.ids_stride = self.mostly(batch.ids_stride);
        batch.block_stride = self.mostly(batch.block_stride);
        batch.indexer = self.mostly(batch.indexer);
        batch.append_rows = self.mostly(0);
        for array in [
            &mut batch.ids,
            &mut batch.cu_q,
            &mut batch.state,
            &mut batch.generation,
            &mut batch.stable_len,
            &mut batch.seq_len,
            &mut batch.block_table,
        ] {
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
        if self.rarely(30) {
            self.spoil_numbers(owned);
        }
        let mut batch = c_batch(owned);
        if self.rarely(20) {
            self.spoil_struct(&mut batch);
        }
        batch
    }

    pub(super) fn stream(&mut self) -> *mut c_void {
        if self.mistake(300) { without_provenance_mut(8) } else { null_mut() }
    }

    /// Makes a step of one indexer: a plan, and a transfer to each of its layers.
    pub(super) fn step(&mut self) {
        let engine = self.handle(Kind::Engine);
        let (model, plan) = (self.engine_model(engine), self.plan_of(engine));
        let model = model.as_deref();
        if let Some(model) = model.filter(|model| self.verify && !model.slots.table.is_empty())
            && self.rarely(100)
        {
            self.move_blocks(model);
            self.epoch += 1;
        }
        let first = self.index(2);
        let mut owned = self.batch(model, model.map_or(2, |model| model.tokens));
        owned.indexer = model.map_or(0, |model| model.indexer(first));
        let rows = [0, 1].map(|layer| Self::fresh_rows(model, &owned, layer));
        let fresh = [self.fresh(&rows[first % 2]), c_fresh(&rows[1 - first % 2])];
        let (batch, stream) = (self.c_batch(&mut owned), self.stream());
        let fresh_pointer = if self.mistake(60) { null() } else { &fresh[0] };
        let held = model.filter(|_| self.mistakes == 0 && self.verify);
        let held = held.map(|_| self.held_before(engine, &owned));
        let listed = model.is_some_and(|model| model.indexers == 1) && self.rarely(4);
        // SAFETY: `owned` and `rows` own the arrays, each length is at most the true one or too
        // large for any memory, and handles are looked up.
        let (planned, moved) = unsafe {
            if listed {
                let planned = self.record(avsg_engine_plan(engine, &batch, plan, stream));
                let of_layers = in_order(first, fresh[0], fresh[1]);
                let (layers, count) = self.list();
                let layers = layers.as_ptr();
                let rows = if fresh_pointer.is_null() { null() } else { of_layers.as_ptr() };
                let moved = avsg_engine_transfer(engine, plan, layers, count, rows, stream);
                (planned, moved)
            } else if self.rarely(4) {
                let planned = self.record(avsg_engine_plan(engine, &batch, plan, stream));
                let other = if self.mistake(16) { self.handle(Kind::Plan) } else { plan };
                let moved = avsg_engine_transfer(engine, other, &first, 1, fresh_pointer, stream);
                (planned, moved)
            } else {
                let status = avsg_engine_step(engine, &batch, plan, first, fresh_pointer, stream);
                (status == AVSG_OK || status == AVSG_LOST_ROWS, status)
            }
        };
        let exact = model.filter(|_| self.mistakes == 0 && self.verify);
        // A transfer that leaves requests out serves the others, also those of an older plan after a plan that failed.
        let some = self.record(moved) || planned || moved == AVSG_LOST_ROWS;
        let mut layers = if listed { vec![0, 1] } else { vec![first] };
        let mut failed = Failed::new();
        if let Some(model) = exact {
            assert!(planned, "a plan without a mistake: {}", last_error());
            self.check_transfer(model, plan, &layers, moved, &mut failed);
        }
        if some && !listed && model.is_some_and(|model| model.indexers == 1) {
            let layer = 1 - first % 2;
            // SAFETY: as above.
            let moved =
                unsafe { avsg_engine_transfer(engine, plan, &layer, 1, &fresh[1], null_mut()) };
            self.record(moved);
            layers = vec![0, 1];
            if let Some(model) = exact {
                self.check_transfer(model, plan, &[layer], moved, &mut failed);
            }
        }
        if let Some(model) = exact {
            self.check_step(model, plan, &owned, &layers, &failed);
            self.check_held(plan, &owned, &held.unwrap());
            self.recover((engine, model), plan, &owned, &failed);
        } else if some {
            // The slots may have other rows, or a layer lacks a plan.
            self.epoch += 1;
        }
    }

    /// Returns a list of both layers and their number, at times with a mistake.
    pub(super) fn list(&mut self) -> ([usize; 2], usize) {
        let layers = if self.mistake(24) { [self.index(2), self.index(2)] } else { [0, 1] };
        let count = self.mostly(2);
        (layers, if count == 1 { 0 } else { count })
    }

    /// Returns, for each request of a batch, a bit for each id below [`ROWS`] that its state holds.
    fn held_before(&mut self, engine: *mut avsg_engine, owned: &OwnedBatch) -> Vec<[u64; 2]> {
        let mut all = Vec::new();
        for (&state, &generation) in owned.state.iter().zip(&owned.generation) {
            let (mut bits, state) = ([u64::MAX; ROWS / 64], state.max(0) as usize);
            let (at, words) = (bits.as_mut_ptr(), bits.len());
            // SAFETY: the array has that many words.
            let status = unsafe {
                avsg_engine_get_held(engine, owned.indexer, state, generation, 0, ROWS, at, words)
            };
            self.expect(status);
            all.push(bits);
        }
        all
    }

    /// Checks that the first token of each request hit what its state held, and nothing else.
    fn check_held(&mut self, plan: *mut avsg_plan, owned: &OwnedBatch, held: &[[u64; 2]]) {
        for (request, bits) in held.iter().enumerate() {
            let (first, end) = (owned.cu_q[request] as usize, owned.cu_q[request + 1] as usize);
            if owned.state[request] < 0 || first == end {
                continue;
            }
            let mut arrays = sized::<avsg_plan_arrays>();
            // SAFETY: the struct has its `size` set, and the arrays of the plan have the lengths that the
            // header says.
            let (slots, missed) = unsafe {
                self.expect(avsg_plan_get_arrays(plan, HOST, &mut arrays));
                let misses = arrays.row_misses.add(first).read() as usize;
                let at = first * K;
                (
                    read_words(None, arrays.slot.add(at), K),
                    read_words(None, arrays.miss_id.add(at), misses),
                )
            };
            for (&id, &slot) in owned.row(first).iter().zip(&slots).filter(|(_, slot)| **slot >= 0)
            {
                let stable = owned.stable[request];
                let held =
                    bits[id as usize / 64] >> (id % 64) & 1 == 1 && (stable < 0 || id < stable);
                assert_eq!(held, !missed.contains(&id), "request {request}, id {id}, slot {slot}");
                self.checked += 1;
            }
        }
    }

    /// Checks the outputs of a step, and the slots of the requests that did not fail.
    fn check_step(
        &mut self,
        model: &EngineModel,
        plan: *mut avsg_plan,
        owned: &OwnedBatch,
        layers: &[usize],
        failed: &Failed,
    ) {
        let (mut arrays, mut counters): (avsg_plan_arrays, avsg_plan_counters) = (sized(), sized());
        // SAFETY: the structs have their `size` set, and the plan's arrays hold the batch's rows.
        let (slots, row_misses) = unsafe {
            self.expect(avsg_plan_get_arrays(plan, HOST, &mut arrays));
            self.expect(avsg_plan_get_counters(plan, &mut counters));
            let rows = owned.rows();
            (read_words(None, arrays.slot, rows * K), read_words(None, arrays.row_misses, rows))
        };
        assert_eq!(row_misses, listed_misses(&arrays, owned));
        let (mut selected, mut compared) = (0, 0);
        for &layer in layers {
            for_each_id(
                &owned.batch(),
                ROW,
                |row| &slots[row * K..][..K],
                |state, slot, bytes| model.read(layer, state, slot, bytes),
                |_, id| {
                    let host = model.host_row(id as usize);
                    (host as i32, model.pool.0.version(layer, host))
                },
                |seen| {
                    selected += usize::from(!seen.bytes.is_empty());
                    if !failed.contains_key(&seen.request) {
                        compared += assert_exact(seen, layer);
                    }
                },
            );
        }
        self.checked += compared;
        let selected = selected / layers.len();
        assert_eq!(counters.selected, selected);
    }
}

/// Returns the fresh rows of a layer and those of the other one in the order of the layers.
fn in_order<T>(layer: usize, of_layer: T, other: T) -> [T; 2] {
    if layer.is_multiple_of(2) { [of_layer, other] } else { [other, of_layer] }
}

/// Returns the number of misses of each row of a batch by the positions in the miss lists.
fn listed_misses(arrays: &avsg_plan_arrays, owned: &OwnedBatch) -> Vec<i32> {
    let mut all = vec![0; owned.rows()];
    for request in 0..owned.state.len() {
        let first = owned.cu_q[request] as usize;
        // SAFETY: the plan's arrays hold the batch's requests and rows.
        let positions = unsafe {
            let total =
                arrays.summary.add(request * AVSG_SUMMARY_WORDS + AVSG_SUMMARY_MISSES).read();
            read_words(None, arrays.miss_position.add(first * K), total as usize)
        };
        positions.iter().for_each(|&at| all[first + at as usize / K] += 1);
    }
    all
}

/// Returns the rows of a batch that an append stores, as the row's index in the batch and its id.
pub(super) fn stored_ids(owned: &OwnedBatch) -> impl Iterator<Item = (usize, usize)> {
    let requests = (0..owned.state.len()).filter(|&n| owned.state[n] >= 0 && owned.stable[n] >= 0);
    requests.flat_map(|n| {
        let (first, end) = (owned.cu_q[n] as usize, owned.cu_q[n + 1] as usize);
        let stable = owned.stable[n] as usize;
        (first..end).map(move |row| (row, stable + row - first))
    })
}
