//! What the operator is measured against: other policies for hits, other matchers for time.
//!
//! All contenders see the same selections. A [`Policy`] only says which ids were missing; a
//! [`Matcher`] also gives every id its slot, as an attention kernel needs it, and is timed.
//! Negative ids are padding everywhere: no hit, no miss, slot -1.

pub mod belady;
pub mod exact_lru;
pub mod hashmap_lru;
pub mod hisparse;
pub mod ideal_frequency;
pub mod lru_crate;
pub mod previous_step;
mod residents;
pub mod scalar;
pub mod set_fifo;

pub use belady::Belady;
pub use exact_lru::ExactLru;
pub use hashmap_lru::HashMapLru;
pub use hisparse::HiSparse;
pub use ideal_frequency::IdealFrequency;
pub use lru_crate::LruCrate;
pub use previous_step::PreviousStep;
pub use scalar::ScalarTable;
pub use set_fifo::SetFifo;

use crate::trace::Trace;
use avsg::{Error, Result};

/// Who stays in the buffer. The tokens of a step are processed in sequence.
pub trait Policy {
    /// A step begins. Ids of a running step are in use; from here on those of the last one are not.
    fn begin_step(&mut self) {}

    /// Selects the ids of one token and appends those that were not resident to `misses`.
    /// Unless a policy says otherwise, a repeated id counts as a hit after its first.
    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>);
}

/// A row to copy: which id of the token, and into which slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Miss {
    /// Position in the token's ids.
    pub index: i32,
    /// The id.
    pub id: i32,
    /// Where its row goes.
    pub slot: i32,
}

/// A policy that places rows, written to be timed: nothing is allocated per step when `misses` has
/// room for K.
pub trait Matcher {
    /// Clears `misses`, then gives each of `ids` its slot and lists the rows to copy. Ids beyond the
    /// shorter of `ids` and `slots` are ignored.
    fn step(&mut self, ids: &[i32], slots: &mut [i32], misses: &mut Vec<Miss>);
}

/// A matcher as a policy, for its hit rate.
#[derive(Debug)]
pub struct Timed<M> {
    matcher: M,
    slots: Vec<i32>,
    misses: Vec<Miss>,
}

impl<M: Matcher> Timed<M> {
    /// Wraps `matcher`.
    pub fn new(matcher: M) -> Self {
        Self { matcher, slots: Vec::new(), misses: Vec::new() }
    }
}

impl<M: Matcher> Policy for Timed<M> {
    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        self.slots.resize(ids.len(), -1);
        self.matcher.step(ids, &mut self.slots, &mut self.misses);
        misses.extend(self.misses.iter().map(|miss| miss.id));
    }
}

/// Hits of a replay, over all steps and without the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HitCount {
    /// Ids selected, padding not counted.
    pub selected: u64,
    /// Of them resident.
    pub hits: u64,
    /// Ids of the first step.
    pub first_selected: u64,
    /// Of them resident: only a step of several tokens has any.
    pub first_hits: u64,
}

impl HitCount {
    /// The share of hits, first step included; 0 if nothing was selected.
    pub fn rate(&self) -> f64 {
        self.hits as f64 / self.selected.max(1) as f64
    }

    /// The share of hits after the first step, which finds the buffer empty; 0 if it was the only one.
    pub fn rate_after_first(&self) -> f64 {
        let selected = self.selected - self.first_selected;
        (self.hits - self.first_hits) as f64 / selected.max(1) as f64
    }
}

/// Replays a trace.
pub fn count_hits(trace: &Trace, policy: &mut dyn Policy) -> HitCount {
    let mut count = HitCount::default();
    let mut misses = Vec::with_capacity(trace.k);
    for step in 0..trace.steps {
        policy.begin_step();
        for token in 0..trace.tokens {
            let ids = trace.row(step, token);
            misses.clear();
            policy.token(ids, &mut misses);
            let selected = ids.iter().filter(|&&id| id >= 0).count();
            count.selected += selected as u64;
            count.hits += selected.saturating_sub(misses.len()) as u64;
        }
        if step == 0 {
            (count.first_selected, count.first_hits) = (count.selected, count.hits);
        }
    }
    count
}

/// The share of hits after the first step, which finds the buffer empty.
pub fn hit_rate(trace: &Trace, policy: &mut dyn Policy) -> f64 {
    count_hits(trace, policy).rate_after_first()
}

/// The share of hits over all steps, the cold first one included.
pub fn hit_rate_with_first(trace: &Trace, policy: &mut dyn Policy) -> f64 {
    count_hits(trace, policy).rate()
}

/// Slots are numbered by 32 bits in the lists, and a buffer without any is none.
fn check_slots(slots: usize, least: usize) -> Result<usize> {
    const MOST: usize = 1 << 26;
    if slots < least.max(1) || slots > MOST {
        let limit = format!("it must be {} to {MOST}", least.max(1));
        return Err(Error::invalid("slots", slots, limit, "choose a buffer of S >= K rows"));
    }
    Ok(slots)
}
