//! The tables and the lifetime rules that are compared with each other.

use avsg::Result;
use avsg::device::params::{Lifetime, MAX_PAPER_SLOTS, MIN_SLOTS, Params};
use avsg::geometry;

/// The constants L.
const CONSTANTS: [i8; 9] = [0, 1, 2, 4, 8, 16, 32, 64, 127];

/// Returns the tables with their default rules for `k` ids per token, `tokens` tokens per step and
/// `slots` slots: `wide`, and before it `paper` if it accepts this number of slots.
///
/// # Errors
/// If the library refuses the geometry.
pub fn tables(k: usize, tokens: usize, slots: u32) -> Result<Vec<(&'static str, Params)>> {
    let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let (k, tokens) = (narrow(k), narrow(tokens));
    let (paper, wide) = (Params::paper(k, tokens, slots), Params::wide(k, tokens, slots));
    geometry::check(&wide)?;
    let paper = paper.check().is_ok().then_some(("paper", paper));
    Ok(paper.into_iter().chain([("wide", wide)]).collect())
}

/// Returns every lifetime rule that the table accepts.
pub fn rules(p: &Params) -> impl Iterator<Item = Lifetime> {
    let all = CONSTANTS.map(Lifetime::Constant).into_iter().chain([Lifetime::Learned]);
    all.filter(|&lifetime| Params { lifetime, ..*p }.check().is_ok())
}

/// Returns the three smallest powers of two that both tables accept as S for steps of `ids` ids, or fewer if
/// the third is above their limit. A least S above the limit is returned, and [`tables`] refuses it.
pub fn default_slots(ids: usize) -> Vec<u32> {
    let least = ids.max(MIN_SLOTS as usize).next_power_of_two();
    let least = u32::try_from(least).unwrap_or(u32::MAX);
    let more = [2, 4].map(|times| least.saturating_mul(times));
    std::iter::once(least)
        .chain(more.into_iter().filter(|&slots| slots <= MAX_PAPER_SLOTS))
        .collect()
}
