//! Baselines of the operator: other replacement policies for hit rates, other matchers for time.
//!
//! All baselines process the same selections. A [`Policy`] only lists the ids that miss. Those that are
//! timed also give every id its slot, as an attention kernel needs it ([`Matched`]). Negative ids are
//! padding in all of them: they are neither hits nor misses, and their slot is -1.

pub mod belady;
pub mod exact_lru;
pub mod order;
pub mod previous_step;
pub mod resident_lru;
pub mod residents;

pub use belady::Belady;
pub use exact_lru::ExactLru;
pub use previous_step::PreviousStep;
pub use resident_lru::ResidentLru;

use std::iter::Sum;

use crate::checks::in_range;
use crate::trace::Trace;
use avsg::Result;
use avsg::cpu::machine::Machine;
use avsg::cpu::standalone_table::StandaloneTable;
use avsg::device::params::Params;

/// The name in tables and charts of copying every selected row.
pub const NO_BUFFER: &str = "no buffer";
/// The name of copying each row that a step selects once, [`count_repeats`].
pub const NO_REPEATS: &str = "no buffer, no repeats";
/// The name of the usual policy, [`ExactLru`].
pub const LRU: &str = "exact LRU";
/// The name of the policy that no other can surpass, [`Belady`].
pub const OPTIMUM: &str = "Belady's optimum";

/// A replacement policy, which decides the ids that stay in the buffer. The tokens of a step are
/// processed in sequence.
pub trait Policy {
    /// Begins a step. Ids of the previous step are not in use any more and may be evicted.
    fn begin_step(&mut self) {}

    /// Selects the ids of one token and appends those that were not resident to `misses`. Unless a
    /// policy says otherwise, the repetitions of an id within the token count as hits.
    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>);
}

/// What a timed step returns. Its lists keep their memory from one step to the next.
#[derive(Debug, Default)]
pub struct Matched {
    /// The slot of each id; -1 for padding.
    pub slots: Vec<i32>,
    /// The ids that missed, each with the slot that its row is copied to.
    pub misses: Vec<(i32, i32)>,
}

/// Hits of a replayed trace, counted over all steps and in the first step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HitCount {
    /// Selected ids of all steps, without padding.
    pub selected: u64,
    /// Hits of all steps.
    pub hits: u64,
    /// Selected ids of the first step, without padding.
    pub first_selected: u64,
    /// Hits of the first step, which can only be positive if a step has several tokens.
    pub first_hits: u64,
}

impl HitCount {
    /// Adds the selected ids and the hits of one token or one step, which belong to step `step`.
    pub fn add(&mut self, step: usize, selected: u64, hits: u64) {
        self.selected += selected;
        self.hits += hits;
        if step == 0 {
            self.first_selected += selected;
            self.first_hits += hits;
        }
    }

    /// Returns the share of hits in percent after the first step, which starts with an empty buffer;
    /// `None` if no later step selects an id.
    pub fn percent(&self) -> Option<f64> {
        let selected = self.selected - self.first_selected;
        (selected > 0).then(|| 100.0 - 100.0 * self.misses() as f64 / selected as f64)
    }

    /// Returns the misses after the first step.
    pub fn misses(&self) -> u64 {
        (self.selected - self.first_selected) - (self.hits - self.first_hits)
    }
}

impl Sum for HitCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |all, one| Self {
            selected: all.selected + one.selected,
            hits: all.hits + one.hits,
            first_selected: all.first_selected + one.first_selected,
            first_hits: all.first_hits + one.first_hits,
        })
    }
}

/// Counts the hits of a trace, of which `missed` returns the misses of each step.
fn count(trace: &Trace, mut missed: impl FnMut(usize, &[i32]) -> usize) -> HitCount {
    let mut count = HitCount::default();
    for (step, ids) in trace.ids.chunks_exact(trace.tokens * trace.k).enumerate() {
        let selected = ids.iter().filter(|&&id| id >= 0).count();
        count.add(step, selected as u64, (selected - missed(step, ids)) as u64);
    }
    count
}

/// Replays `trace` on `policy` and counts the hits. The selection of a row that was rewritten since its
/// last selection is no hit, whatever the policy keeps.
pub fn count_hits(trace: &Trace, policy: &mut dyn Policy) -> HitCount {
    let mut misses = Vec::with_capacity(trace.k);
    let mut stale = trace.stale().into_iter().peekable();
    let mut end = 0;
    count(trace, |_, ids| {
        policy.begin_step();
        let mut missed = 0;
        for ids in ids.chunks_exact(trace.k) {
            misses.clear();
            policy.token(ids, &mut misses);
            missed += misses.len();
            end += trace.k;
            if stale.peek().is_some_and(|&at| at < end) {
                misses.sort_unstable();
                while let Some(at) = stale.next_if(|&at| at < end) {
                    missed += usize::from(misses.binary_search(&trace.ids[at]).is_err());
                }
            }
        }
        missed
    })
}

/// Counts the hits of a buffer of unlimited size, which no other can surpass.
pub fn count_ceiling(trace: &Trace) -> Result<HitCount> {
    let slots = trace.rows().min(trace.ids.len());
    Ok(count_hits(trace, &mut ExactLru::new(slots)?))
}

/// Counts as hits the ids that repeat another one of their step, which a gather needs to copy once only.
pub fn count_repeats(trace: &Trace) -> HitCount {
    count(trace, |_, ids| {
        let mut ids: Vec<i32> = ids.iter().copied().filter(|&id| id >= 0).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.len()
    })
}

/// Replays `trace` on an empty table and counts the hits. K and N_q of `params` must be those of the
/// trace. Each step invalidates the ids from its `stable` on, as in an engine.
pub fn count_operator_hits(trace: &Trace, params: &Params, machine: Machine) -> Result<HitCount> {
    let mut table = StandaloneTable::new(params)?;
    Ok(count(trace, |step, ids| {
        let stable = trace.stable.as_ref().map_or(-1, |stable| stable[step]);
        table.step_on(machine, ids, trace.tokens, stable)
    }))
}

/// Checks that a buffer has at least `min` slots, at least one, and at most 2^26.
fn check_slots(slots: usize, min: usize) -> Result<usize> {
    in_range("slots", slots, min.max(1)..=1 << 26, "choose a buffer of S >= K rows").map(|()| slots)
}
