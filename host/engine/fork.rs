//! Copies of a state, for a sequence that is forked.

use avsg_device::memory::{clear_state, table_words};
use avsg_device::state::header;

use super::{Engine, check};
use crate::backend::SlotCopy;
use crate::call::named;
use crate::system::reserve;
use crate::{Result, rows};

impl Engine {
    /// Copies a state to another one. It is [`Self::fork_to`] with one target.
    ///
    /// # Errors
    /// As for [`Self::fork_to`].
    pub fn fork(
        &mut self,
        from: usize,
        from_generation: i32,
        to: usize,
        to_generation: i32,
    ) -> Result<()> {
        rows::index("state", to, self.resources.config.states)?;
        // The number of states fits.
        self.fork_to(from, from_generation, &[to as i32], &[to_generation])
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
    pub fn fork_to(
        &mut self,
        from: usize,
        from_generation: i32,
        to: &[i32],
        to_generation: &[i32],
    ) -> Result<()> {
        self.resources.check_process()?;
        self.start()?;
        let config = &self.resources.config;
        rows::index("state", from, config.states)?;
        check::fork_targets(&mut self.named, from, to, to_generation)?;
        for indexer in 0..config.indexers.count() {
            let states = named(to).map(|(_, state)| state).chain([from]);
            self.under_way.check(indexer, states, None)?;
        }
        self.order.check_complete(from, from_generation, &config.indexers)?;
        // All memory is taken before the first copy.
        let mut table = reserve::filled("table", table_words(&config.params), 0)?;
        let mut slots = reserve::with_capacity("slots", config.params.slots as usize)?;
        let mut layers = reserve::with_capacity("layers", self.resources.pool.layers())?;
        if self.device.wait_for_tables()? {
            self.resources.buffer.check_blocks(from)?;
            named(to).try_for_each(|(_, state)| self.resources.buffer.check_blocks(state))?;
            for indexer in 0..config.indexers.count() {
                let (from, to) = ((from, from_generation), (to, to_generation));
                self.fork_table(indexer, from, to, (&mut table, &mut slots, &mut layers))?;
            }
        }
        for ((_, state), &generation) in named(to).zip(to_generation) {
            self.order.filled(state, generation);
            self.counters.forked([from, state], [from_generation, generation]);
        }
        Ok(())
    }

    /// Copies the table of one indexer, and the slots of its layers, from a state to others. The copies
    /// are empty if the table is of another generation than `from_generation`. The host may not know the
    /// generation, because streams plan too, but the table does.
    fn fork_table(
        &mut self,
        indexer: usize,
        (from, from_generation): (usize, i32),
        (to, to_generation): (&[i32], &[i32]),
        (table, slots, layers): (&mut [i32], &mut Vec<u32>, &mut Vec<usize>),
    ) -> Result<()> {
        let config = &self.resources.config;
        self.device.edit_table(&self.resources, config.table(indexer, from), &mut |words| {
            table.copy_from_slice(words);
            false
        })?;
        if table[header::GENERATION as usize] == from_generation {
            let ids = (0..).zip(&table[header::WORDS..][..config.params.slots as usize]);
            slots.clear();
            slots.extend(ids.filter(|(_, id)| **id >= 0).map(|(slot, _)| slot));
            layers.clear();
            layers.extend(config.indexers.layers_of(indexer, self.resources.pool.layers()));
            let copy = SlotCopy { layers, from, to, slots };
            self.device.copy_slots(&self.resources, &copy)?;
        } else {
            clear_state(&config.params, table);
        }
        for ((_, state), &generation) in named(to).zip(to_generation) {
            table[header::GENERATION as usize] = generation;
            let at = config.table(indexer, state);
            self.device.edit_table(&self.resources, at, &mut |words| {
                words.copy_from_slice(table);
                true
            })?;
        }
        Ok(())
    }
}
