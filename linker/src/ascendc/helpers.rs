//! What a 910B lacks, made of what it has: helper functions, each with its C++, what happens in a call
//! of it, and what it takes.
//!
//! A file here has a group of them: a constructor for the calls that the lowering makes, a [`Helper`] with the
//! text, and the work where it depends on more than the lanes of a tile.

pub mod append;
pub mod basic;
pub mod life;
pub mod lookup;
pub mod mix;
pub mod scatter;
pub mod search;
pub mod share;
pub mod victims;
pub mod words;

use crate::aiv::{Helper, Use};

/// All of them, in the order in which they are printed: each refers only to those before it.
pub static ALL: [&Helper; 35] = [
    &basic::SCALAR_MAX,
    &basic::VIEWS,
    &basic::WHOLE,
    &words::AND_WORD,
    &words::OR_WORD,
    &words::INDICES,
    &mix::BLEND,
    &mix::MIX,
    &basic::COMPACT,
    &append::COUNT,
    &append::COMPACT_AFTER_TAIL,
    &append::APPEND,
    &append::APPEND_IN_PLACE,
    &scatter::SCATTER_ALL,
    &scatter::SCATTER_BOTH,
    &scatter::SCATTER_MASKED,
    &life::SET_LIFE_ALL,
    &life::SET_LIFE,
    &life::STEP_LIFE_ALL,
    &life::STEP_LIFE,
    &life::AGE,
    &life::SETTLE,
    &victims::COUNT_LE,
    &victims::LEAST_LIFE,
    &victims::APPEND_SLOTS,
    &lookup::LOOKUP,
    &share::COPY_IN_TURN,
    &share::LEAVES,
    &search::COLUMN,
    &search::FITS,
    &search::FOLLOW,
    &search::RANK,
    &search::FIRST,
    &search::FIND,
    &search::FIND_FREE,
];

/// These helpers and those that they use, in the order of [`ALL`].
pub fn with_used(wanted: &[&'static Helper]) -> Vec<&'static Helper> {
    let mut found = wanted.to_vec();
    let mut at = 0;
    while let Some(helper) = found.get(at) {
        found.extend(helper.uses.iter().filter_map(|used| match used {
            Use::Helper(helper) => Some(*helper),
            _ => None,
        }));
        at += 1;
    }
    ALL.into_iter().filter(|helper| found.contains(helper)).collect()
}
