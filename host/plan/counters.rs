//! The counters of a plan, which any thread may read while a batch is planned into it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// The batch that a plan holds, in numbers; all 0 if it holds none, or while one is planned into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanCounters {
    /// The number of the batch among the plans of its engine, from 1, which error messages contain. Another number than
    /// before says that the plan was overwritten.
    pub number: u64,
    /// Requests, padded ones included.
    pub requests: u64,
    /// Tokens of the batch.
    pub tokens: u64,
    /// Selected ids that have a slot.
    pub selected: u64,
    /// Misses among `selected`: the rows that one transfer copies.
    pub misses: u64,
    /// The status bits of all requests, combined by OR.
    pub status: i32,
}

/// Counters that one thread writes and any thread reads.
#[derive(Debug, Default)]
pub struct SharedCounters {
    number: AtomicU64,
    words: [AtomicU64; 5],
    queued: AtomicBool,
}

impl SharedCounters {
    /// Returns the counters of one batch.
    pub fn read(&self) -> PlanCounters {
        let number = self.number.load(Ordering::Acquire);
        let words = self.words.each_ref().map(|word| word.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        if number == 0 || self.number.load(Ordering::Relaxed) != number {
            return PlanCounters::default();
        }
        let [requests, tokens, selected, misses, status] = words;
        PlanCounters { number, requests, tokens, selected, misses, status: status as i32 }
    }

    /// Returns whether the plan was made in a caller's stream, so that the host cannot read its outputs.
    pub fn queued(&self) -> bool {
        self.queued.load(Ordering::Relaxed)
    }

    /// Notes that the plan holds no batch, or one of a caller's stream.
    pub(super) fn clear(&self, queued: bool) {
        self.number.store(0, Ordering::Relaxed);
        self.queued.store(queued, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// Sets the counters, after [`Self::clear`].
    pub(super) fn set(&self, counters: PlanCounters) {
        let PlanCounters { number, requests, tokens, selected, misses, status } = counters;
        let words = [requests, tokens, selected, misses, status as u32 as u64];
        self.words.iter().zip(words).for_each(|(to, word)| to.store(word, Ordering::Relaxed));
        self.number.store(number, Ordering::Release);
    }
}
