//! Changes of a state between steps, apart from those of a plan: its slots, and copies of it.

use std::ops::Range;

use avsg_device::memory::{clear_state, find_ids, invalidate_ids, table_words};
use avsg_device::state::header;

use super::{Batch, Engine, check};
use crate::backend::SlotCopy;
use crate::call::{Call, Work, named};
use crate::plan::Plan;
use crate::system::reserve;
use crate::{Error, Result, ensure};

impl Engine {
    /// Forgets the slots of a state's ids in a range, because their host rows were rewritten under a
    /// live request. The next plan that selects one of them misses it and copies the new row; other
    /// ids keep their slots. Returns the number of slots that were emptied, over all indexers.
    ///
    /// A plan that was made before keeps its slots, so transfer it to its layers first if it
    /// selected such an id. On an Ascend device the call waits for the work of every stream of the
    /// device, and no stream may be captured meanwhile.
    ///
    /// # Errors
    /// If there is no such state, the range is empty or leaves the ids, or a call of the runtime
    /// fails. After the latter the next plan may start every table cold.
    pub fn invalidate(&mut self, state: usize, ids: Range<i32>) -> Result<usize> {
        check::id_range(&ids)?;
        self.start_on(0, state)?;
        let config = &self.resources.config;
        let mut emptied = 0;
        if !self.device.wait_for_tables()? {
            return Ok(emptied);
        }
        for indexer in 0..config.indexers.count() {
            let table = config.table(indexer, state);
            self.device.edit_table(table, &mut |words| {
                let slots = invalidate_ids(&config.params, words, ids.clone());
                emptied += slots;
                slots > 0
            })?;
            self.counters.emptied_slots(table, &mut *self.device);
        }
        Ok(emptied)
    }

    /// Puts the rows of chosen ids into slots without a selection, for example the ids that a
    /// restored request is going to select: plans K ids at a time into `plan`, and transfers each
    /// plan to every layer of the indexer. The next plan hits these ids as those that [`Self::held`] tells
    /// of. The rows come from the pool, and a plan that evicts decides as in any step. `batch` has one request, whose
    /// `ids` are at most S; `k`, `ids_stride`, `cu_q` and `stable_len` are ignored.
    ///
    /// Returns the number of rows that were copied to each layer.
    ///
    /// # Errors
    /// As for [`Self::plan`] and [`Self::transfer`], if a layer of the indexer lacks rows of an
    /// earlier plan of the state, or if there are more than S ids. Nothing is changed then. If a
    /// call of the runtime fails, the next plan starts every table cold. If the device of a pool in a file
    /// fails, the last K ids are forgotten, and those before them keep their slots. If a row of such a pool is
    /// not whole, the state is empty for this indexer, and [`Plan::failures`] names the row.
    pub fn load(&mut self, batch: &Batch<'_>, plan: &mut Plan) -> Result<usize> {
        self.resources.birth.check("engine")?;
        let config = &self.resources.config;
        let (k, slots) = (config.params.k as usize, config.params.slots as usize);
        ensure!(batch.ids.len() <= slots, "ids to load" is batch.ids.len(), but
            "a state has {slots} slots"; "pass fewer ids");
        let (indexers, all) = (&config.indexers, self.resources.pool.layers());
        let layers = reserve::collected("layers", all, indexers.layers_of(batch.indexer, all))?;
        let of = |ids| Batch {
            ids,
            ids_stride: ids.len(),
            k: ids.len(),
            cu_q: &[0, 1],
            stable_len: &[-1],
            ..*batch
        };
        // The first part is the longest, so that no later one is refused. Without ids, padding
        // stands for it.
        let first = of(batch.ids.chunks(k).next().unwrap_or(&[-1]));
        self.check(Call::of(Work::Plan, first, 0), Some(plan))?;
        self.check_free(plan)?;
        self.start_plan(&first, plan, &layers)?;
        let mut copied = 0;
        for ids in batch.ids.chunks(k) {
            self.plan(&of(ids), plan)?;
            copied += plan.total_misses();
            if let Err(error) = self.transfer(plan, &layers, None) {
                // The plan is kept after lost rows, and a failure that emptied every table leaves nothing to discard.
                if !matches!(error, Error::LostRows { .. }) && !self.check_epoch() {
                    self.discard(plan)?;
                }
                return Err(error);
            }
        }
        Ok(copied)
    }

    /// Tells which ids of a range a state holds for an indexer, for example the ids of a shared prefix:
    /// sets bit i % 64 of word i / 64 of `bits` if it holds id `ids.start` + i, and clears the others.
    /// Returns the number of ids that it holds.
    ///
    /// A bit means that the first token of the next plan of the state in `generation`, if it selects the id,
    /// hits it and has no row to copy. It needs a `stable_len` above the id, or of -1, because a plan drops
    /// the slots of other ids first, and a `seq_len` above it. A transfer of an earlier plan that a layer
    /// lacks is still due. Bits say nothing about a later token of that plan, for which an earlier one may
    /// have evicted the id, nor about later plans. In another generation than that of its last plan, load or
    /// fork a state holds nothing.
    ///
    /// On an Ascend device the call waits as [`Self::invalidate`] does and copies the table to the host;
    /// it is not meant for the step path.
    ///
    /// # Errors
    /// If there is no such indexer or state, the range is empty or leaves the ids, `bits` is too short, or
    /// a call of the runtime fails.
    pub fn held(
        &mut self,
        indexer: usize,
        state: usize,
        generation: i32,
        ids: Range<i32>,
        bits: &mut [u64],
    ) -> Result<usize> {
        check::id_range(&ids)?;
        let words = ids.len().div_ceil(64);
        ensure!(bits.len() >= words, "words of bits" is bits.len(), but
            "{} ids need {words}", ids.len(); "pass a bit for each id, 64 in a word");
        let table = self.start_on(indexer, state)?;
        bits.fill(0);
        if !self.device.wait_for_tables()? {
            return Ok(0);
        }
        let table = self.device.read_table(table)?;
        if table[header::GENERATION as usize] == generation {
            find_ids(&self.resources.config.params, table, ids.clone(), |id| {
                let at = (id - ids.start) as usize;
                bits[at / 64] |= 1 << (at % 64);
            });
        }
        Ok(bits.iter().map(|word| word.count_ones() as usize).sum())
    }

    /// Copies a state to others, with its tables and its slots that hold rows, for a sequence that is
    /// forked. A copy has the generation at its place in `to_generation`, and its next plan hits what that
    /// of the original would hit in `from_generation`. Where an indexer has not planned the original in that generation, for
    /// example because the request was only appended so far, the copies are empty. What the other states
    /// held is forgotten. On the CPU all workers copy. The host rows of the copy are the caller's concern: shared blocks, or
    /// copies with the same ids.
    ///
    /// On an Ascend device the call waits for the work of every stream, as [`Self::invalidate`]
    /// does.
    ///
    /// # Errors
    /// If there is no such state, a target is the original or named twice, the arrays differ in length, a
    /// layer lacks rows of the original's last plan in that generation, a transfer of one of the states is under
    /// way, or a block of one of the states is
    /// not in the caller's buffer; nothing is changed then. If a call of the runtime fails, the next plan
    /// may start every table cold.
    pub fn fork(
        &mut self,
        from: usize,
        from_generation: i32,
        to: &[i32],
        to_generation: &[i32],
    ) -> Result<()> {
        self.start_on(0, from)?;
        check::fork_targets(&mut self.named, from, to, to_generation)?;
        let (config, pool) = (&self.resources.config, &self.resources.pool);
        let (params, buffer) = (&config.params, &self.resources.buffer);
        for indexer in 0..config.indexers.count() {
            let states = named(to).map(|(_, state)| state).chain([from]);
            self.order.check_under_way(indexer, states, 0)?;
        }
        self.order.check_complete(from, from_generation, &config.indexers)?;
        // All memory is taken before the first copy.
        let mut table = reserve::filled("table", table_words(params), 0)?;
        let mut slots = reserve::with_capacity("slots", params.slots as usize)?;
        let mut layers = reserve::with_capacity("layers", pool.layers())?;
        let mut indexers = 0..0;
        if self.device.wait_for_tables()? {
            buffer.check_blocks(from)?;
            named(to).try_for_each(|(_, state)| buffer.check_blocks(state))?;
            indexers = 0..config.indexers.count();
        }
        for indexer in indexers {
            self.device.edit_table(config.table(indexer, from), &mut |words| {
                table.copy_from_slice(words);
                false
            })?;
            // The host may not know the generation, because streams plan too, but the table does.
            if table[header::GENERATION as usize] == from_generation {
                let ids = (0..).zip(&table[header::WORDS..][..params.slots as usize]);
                slots.clear();
                slots.extend(ids.filter(|(_, id)| **id >= 0).map(|(slot, _)| slot));
                layers.clear();
                layers.extend(config.indexers.layers_of(indexer, pool.layers()));
                let copy = SlotCopy { layers: &layers, from, to, slots: &slots };
                self.device.copy_slots(&copy)?;
            } else {
                clear_state(params, &mut table);
            }
            for ((_, state), &generation) in named(to).zip(to_generation) {
                table[header::GENERATION as usize] = generation;
                let at = config.table(indexer, state);
                self.device.edit_table(at, &mut |words| {
                    words.copy_from_slice(&table);
                    true
                })?;
            }
        }
        for ((_, state), &generation) in named(to).zip(to_generation) {
            for indexer in 0..config.indexers.count() {
                let [of, at] = [from, state].map(|state| config.table(indexer, state));
                if self.order.empties(indexer, from, from_generation) {
                    self.counters.emptied(at..at + 1);
                } else {
                    self.counters.copied(of, at);
                }
            }
            self.order.filled(state, generation);
        }
        Ok(())
    }
}
