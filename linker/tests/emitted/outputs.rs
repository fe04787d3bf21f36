//! What a Stage One on the shim is compared with, and small geometries for it.

use super::steps::{SplitMix64, StepState};
use avsg_device::params::{Lifetime, Params, Table};

/// Compares the outputs and the table of a step with those of its tape.
pub fn compare_outputs(
    p: &Params,
    want: &StepState,
    out: &[Vec<i32>],
    tables: &[i32],
) -> Result<(), String> {
    for ((name, want), got) in want.results().iter().zip(out) {
        // The kernel writes the whole record of a request, the tape only some of its words.
        let mut want = want.clone();
        if *name == "gm_record" {
            want[16..32].iter_mut().filter(|w| **w == -77).for_each(|w| *w = 0);
        }
        if let Some(at) = want.iter().zip(got).position(|(a, b)| a != b) {
            return Err(format!("{name}[{at}] is {}, not {}", got[at], want[at]));
        }
    }
    let want = want.table(p);
    let differs = want.iter().zip(tables).position(|(a, b)| a != b);
    differs.map_or(Ok(()), |at| {
        Err(format!("word {at} of the table is {}, not {}", tables[at], want[at]))
    })
}

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
