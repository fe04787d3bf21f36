//! Random geometries, and random decodings on them: requests join and leave, drafts are accepted or
//! rolled back, and ids repeat, are padding, are out of range, or are in an invalid block.

use super::one_request::Step;
use super::splitmix::SplitMix64;
use avsg_device::params::{ID_LIMIT, Lifetime, MAX_TOKENS, NO_STABLE_LEN, Params, Table};
use proptest::prelude::*;
use std::collections::HashSet;

/// Returns a geometry and its steps. They are smaller under Miri, which is about a thousand times
/// slower. A failure shrinks to fewer of the same steps.
pub fn sequences(paper_only: bool) -> impl Strategy<Value = (Params, Vec<Step>)> {
    let steps = if cfg!(miri) { 2..3 } else { 1..24usize };
    (geometries(paper_only), steps, 0..3000i32, any::<bool>(), any::<u64>()).prop_map(
        |(p, steps, context, far, seed)| {
            // A block table for the largest ids would have millions of entries.
            let first = if far && p.page == 0 { ID_LIMIT - 4096 } else { 0 };
            let random = SplitMix64::new(seed);
            let mut decoding = Decoding { p, generation: 1, first, len: first + context, random };
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

struct Decoding {
    p: Params,
    generation: i32,
    /// The least number of tokens of a request when it joins.
    first: i32,
    /// The number of tokens whose KV is final.
    len: i32,
    random: SplitMix64,
}

impl Decoding {
    fn step(&mut self) -> Step {
        let (p, random) = (self.p, &mut self.random);
        let [leaves, no_stable, short_pool, repeats] = [12, 10, 5, 3].map(|n| random.below(n) == 0);
        if leaves {
            self.generation = self.generation % 3 + 1;
            self.len = self.first + random.below(3000) as i32;
        }
        let made = random.below(p.tokens as usize + 1);
        // Without invalidation, only final tokens may be selected.
        let (stable, limit) = match no_stable {
            true => (NO_STABLE_LEN, self.len),
            false => (self.len, self.len + made as i32),
        };
        let hot = (p.slots as i32).min(limit.max(1));
        let from = random.below(limit.max(1) as usize) as i32;
        let pick = |random: &mut SplitMix64| {
            let n = (random.word() >> 33) as i32;
            match random.below(64) {
                0 => -1 - n % 3,
                1 => [i32::MIN, i32::MAX][(n & 1) as usize],
                2 => limit + n % 5,
                _ if limit == 0 => -1,
                3..=6 => limit - 1 - n % (made.max(1) as i32).min(limit),
                7..=30 => n % limit,
                _ => (from + n % hot) % limit,
            }
        };
        let k = [p.k as usize, 1 + random.below(p.k as usize)][random.below(2)];
        let token = |_| (0..k).map(|_| pick(random)).collect();
        let mut tokens: Vec<Vec<i32>> = (0..made).map(token).collect();
        for token in tokens.iter_mut().filter(|_| !repeats) {
            let mut seen = HashSet::new();
            token.iter_mut().filter(|x| !seen.insert(**x)).for_each(|x| *x = -1);
        }
        let accepted = random.below(p.tokens as usize + 1).min(made);
        self.len += if no_stable { 0 } else { accepted as i32 };
        let needed = limit.checked_div(p.page as i32).map_or(limit, |blocks| blocks + 1);
        let available = if short_pool { needed - needed / 4 } else { needed };
        let rows = if p.page == 0 { available } else { needed + 7 };
        let mut block = |b| match random.below(32) {
            0 if short_pool => -1,
            1 if short_pool => rows + b,
            2 if short_pool => i32::MAX,
            _ => (b + 3) % rows,
        };
        let blocks = if p.page == 0 { vec![] } else { (0..available).map(&mut block).collect() };
        Step { generation: self.generation, stable, limit, rows, tokens, blocks }
    }
}
