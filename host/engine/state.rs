//! Changes of a state between steps, apart from those of a plan.

use std::ops::Range;
use std::slice;

use avsg_device::memory::{clear_state, invalidate_ids, invalidate_slots, table_words};
use avsg_device::params::ID_LIMIT;
use avsg_device::state::header;

use super::{Batch, Engine, check};
use crate::batch::named;
use crate::plan::Plan;
use crate::{Result, ensure, reserve, rows};

/// The ids that [`Engine::load`] puts into the slots of one state.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// The indexer, whose layers get the rows.
    pub indexer: usize,
    /// The state that gets the rows.
    pub state: i32,
    /// The request's generation, as in a [`Batch`].
    pub generation: i32,
    /// The sequence length; ids at or above it are padding.
    pub seq_len: i32,
    /// The ids, at most S.
    pub ids: &'a [i32],
    /// The host blocks of the request; empty if the geometry has no pages.
    pub block_table: &'a [i32],
}

impl<'a> Load<'a> {
    /// Returns the batch that selects some ids.
    fn batch(&'a self, ids: &'a [i32]) -> Batch<'a> {
        Batch {
            ids,
            ids_stride: ids.len(),
            k: ids.len(),
            cu_q: &[0, 1],
            state: slice::from_ref(&self.state),
            generation: slice::from_ref(&self.generation),
            stable_len: &[-1],
            seq_len: slice::from_ref(&self.seq_len),
            block_table: self.block_table,
            block_stride: self.block_table.len(),
            indexer: self.indexer,
        }
    }
}

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
        self.resources.check_process()?;
        let config = &self.resources.config;
        rows::index("state", state, config.states)?;
        ensure!(ids.start >= 0 && ids.end <= ID_LIMIT && !ids.is_empty(),
            "ids" is format!("{}..{}", ids.start, ids.end), but "ids are 0..{ID_LIMIT}";
            "pass a range of at least one id");
        let mut emptied = 0;
        if !self.device.wait_for_tables()? {
            return Ok(emptied);
        }
        for indexer in 0..config.indexers.count() {
            let table = config.table(indexer, state);
            self.device.edit_table(&self.resources, table, &mut |words| {
                let slots = invalidate_ids(&config.params, words, ids.clone());
                emptied += slots;
                slots > 0
            })?;
        }
        Ok(emptied)
    }

    /// Puts the rows of chosen ids into slots without a selection, for example the ids that a
    /// restored request is going to select: plans K ids at a time into `plan`, and transfers each
    /// plan to every layer of the indexer. Afterwards a plan that selects these ids hits them. The
    /// rows come from the pool, and a plan that evicts decides as in any step.
    ///
    /// Returns the number of rows that were copied to each layer.
    ///
    /// # Errors
    /// As for [`Self::plan`] and [`Self::transfer`], if a layer of the indexer lacks rows of an
    /// earlier plan of the state, or if there are more than S ids. Nothing is changed then. If a
    /// call of the runtime fails, the next plan starts every table cold. If a row of a pool in a file
    /// cannot be read, the last K ids are forgotten, and those before them keep their slots.
    pub fn load(&mut self, load: &Load<'_>, plan: &mut Plan) -> Result<usize> {
        self.resources.check_process()?;
        let config = &self.resources.config;
        let (k, slots) = (config.params.k as usize, config.params.slots as usize);
        ensure!(load.ids.len() <= slots, "ids to load" is load.ids.len(), but
            "a state has {slots} slots"; "pass fewer ids");
        // The first part is the longest, so that no later one is refused. Without ids, padding
        // stands for it.
        let first = load.batch(load.ids.chunks(k).next().unwrap_or(&[-1]));
        check::batch(&self.resources, &mut self.named, &first, plan)?;
        let (indexers, layers) = (config.indexers.clone(), self.resources.pool.layers());
        self.begin();
        for layer in indexers.layers_of(load.indexer, layers) {
            self.order.check_next(&first, layer)?;
        }
        let mut copied = 0;
        for ids in load.ids.chunks(k) {
            self.plan(&load.batch(ids), plan)?;
            copied += plan.total_misses();
            for layer in indexers.layers_of(load.indexer, layers) {
                let transferred = self.transfer(plan, layer, None);
                if transferred.is_err() && self.resources.pool.store().is_some() {
                    self.discard(plan)?;
                }
                transferred?;
            }
        }
        Ok(copied)
    }

    /// Copies a state to another one, with its tables and slots, for a sequence that is forked: the
    /// copy has `to_generation`, and its next plan hits what that of the original would hit in
    /// `from_generation`. Where an indexer has not planned the original in that generation, for
    /// example because the request was only appended so far, the copy is empty. What the other state
    /// held is forgotten. The host rows of the copy are the caller's concern: shared blocks, or
    /// copies with the same ids.
    ///
    /// On an Ascend device the call waits for the work of every stream, as [`Self::invalidate`]
    /// does.
    ///
    /// # Errors
    /// If there is no such state, both are the same, a layer lacks rows of the original's last plan
    /// in that generation, or a block of one of them is not in the caller's buffer; nothing is
    /// changed then. If a call of the runtime fails, the next plan may start every table cold.
    pub fn fork(
        &mut self,
        from: usize,
        from_generation: i32,
        to: usize,
        to_generation: i32,
    ) -> Result<()> {
        self.resources.check_process()?;
        self.begin();
        let config = &self.resources.config;
        rows::index("state", from, config.states)?;
        rows::index("state", to, config.states)?;
        ensure!(from != to, "state" is to, but "a state is copied to another one";
            "pass two different states");
        self.order.check_complete(from, from_generation, &config.indexers)?;
        let mut copy = reserve::filled("table", table_words(&config.params), 0)?;
        if self.device.wait_for_tables()? {
            [from, to].into_iter().try_for_each(|s| self.resources.buffer.check_blocks(s))?;
            for indexer in 0..config.indexers.count() {
                self.fork_table(indexer, [from, to], [from_generation, to_generation], &mut copy)?;
            }
        }
        self.order.filled(to, to_generation);
        self.counters.forked([from, to], [from_generation, to_generation]);
        Ok(())
    }

    /// Copies the table of one indexer, and the slots of its layers, from one state to another. The
    /// copy is empty if the table is of another generation than the first one. The host may not
    /// know the generation, because streams plan too, but the table does.
    fn fork_table(
        &mut self,
        indexer: usize,
        [from, to]: [usize; 2],
        [from_generation, to_generation]: [i32; 2],
        copy: &mut [i32],
    ) -> Result<()> {
        let config = &self.resources.config;
        self.device.edit_table(&self.resources, config.table(indexer, from), &mut |words| {
            copy.copy_from_slice(words);
            false
        })?;
        if copy[header::GENERATION as usize] == from_generation {
            let ids = &copy[header::WORDS..][..config.params.slots as usize];
            for layer in config.indexers.layers_of(indexer, self.resources.pool.layers()) {
                self.device.copy_slots(&self.resources, layer, [from, to], ids)?;
            }
        } else {
            clear_state(&config.params, copy);
        }
        copy[header::GENERATION as usize] = to_generation;
        self.device.edit_table(&self.resources, config.table(indexer, to), &mut |words| {
            words.copy_from_slice(copy);
            true
        })
    }

    /// Drops a planned batch whose transfers are not going to be made, or not to every layer, for
    /// example because its drafts were abandoned: forgets the slots of the ids that it missed, so
    /// that the next plan misses them again, and clears the plan. Other ids keep their slots, and
    /// ids that the plan evicted or invalidated stay forgotten. Lifetimes stay as the plan left them.
    ///
    /// On an Ascend device the call waits as [`Self::invalidate`] does.
    ///
    /// # Errors
    /// If the plan belongs to another engine, holds no batch, was planned in a caller's stream, or
    /// missed a row of a state that was planned again or emptied since; nothing is changed then. If a call of
    /// the runtime fails, the next plan may start every table cold.
    pub fn discard(&mut self, plan: &mut Plan) -> Result<()> {
        ensure!(!plan.is_queued(), "plan" is "planned in a stream", but
            "the host does not see what it missed";
            "transfer it, or give its requests a new generation");
        check::plan(&self.resources, plan)?;
        self.begin();
        self.order.check_last(plan)?;
        if plan.total_misses() > 0 {
            self.device.wait_for_tables()?;
        }
        let config = &self.resources.config;
        let named = named(&plan.state[..plan.requests]);
        for (request, state) in named.filter(|&(request, _)| plan.missed(request)) {
            let misses = plan.misses(request);
            let table = config.table(plan.indexer, state);
            self.device.edit_table(&self.resources, table, &mut |words| {
                invalidate_slots(&config.params, words, misses.id, misses.slot);
                true
            })?;
        }
        self.order.discarded(plan);
        plan.clear();
        Ok(())
    }
}
