//! Small geometries for Stage One.

use super::steps::SplitMix64;
use avsg_device::params::{Lifetime, Params, Table};

/// Returns geometries of both tables, all spreads, both lifetimes, with and without a block table, for `tokens` tokens
/// or any number. There are few, because g++ compiles each of them.
pub fn small_geometries(tokens: Option<u32>) -> [Params; 7] {
    let random = &mut SplitMix64(1 + u64::from(tokens.unwrap_or(0)));
    let paper = Table::KNUTH_XXHASH;
    let kinds = [
        (paper, 1, false, 0),
        (paper, 1, false, 16),
        (Table::Wide, 1, true, 0),
        (Table::Wide, 2, false, 1),
        (Table::Wide, 2, true, 16),
        (Table::Wide, 4, false, 16),
        (Table::Wide, 4, true, 0),
    ];
    kinds.map(|(table, spread, learned, page)| {
        let slots = match table {
            Table::Wide => 256 + 128 * random.below(7) as u32,
            Table::Paper { .. } => 256 << random.below(3),
        };
        let tokens = tokens.unwrap_or(1 + random.below(8) as u32);
        let k = (64 + random.below(193) as u32).min(slots / tokens);
        let constant = Lifetime::Constant(1 + random.below(127) as i8);
        let lifetime = if learned { Lifetime::Learned } else { constant };
        let retries = 1 + random.below(7) as u32;
        Params { table, lifetime, spread, retries, page, ..Params::wide(k, tokens, slots) }
    })
}
