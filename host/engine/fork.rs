//! Copies of a state, for a sequence that is forked.

use avsg_device::memory::{clear_state, table_words};
use avsg_device::state::header;

use super::{Engine, check};
use crate::Result;
use crate::backend::SlotCopy;
use crate::call::named;
use crate::system::reserve;

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
        // A number that does not fit is no state.
        let to = i32::try_from(to).unwrap_or(i32::MAX);
        self.fork_to(from, from_generation, &[to], &[to_generation])
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
            self.order.filled(state, generation);
            self.counters.forked([from, state], [from_generation, generation]);
        }
        Ok(())
    }
}
