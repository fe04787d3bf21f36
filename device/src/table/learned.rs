//! Learned lifetimes: the age and the use count of a slot in one byte, and what a request teaches about
//! the bytes that are worth keeping.
//!
//! A lifetime is 16·(7 - c) + n. The class c in 0..=15 is the time since the last use: a slot that the
//! running step uses is in class 0, and a slot of class c moves to c + 1 in each step that is a multiple of
//! 2^[`LOG_STEPS`]\[c\]. The level n in 0..=15 is the logarithm of a decaying count of uses
//! ([`AFTER_HIT`]); a new slot has level 0, and one that was hit has at least 1. The lowest byte, -128, is
//! that of an empty slot too.
//!
//! Stage One replaces lifetimes by values before it chooses victims, and it writes down the bytes of a
//! sample of the slots: [`sample_slots`] slots, which are others in each step. [`learn`] runs once per step
//! when the misses are known. It counts which bytes were used, estimates for each byte the probability h
//! that a step uses such a slot, and the uses that it will have, discounted by beta per step:
//!
//! V\[byte\] = h · (1 + beta · V\[byte after the hit\]) + (1 - h) · beta · V\[byte in the next class\].
//!
//! All numbers are integers; a shift to the right rounds down.

use super::params::{Lifetime, Params};
pub use super::state::NEW;
use super::state::header;

/// The number of different lifetimes. Tables of this module are indexed by the lifetime + 128.
pub const LIFETIMES: usize = 256;
/// The largest value of a slot that the running step does not use. A used slot has one more.
pub const MAX_VALUE: i32 = 254;

/// The logarithm of the number of steps that a slot stays in each class but the last. Older classes stay
/// longer, so the classes that a step moves are the youngest ones.
pub const LOG_STEPS: [u32; 15] = [0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 5, 6];
/// The mean number of steps between the last use of a slot of each class and the end of the step.
pub const AGE: [u32; 16] = [1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 18, 24, 32, 52, 100, 200];
/// The levels of a class, and the classes.
pub const LEVELS: usize = 16;

/// 1 in the numbers of this module.
pub const ONE: i64 = 1 << 16;
/// The share of a use count that is left after a step: 0.99.
const KEPT_PER_STEP: i64 = 64_881;
/// The ratio of the use counts of two levels: 20^(1/15).
const LEVEL: i64 = 80_023;
/// The root of this ratio.
const HALF_LEVEL: i64 = 72_418;
/// The discount beta of a use in the next step: 0.95.
pub const BETA: i64 = 62_259;
/// The weight of one slot of a sample, which decays by 1/8 when its class is estimated again.
pub const SLOT: i32 = 16;
/// The weight of the prior probability of a use, 1/(2 · age): that of 32 slots.
pub const PRIOR: i64 = 32 * SLOT as i64;
/// The number of steps in which all classes are estimated once; a power of two.
pub const SWEEP: i32 = 16;
/// The number of steps after which values are used. Until then the order of victims is that of classes:
/// in a shorter time few slots of old classes were counted.
pub const START: i32 = 64;

/// Returns a · b in units of 2^-16.
const fn product(a: i64, b: i64) -> i64 {
    (a * b) >> 16
}

/// The lifetime after a hit, indexed by the one before it + 128. A second hit in a step changes nothing.
pub const AFTER_HIT: [i8; LIFETIMES] = after_hit();

const fn after_hit() -> [i8; LIFETIMES] {
    let mut uses = [ONE; LEVELS];
    let mut n = 1;
    while n < LEVELS {
        uses[n] = product(uses[n - 1], LEVEL);
        n += 1;
    }
    let mut table = [0; LIFETIMES];
    let mut at = 0;
    while at < LIFETIMES {
        let (class, level) = (15 - at / LEVELS, at % LEVELS);
        let mut kept = uses[level];
        let mut step = 0;
        while step < AGE[class] {
            kept = product(kept, KEPT_PER_STEP);
            step += 1;
        }
        let mut next = 1;
        while next + 1 < LEVELS && product(uses[next], HALF_LEVEL) <= ONE + kept {
            next += 1;
        }
        table[at] = NEW + if class == 0 { level } else { next } as i8;
        at += 1;
    }
    table
}

/// The parts of the words that [`learn`] keeps behind the links of a table.
pub mod part {
    use super::LIFETIMES;

    /// The value of each lifetime, 0..=[`MAX_VALUE`](super::MAX_VALUE): Stage One reads these words.
    pub const VALUES: usize = 0;
    /// V of each lifetime, in units of 2^-16 uses.
    pub const USES: usize = LIFETIMES;
    /// The weight of the slots that were counted with each lifetime.
    pub const COUNTED: usize = 2 * LIFETIMES;
    /// The weight of those that were used.
    pub const USED: usize = 3 * LIFETIMES;
    /// The lifetimes + 128 of the last step's sample before the step used any slot, and
    /// [`WAS_USED`](super::WAS_USED) added to those of slots that it used. Stage One writes these words.
    pub const RESULT: usize = 4 * LIFETIMES;
}

/// What [`part::RESULT`] adds for a slot that was used.
pub const WAS_USED: i32 = 256;

/// Returns the number of slots in a sample.
pub fn sample_slots(p: &Params) -> usize {
    p.slots as usize / 16
}

/// Returns the index of the words of a step's sample: their lifetimes + 128 before the step used any slot.
/// Stage One writes these words, and the next step reads them.
pub fn sample_part(p: &Params) -> usize {
    part::RESULT + sample_slots(p)
}

/// Returns the number of words behind the links of a table.
pub fn words(p: &Params) -> usize {
    match p.lifetime {
        Lifetime::Constant(_) => 0,
        Lifetime::Learned => sample_part(p) + sample_slots(p),
    }
}

/// Learns from a step that Stage One has made. `header` and `learned` are the first and the last words of
/// the table.
///
/// # Panics
/// If there are fewer words than [`header::WORDS`] and [`words`].
pub fn learn(p: &Params, header: &mut [i32], learned: &mut [i32]) {
    let step = header[header::STEP as usize];
    if step == 0 {
        start(learned);
    } else {
        count(&mut learned[part::COUNTED..sample_part(p)]);
    }
    estimate(learned, (step & (SWEEP - 1)) as usize);
    let next = if step == i32::MAX { SWEEP * START } else { step + 1 };
    if next % SWEEP == 0 && next >= START {
        publish(learned);
    }
    header[header::STEP as usize] = next;
    header[header::LAST_SAMPLE as usize] = header[header::SAMPLE as usize];
    header[header::SAMPLE as usize] = (sample_of(next) * sample_slots(p)) as i32;
    header[header::MOVES_FROM as usize] = lowest_that_moves(next);
}

/// Forgets what an earlier request taught. Values are the order of classes, so that the victims are the least
/// recently used slots, and empty ones before them.
fn start(learned: &mut [i32]) {
    learned[part::USES..part::RESULT].fill(0);
    for (at, word) in (0..).zip(&mut learned[part::VALUES..part::USES]) {
        *word = (at & -(LEVELS as i32)) + at.min(1);
    }
}

/// Counts the slots of the last sample. `learned` are the words from [`part::COUNTED`] on.
fn count(learned: &mut [i32]) {
    let (counts, result) = learned.split_at_mut(part::RESULT - part::COUNTED);
    let (counted, used) = counts.split_at_mut(LIFETIMES);
    for &word in &*result {
        let at = (word & (WAS_USED - 1)) as usize;
        counted[at] += SLOT;
        used[at] += SLOT * ((word / WAS_USED) & 1);
    }
}

/// Estimates the uses of the slots of one class, 15 - `row`, and lets its counts decay. Rows are estimated
/// from the oldest class to the youngest, one per step; class 0 is left at the end of a step.
fn estimate(learned: &mut [i32], row: usize) {
    let class = 15 - row;
    if class == 0 {
        return;
    }
    for at in row * LEVELS..(row + 1) * LEVELS {
        for counts in [part::COUNTED, part::USED] {
            learned[counts + at] -= learned[counts + at] >> 3;
        }
        let uses = |at: usize| i64::from(learned[part::USES + at]);
        let prior = PRIOR * ONE / (2 * i64::from(AGE[class]));
        let counted = i64::from(learned[part::COUNTED + at]) + PRIOR;
        let h = ((i64::from(learned[part::USED + at]) * ONE + prior) / counted).min(ONE);
        // A slot of class 0 is in class 1 when the next step begins.
        let hit = (i32::from(AFTER_HIT[at]) + 128) as usize - LEVELS;
        let later = if row == 0 {
            uses(at)
        } else {
            let steps = LOG_STEPS[class];
            (uses(at - LEVELS) + ((1 << steps) - 1) * uses(at)) >> steps
        };
        let used = ONE + product(BETA, uses(hit));
        let unused = product(BETA, later);
        learned[part::USES + at] = (product(h, used) + product(ONE - h, unused)) as i32;
    }
}

/// Writes the values of all lifetimes: 16 times the binary logarithm of their uses.
fn publish(learned: &mut [i32]) {
    for at in 1..LIFETIMES {
        let uses = learned[part::USES + at].max(1);
        let log = uses.ilog2();
        let fraction = ((i64::from(uses) << 4) >> log) as i32 & 15;
        learned[part::VALUES + at] = (16 * (log as i32 - 5) + fraction).clamp(1, MAX_VALUE);
    }
    // An empty slot is the first victim.
    learned[part::VALUES] = 0;
}

/// Returns the number of the sample of a step. The order is not that of the slots, because ids that come
/// round in a cycle may fill slots in this order.
fn sample_of(step: i32) -> usize {
    ((step as u32).wrapping_mul(0x9E37_79B1) >> 16) as usize % 16
}

/// Returns the lowest lifetime that moves to the next class in a step: the steps of classes are powers of
/// two, and those up to the step's largest one divide it.
fn lowest_that_moves(step: i32) -> i32 {
    let log = step.trailing_zeros();
    let moving = LOG_STEPS.iter().filter(|&&steps| steps <= log).count();
    16 * (8 - moving as i32)
}

#[cfg(test)]
mod tests;
