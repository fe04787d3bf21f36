//! Plans that are given up: by a call, because the next batch is planned into them, or because they were dropped.

use std::mem;

use avsg_device::memory::invalidate_slots;

use super::order::After;
use super::{Engine, check};
use crate::Result;
use crate::plan::Plan;

impl Engine {
    /// Drops a planned batch whose transfers are not going to be made, or not to every layer, for
    /// example because its drafts were abandoned: forgets the slots of the ids that it missed, so
    /// that the next plan misses them again, and clears the plan. Other ids keep their slots, and
    /// ids that the plan evicted or invalidated stay forgotten. Lifetimes stay as the plan left them.
    ///
    /// A transfer of the plan that is under way ends first. On an Ascend device the call waits as
    /// [`Self::invalidate`] does.
    ///
    /// # Errors
    /// If the plan belongs to another engine, holds no batch, was planned in a caller's stream, or
    /// missed a row of a state that was planned again or emptied since; nothing is changed then. If a call of
    /// the runtime fails, the next plan may start every table cold.
    pub fn discard(&mut self, plan: &mut Plan) -> Result<()> {
        check::plan(&self.resources, plan)?;
        self.start()?;
        // Whether that transfer succeeds is nobody's concern any more.
        let _ = self.end_transfer(plan);
        self.order.leave_out_lost(plan);
        self.order.check_last(plan, None)?;
        self.give_up(plan)
    }

    /// Discards the plans that were dropped before a layer had their rows, and ends their transfers.
    pub(super) fn discard_dropped(&mut self) -> Result<()> {
        let mut changed = true;
        // A plan that is gone may have been what an older one waited for.
        while mem::take(&mut changed) {
            for place in 0..self.dropped.places() {
                let Some(mut plan) = self.dropped.take(place) else { continue };
                let _ = self.end_transfer(&mut plan);
                let discarded = if plan.held { Ok(false) } else { self.discard_slots(&mut plan) };
                if plan.unheld() {
                    self.dropped.put_back(place, plan);
                }
                changed |= discarded?;
            }
        }
        Ok(())
    }

    /// Discards a plan, and the dropped plans that it came after.
    pub(super) fn give_up(&mut self, plan: &mut Plan) -> Result<()> {
        self.discard_slots(plan)?;
        plan.clear(None);
        self.discard_dropped()
    }

    /// Forgets the slots that a plan gave to ids, in the states that have no newer plan, and the plan itself
    /// once that is done in all of them. Returns whether that changed the last plan of any state.
    fn discard_slots(&mut self, plan: &mut Plan) -> Result<bool> {
        let (mut waited, mut left, mut changed) = (false, false, false);
        for request in 0..plan.requests {
            let Ok(state) = usize::try_from(plan.state[request]) else { continue };
            match self.order.after(plan, request, state) {
                After::Plan => {
                    left = true;
                    continue;
                }
                After::Nothing if plan.missed(request) => {
                    if !waited {
                        self.device.wait_for_tables()?;
                        waited = true;
                    }
                    let (misses, table) =
                        (plan.misses(request), self.resources.config.table(plan.indexer, state));
                    let params = &self.resources.config.params;
                    self.device.edit_table(table, &mut |words| {
                        invalidate_slots(params, words, misses.id, misses.slot);
                        true
                    })?;
                    self.counters.emptied_slots(table, &mut *self.device);
                }
                After::Nothing | After::Cold => {}
            }
            self.order.discarded(plan, request, state);
            plan.state[request] = -1;
            changed = true;
        }
        if !left {
            plan.clear(None);
        }
        Ok(changed)
    }
}
