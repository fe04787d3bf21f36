//! `avsg-research contenders` computes the hit rates of policies that AVSG does not have, beside those
//! that bound it.

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::{Context, Result};
use avsg::cpu::machine::Machine;
use avsg::device::params::Params;
use avsg::engine::MachineChoice;
use avsg::geometry;
use avsg_cli::baseline::order::Order;
use avsg_cli::baseline::residents::Residents;
use avsg_cli::baseline::{
    Belady, ExactLru, LRU, OPTIMUM, Policy, PreviousStep, count_hits, count_operator_hits,
};
use avsg_cli::trace::{Trace, name_of};
use clap::Args;

use crate::markdown::table;

/// Options of `avsg-research contenders`.
#[derive(Args, Debug)]
#[command(
    after_help = "Hit rates are in percent after the first step, which starts with an empty buffer, for the three smallest \
                  powers of two S. Two policies do not keep the rows of a whole step, as the operator must: previous step \
                  holds K rows at any S and compares each token with the token before it, and set FIFO may replace a row \
                  that the running step selects."
)]
pub struct Options {
    /// Recorded trace, .npy, .npz or .safetensors
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
}

/// The hit rate of a policy for each S, in percent after the first step; none if no later step selects an id.
pub type Rates = (&'static str, Vec<Option<f64>>);

/// Returns the hit rates as a table of Markdown.
pub fn text(options: &Options) -> Result<String> {
    let name = || name_of(&options.trace);
    let trace = Trace::read(&options.trace).with_context(name)?;
    let slots = slots(&trace);
    let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.2}"));
    let row = |(policy, rates): Rates| {
        std::iter::once(policy.to_owned()).chain(rates.into_iter().map(rate)).collect()
    };
    let heads = slots.map(|slots| format!("S = {slots}, %"));
    let heads: Vec<_> = std::iter::once("policy".to_owned()).chain(heads).collect();
    Ok(table(&heads, compute(&trace)?.into_iter().map(row)))
}

/// Returns the three smallest powers of two that hold a step.
fn slots(trace: &Trace) -> [u32; 3] {
    let least = u32::try_from(trace.tokens * trace.k).unwrap_or(1 << 20).max(64);
    [1, 2, 4].map(|times| times * least.next_power_of_two())
}

/// Computes the hit rates; the last policy is the optimum.
pub fn compute(trace: &Trace) -> Result<Vec<Rates>> {
    let mut all: Vec<Rates> = Vec::new();
    for slots in slots(trace) {
        let wide = Params::wide(trace.k as u32, trace.tokens as u32, slots);
        geometry::check(&wide)?;
        let mut rates: Vec<_> = policies(trace, slots as usize)?
            .into_iter()
            .map(|(name, mut policy)| (name, count_hits(trace, policy.as_mut()).percent()))
            .collect();
        let machine = Machine::find(MachineChoice::Auto)?;
        let own = count_operator_hits(trace, &wide, machine)?.percent();
        rates.insert(rates.len() - 1, ("wide, default rule", own));
        for (at, (policy, rate)) in rates.into_iter().enumerate() {
            match all.get_mut(at) {
                Some((_, rates)) => rates.push(rate),
                None => all.push((policy, vec![rate])),
            }
        }
    }
    Ok(all)
}

/// Returns the policies, each with a buffer of `slots` rows; the last one is the optimum.
fn policies(trace: &Trace, slots: usize) -> Result<Vec<(&'static str, Box<dyn Policy>)>> {
    Ok(vec![
        ("previous step, K slots", Box::new(PreviousStep::new(trace.k)?)),
        ("set FIFO, 16 ways", Box::new(SetFifo::new(slots))),
        ("CLOCK", Box::new(SecondChance::clock(slots))),
        ("SIEVE", Box::new(SecondChance::sieve(slots))),
        ("batch LRU of HiSparse", Box::new(HiSparse::new(slots))),
        (LRU, Box::new(ExactLru::new(slots)?)),
        (OPTIMUM, Box::new(Belady::new(trace, slots)?)),
    ])
}

/// Rows per set of [`SetFifo`].
const WAYS: usize = 16;

/// Set-associative FIFO with 16 ways, the policy of a published shared-indexer scheme.
///
/// The set of an id is id mod the number of sets. A new row replaces the row at the set's head, and
/// the head advances by one, whether or not the replaced row is still selected. Only the policy is
/// modelled: the rows of a step are installed after it, so all its tokens are matched with the buffer
/// as it was before the step, and an id that two tokens miss is fetched twice and installed once.
#[derive(Debug)]
pub struct SetFifo {
    residents: Residents,
    /// The way of each set that is replaced next.
    heads: Vec<u8>,
    /// Ids that the running step missed, which the next step installs.
    pending: Vec<i32>,
}

impl SetFifo {
    /// Creates an empty buffer of `slots` rows, a multiple of 16.
    pub fn new(slots: usize) -> Self {
        let (residents, heads) = (Residents::new(slots), vec![0; slots / WAYS]);
        Self { residents, heads, pending: Vec::new() }
    }
}

impl Policy for SetFifo {
    fn begin_step(&mut self) {
        for id in self.pending.drain(..) {
            if self.residents.find(id).is_some() {
                continue;
            }
            let set = id as usize % self.heads.len();
            let head = &mut self.heads[set];
            self.residents.bind(id, set * WAYS + usize::from(*head));
            *head = (*head + 1) % WAYS as u8;
        }
    }

    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        let missing = ids.iter().filter(|&&id| id >= 0 && self.residents.find(id).is_none());
        let first = misses.len();
        misses.extend(missing);
        self.pending.extend_from_slice(&misses[first..]);
    }
}

/// The rules in which CLOCK and SIEVE differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Slots stay where they are, and a new row has its bit set.
    Clock,
    /// Slots are in the order of their rows' arrival, and a new row has its bit clear (Zhang et al.,
    /// "SIEVE is Simpler than LRU", NSDI 2024).
    Sieve,
}

/// CLOCK or SIEVE, which keep one bit per row and move a hand over the slots.
///
/// A hit sets the bit of its row. A miss moves the hand to the next row without the bit and evicts that
/// row; on its way the hand clears the bits that it finds. As in the operator, every miss takes a slot,
/// and rows that the running step uses are not evicted: the hand passes them and leaves their bits.
#[derive(Debug)]
pub struct SecondChance {
    rule: Rule,
    residents: Residents,
    order: Order,
    /// The slot that the hand examines next.
    hand: usize,
    /// Whether each slot's row was hit since the hand passed it.
    hit: Vec<bool>,
    /// For each slot, the last step that used it, counted from 1; 0 for none.
    used_in: Vec<u32>,
    /// The running step, counted from 1.
    step: u32,
}

impl SecondChance {
    /// Creates an empty buffer of `slots` rows with the policy CLOCK.
    pub fn clock(slots: usize) -> Self {
        Self::new(slots, Rule::Clock)
    }

    /// Creates an empty buffer of `slots` rows with the policy SIEVE.
    pub fn sieve(slots: usize) -> Self {
        Self::new(slots, Rule::Sieve)
    }

    fn new(slots: usize, rule: Rule) -> Self {
        Self {
            rule,
            residents: Residents::new(slots),
            order: Order::new(slots),
            hand: 0,
            hit: vec![false; slots],
            used_in: vec![0; slots],
            step: 0,
        }
    }

    /// Moves the hand to the next victim and behind it, and returns the victim; `None` if the running
    /// step uses every slot.
    fn next_victim(&mut self) -> Option<usize> {
        // The first round clears all bits of rows that are not in use.
        for _ in 0..2 * self.hit.len() {
            let slot = self.hand;
            self.hand = self.order.newer(slot);
            if self.used_in[slot] == self.step && !self.residents.is_empty(slot) {
                continue;
            }
            if !std::mem::take(&mut self.hit[slot]) {
                return Some(slot);
            }
        }
        None
    }

    fn install(&mut self, id: i32) {
        // If N_q * K > S, every slot may be in use. The row is then not kept.
        let Some(slot) = self.next_victim() else { return };
        self.residents.bind(id, slot);
        self.used_in[slot] = self.step;
        self.hit[slot] = self.rule == Rule::Clock;
        if self.rule == Rule::Sieve {
            self.order.make_newest(slot);
        }
    }
}

impl Policy for SecondChance {
    fn begin_step(&mut self) {
        self.step += 1;
    }

    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        let first = misses.len();
        for &id in ids.iter().filter(|&&id| id >= 0) {
            match self.residents.find(id) {
                Some(slot) => {
                    self.hit[slot] = true;
                    self.used_in[slot] = self.step;
                }
                None => misses.push(id),
            }
        }
        let mut kept = first;
        for at in first..misses.len() {
            let id = misses[at];
            // An id that has become resident is the repetition of a miss.
            if self.residents.find(id).is_none() {
                self.install(id);
                misses[kept] = id;
                kept += 1;
            }
        }
        misses.truncate(kept);
    }
}

/// The policy of HiSparse's base kernel: an LRU over batches.
///
/// A slot whose id the token selects is a hit, any other may be evicted, and misses take the oldest of
/// the others. The new order of use is: slots that were not selected, misses, hits. The extra page for
/// the newest token and the shortcut for short contexts are left out.
#[derive(Debug)]
pub struct HiSparse {
    residents: Residents,
    /// Slots, least recently used first.
    order: Vec<usize>,
    /// Whether the running token selects the id of each slot.
    selected: Vec<bool>,
}

impl HiSparse {
    /// Creates an empty buffer of `slots` rows.
    pub fn new(slots: usize) -> Self {
        let residents = Residents::new(slots);
        Self { residents, order: (0..slots).collect(), selected: vec![false; slots] }
    }
}

impl Policy for HiSparse {
    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        self.selected.fill(false);
        let mut missing = Vec::new();
        for &id in ids.iter().filter(|&&id| id >= 0) {
            match self.residents.find(id) {
                Some(slot) => self.selected[slot] = true,
                None => missing.push(id),
            }
        }
        let (hits, mut others): (Vec<_>, Vec<_>) =
            self.order.iter().partition(|&&slot| self.selected[slot]);
        let mut taken = 0;
        for id in missing {
            // An id that has become resident is the repetition of a miss.
            if self.residents.find(id).is_none() {
                misses.push(id);
                self.residents.bind(id, others[taken]);
                taken += 1;
            }
        }
        others.rotate_left(taken);
        self.order = others.into_iter().chain(hits).collect();
    }
}
