//! Changes of a state between steps, apart from those of a plan.

use std::ops::Range;

use avsg_device::memory::invalidate_ids;
use avsg_device::params::ID_LIMIT;

use super::Engine;
use crate::{Error, Result, rows};

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
        let config = &self.resources.config;
        rows::index("state", state, config.states)?;
        if ids.start < 0 || ids.end > ID_LIMIT || ids.is_empty() {
            let (value, limit) =
                (format!("{}..{}", ids.start, ids.end), format!("ids are 0..{ID_LIMIT}"));
            return Err(Error::invalid("ids", value, limit, "pass a range of at least one id"));
        }
        let mut emptied = 0;
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
}
