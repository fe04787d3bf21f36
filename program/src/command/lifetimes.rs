//! The lifetime rule that a trace recommends, which is the default one unless the trace shows that the other one misses
//! fewer rows, and the least S.

use anyhow::Result;
use avsg::device::params::{Lifetime, MIN_SLOTS, Params};

use crate::baseline::HitCount;

/// Returns the least power of two that is an S for steps of `ids` ids, of which a trace has at most 65536.
pub fn least_slots(ids: usize) -> u32 {
    (ids as u32).max(MIN_SLOTS).next_power_of_two()
}

/// Returns a table `wide` with the other one of the rules learned and constant:127.
pub fn with_other_rule(p: Params) -> Params {
    let lifetime = match p.lifetime {
        Lifetime::Constant(_) => Lifetime::Learned,
        Lifetime::Learned => Lifetime::Constant(127),
    };
    Params { lifetime, ..p }
}

/// Measures the default rule of a table `wide` and the other one on traces of `steps`
/// steps, and returns the recommended one with the hits that were measured.
pub fn recommended(
    default: Params,
    steps: usize,
    measure: impl Fn(&Params) -> Result<Vec<HitCount>>,
) -> Result<(Params, Vec<HitCount>)> {
    let other = with_other_rule(default);
    let [hits, other_hits] = [measure(&default)?, measure(&other)?];
    let [misses, fewer]: [u64; 2] =
        [&hits, &other_hits].map(|hits| hits.iter().map(HitCount::misses).sum());
    // The misses of a step vary by about their mean or more, so the mean of n steps has a standard error of at least
    // 1/√n of itself, and another trace of the same work may well differ by two of those.
    let least = 2.0 / (steps.saturating_sub(1) as f64).sqrt() * misses as f64;
    let is_shown = misses.saturating_sub(fewer) as f64 > least;
    Ok(if is_shown { (other, other_hits) } else { (default, hits) })
}
