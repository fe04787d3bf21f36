//! Random geometries, and random decodings on them.

use super::decoding::Decoding;
use super::one_request::Step;
use avsg_device::params::{ID_LIMIT, Lifetime, MAX_TOKENS, Params, Table};
use proptest::prelude::*;

/// Returns a geometry and its steps. They are smaller under Miri, which is about a thousand times
/// slower. A failure shrinks to fewer of the same steps.
pub fn sequences(paper_only: bool) -> impl Strategy<Value = (Params, Vec<Step>)> {
    let steps = if cfg!(miri) { 2..3 } else { 1..24usize };
    (geometries(paper_only), steps, 0..3000i32, any::<bool>(), any::<u64>()).prop_map(
        |(p, steps, context, far, seed)| {
            // A block table for the largest ids would have millions of entries.
            let first = if far && p.page == 0 { ID_LIMIT - 4096 } else { 0 };
            let mut decoding = Decoding::new(p, first, context, seed);
            (p, (0..steps).map(|_| decoding.step()).collect())
        },
    )
}

/// Returns the configuration of a property test.
pub fn config(cases: u32) -> ProptestConfig {
    let cases = if cfg!(miri) { 1 } else { cases };
    let max_shrink_iters = if cfg!(miri) { 0 } else { 4096 };
    ProptestConfig { cases, max_shrink_iters, failure_persistence: None, ..Default::default() }
}

fn geometries(paper_only: bool) -> impl Strategy<Value = Params> {
    // Numbers of 64 slots: powers of two, and others for `wide`.
    let most = if cfg!(miri) { 1..4u32 } else { 1..10u32 };
    let table = if paper_only { Just(true).boxed() } else { any::<bool>().boxed() };
    let page = prop::sample::select(vec![0u32, 1, 16]);
    let constants = prop::sample::select(vec![0i8, 1, 16, 127]).prop_map(Lifetime::Constant);
    let lifetimes = prop_oneof![constants, Just(Lifetime::Learned)];
    let tokens = prop_oneof![3 => 1..=4u32, 1 => 5..=MAX_TOKENS];
    let shape = (most, tokens, any::<u32>(), page);
    (table, shape, 0..3u32, 0..=7u32, lifetimes).prop_map(
        |(paper, (lines, tokens, k, page), spread, retries, lifetime)| {
            let slots = 64 * if paper { lines.next_power_of_two() } else { lines };
            let k = k % (slots / tokens) + 1;
            if paper {
                let l = match lifetime {
                    Lifetime::Constant(l) => l.max(1),
                    Lifetime::Learned => 16,
                };
                let p = Params::paper(k.min(slots / tokens), tokens, slots);
                Params { lifetime: Lifetime::Constant(l), page, ..p }
            } else {
                let (table, spread) = (Table::Wide, 1 << spread);
                Params { table, lifetime, k, tokens, slots, spread, retries, page }
            }
        },
    )
}
