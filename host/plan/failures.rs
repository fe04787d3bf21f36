//! The requests that transfers of a plan leave out, because rows of the pool's file are not whole.

use super::Plan;

/// A request that transfers of its plan leave out, because a row is not whole: it was never written, was
/// lost with the process that wrote it, or is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The request, by its place in the batch.
    pub request: usize,
    /// The first layer in which the transfer that found it lacks a row.
    pub layer: usize,
    /// The first such row of that layer.
    pub row: usize,
    /// Whether the last transfer of the plan found it. Otherwise an earlier transfer did, of this plan or of
    /// another one since the state was cold.
    pub is_new: bool,
}

impl Plan {
    /// Returns whether transfers leave a request out.
    pub(crate) fn is_left_out(&self, request: usize) -> bool {
        self.failed_row[request] >= 0
    }

    /// Leaves a request out of later transfers.
    pub(crate) fn fail(&mut self, request: usize, layer: usize, row: usize) {
        (self.failed_layer[request], self.failed_row[request]) = (layer as i64, row as i64);
        self.records.iter_mut().for_each(|records| records.clear());
    }

    /// Takes what a transfer has found of the requests. With `fail` it leaves those out that lack a row;
    /// otherwise it forgets them.
    pub(crate) fn take_lost(&mut self, fail: bool) {
        for request in 0..self.requests {
            let lost = self.records.as_ref().and_then(|records| records.lost[request].take());
            self.failed_new[request] = (lost.is_some() && fail).into();
            match lost {
                Some((layer, row)) if fail => self.fail(request, layer, row),
                Some(_) => self.forget_lost(request),
                None => {}
            }
        }
    }

    /// Returns the requests that the transfers so far left out, in the order of the batch. Their slots have
    /// not got their rows, and their state is as in a new generation: its next plan starts cold.
    pub fn failures(&self) -> impl Iterator<Item = Failure> + '_ {
        (0..self.requests).filter(|&request| self.is_left_out(request)).map(|request| {
            let [layer, row] = [&self.failed_layer, &self.failed_row].map(|n| n[request] as usize);
            Failure { request, layer, row, is_new: self.failed_new[request] == 1 }
        })
    }

    /// Returns the ids whose rows are not whole, of a request that a transfer of this plan found to fail, in the
    /// order of its misses; none of another request. An id that the request missed twice comes twice.
    ///
    /// # Panics
    /// If `request` is not below the number of requests.
    pub fn lost_ids(&self, request: usize) -> impl Iterator<Item = i32> {
        let is_lost = |at| self.records.as_ref().is_some_and(|it| it.lost_places.get(at));
        let misses = self.places(request).zip(self.misses(request).id);
        misses.filter(move |&(at, _)| is_lost(at)).map(|(_, &id)| id)
    }

    /// Forgets all failures of the batch.
    pub(super) fn forget_failures(&mut self) {
        let failed = (0..self.requests).filter(|&request| self.is_left_out(request));
        failed.for_each(|request| self.forget_lost(request));
        self.failed_layer[..self.requests].fill(-1);
        self.failed_row[..self.requests].fill(-1);
        self.failed_new[..self.requests].fill(0);
    }

    /// Forgets which misses of a request have rows that are not whole.
    fn forget_lost(&self, request: usize) {
        let records = self.records.iter();
        records.for_each(|it| self.places(request).for_each(|place| it.lost_places.clear(place)));
    }
}
