//! Lifetime rules: those that are compared with each other, with their numbers of slots, and the one that a trace
//! recommends, which is the default one unless the trace shows that the other one misses fewer rows.

use anyhow::Result;
use avsg::device::params::{Lifetime, MAX_PAPER_SLOTS, MIN_SLOTS, Params};

/// The constants L.
const CONSTANTS: [i8; 9] = [0, 1, 2, 4, 8, 16, 32, 64, 127];

/// Returns every lifetime rule that the table accepts.
pub fn rules(p: &Params) -> impl Iterator<Item = Lifetime> {
    let all = CONSTANTS.map(Lifetime::Constant).into_iter().chain([Lifetime::Learned]);
    all.filter(|&lifetime| Params { lifetime, ..*p }.check().is_ok())
}

/// Returns the least power of two that is an S for steps of `ids` ids, of which a trace has at most 65536.
pub fn least_slots(ids: usize) -> u32 {
    (ids as u32).max(MIN_SLOTS).next_power_of_two()
}

/// Returns the three smallest powers of two that both tables accept as S for steps of `ids` ids, or fewer if
/// the third is above their limit. A least S above the limit is returned, which the library refuses.
pub fn default_slots(ids: usize) -> Vec<u32> {
    let least = least_slots(ids);
    let fits = |slots: &u32| *slots == least || *slots <= MAX_PAPER_SLOTS;
    [1, 2, 4].map(|times| times * least).into_iter().filter(fits).collect()
}

/// Returns a table `wide` with the other one of the rules learned and constant:127.
pub fn with_other_rule(p: Params) -> Params {
    let lifetime = match p.lifetime {
        Lifetime::Constant(_) => Lifetime::Learned,
        Lifetime::Learned => Lifetime::Constant(127),
    };
    Params { lifetime, ..p }
}

/// Measures the default rule of a table `wide` and the other one on traces of `steps` steps, and returns
/// the recommended one first, each with what was measured. `misses` returns the misses after the first step.
pub fn recommended<T>(
    default: Params,
    steps: usize,
    measure: impl Fn(&Params) -> Result<T>,
    misses: impl Fn(&T) -> u64,
) -> Result<[(Params, T); 2]> {
    let other = with_other_rule(default);
    let (default, other) = ((default, measure(&default)?), (other, measure(&other)?));
    let is_shown = shows(steps, misses(&default.1), misses(&other.1));
    Ok(if is_shown { [other, default] } else { [default, other] })
}

/// Returns whether a trace of `steps` steps shows that `fewer` misses are fewer than `misses`. The misses
/// of a step vary by about their mean or more, so the mean of n steps has a standard error of at least 1/√n
/// of itself, and another trace of the same work may well differ by two of those.
fn shows(steps: usize, misses: u64, fewer: u64) -> bool {
    let least = 2.0 / (steps.saturating_sub(1) as f64).sqrt();
    misses.saturating_sub(fewer) as f64 > least * misses as f64
}
