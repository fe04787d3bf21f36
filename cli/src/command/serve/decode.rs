//! The ranks of a decode instance: which requests wait for memory, and which run.

use std::collections::VecDeque;

/// A data-parallel rank.
#[derive(Clone, Debug, Default)]
pub struct Rank {
    /// (request, tokens of its context) in the order of arrival; each waits for memory.
    waiting: VecDeque<(usize, usize)>,
    /// Requests whose KV rows have arrived since the last step began.
    received: Vec<usize>,
    /// Requests that take part in the current step.
    pub running: Vec<usize>,
    /// Tokens that memory is reserved for.
    reserved: usize,
    /// Requests that memory is reserved for.
    holders: usize,
    /// Tokens of all requests that the rank was given and that have not ended.
    assigned: usize,
}

impl Rank {
    /// Returns the tokens of all requests of the rank, those that wait included.
    pub const fn assigned(&self) -> usize {
        self.assigned
    }

    /// Gives the rank a request, which waits until there is memory for `context` tokens.
    pub fn give(&mut self, request: usize, context: usize) {
        self.assigned += context;
        self.waiting.push_back((request, context));
    }

    /// Reserves memory for the first request that waits, and returns it. Nothing is returned if it does
    /// not fit `capacity` tokens or `batch` requests (0 for any number).
    pub fn reserve(&mut self, capacity: usize, batch: usize) -> Option<usize> {
        let &(request, context) = self.waiting.front()?;
        if self.reserved + context > capacity || (batch > 0 && self.holders == batch) {
            return None;
        }
        self.waiting.pop_front();
        self.reserved += context;
        self.holders += 1;
        Some(request)
    }

    /// Notes that the KV rows of a request have arrived; the next step runs it.
    pub fn receive(&mut self, request: usize) {
        self.received.push(request);
    }

    /// Moves the received requests into the step that begins, and returns them.
    pub fn admit(&mut self) -> Vec<usize> {
        let admitted = std::mem::take(&mut self.received);
        self.running.extend(&admitted);
        admitted
    }

    /// Ends the request at a place of `running`, and frees its memory of `context` tokens.
    pub fn end(&mut self, place: usize, context: usize) {
        self.running.swap_remove(place);
        self.reserved -= context;
        self.assigned -= context;
        self.holders -= 1;
    }
}

/// A decode instance, whose ranks step together.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The ranks.
    pub ranks: Vec<Rank>,
    /// Whether a step is under way.
    pub stepping: bool,
}

impl Instance {
    /// Creates an instance without requests.
    pub fn new(ranks: usize) -> Self {
        Self { ranks: vec![Rank::default(); ranks], stepping: false }
    }

    /// Returns the number of requests that the busiest rank runs.
    pub fn busiest(&self) -> usize {
        self.ranks.iter().map(|rank| rank.running.len()).max().unwrap_or(0)
    }

    /// Returns the number of requests that run.
    pub fn running(&self) -> usize {
        self.ranks.iter().map(|rank| rank.running.len()).sum()
    }
}
