//! The tables and the lifetime rules that are compared with each other.

use avsg::Result;
use avsg::device::params::{Lifetime, MAX_SLOTS, MIN_SLOTS, Params};
use avsg::geometry;

/// The constants L.
const CONSTANTS: [i8; 9] = [0, 1, 2, 4, 8, 16, 32, 64, 127];

/// Returns both tables with their default rules for `k` ids per token, `tokens` tokens per step and
/// `slots` slots.
///
/// # Errors
/// If the library refuses the geometry.
pub fn tables(k: usize, tokens: usize, slots: u32) -> Result<[(&'static str, Params); 2]> {
    let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let (k, tokens) = (narrow(k), narrow(tokens));
    let tables =
        [("paper", Params::paper(k, tokens, slots)), ("wide", Params::wide(k, tokens, slots))];
    tables.iter().try_for_each(|(_, params)| geometry::check(params))?;
    Ok(tables)
}

/// Returns every lifetime rule that the table accepts.
pub fn rules(p: &Params) -> impl Iterator<Item = Lifetime> {
    let all = CONSTANTS.map(Lifetime::Constant).into_iter().chain([Lifetime::Learned]);
    all.filter(|&lifetime| Params { lifetime, ..*p }.check().is_ok())
}

/// Returns the three smallest S that the operator accepts for steps of `ids` ids, or fewer if the third
/// is above its limit. A least S above the limit is returned, and [`tables`] refuses it.
pub fn default_slots(ids: usize) -> Vec<u32> {
    let least = ids.max(MIN_SLOTS as usize).next_power_of_two();
    let least = u32::try_from(least).unwrap_or(u32::MAX);
    let more = [2, 4].map(|times| least.saturating_mul(times));
    std::iter::once(least).chain(more.into_iter().filter(|&slots| slots <= MAX_SLOTS)).collect()
}
