//! Random geometries, and random decodings on them: requests join and leave, drafts are accepted or
//! rolled back, and ids repeat, are padding, are out of range, or are in an invalid block.

use super::one_request::Step;
use avsg_device::params::{ID_LIMIT, Lifetime, MAX_TOKENS, NO_STABLE_LEN, Params, Table};
use proptest::prelude::*;

/// Returns a geometry and its steps. They are smaller under Miri, which is about a thousand times
/// slower.
pub fn sequences(paper_only: bool) -> impl Strategy<Value = (Params, Vec<Step>)> {
    let steps = if cfg!(miri) { 2..3 } else { 1..24usize };
    geometries(paper_only).prop_flat_map(move |p| {
        let steps = proptest::collection::vec(raw_step(p), steps.clone());
        (steps, 0..3000i32, any::<bool>()).prop_map(move |(raw, context, far)| {
            // A block table for the largest ids would have millions of entries.
            let first = if far && p.page == 0 { ID_LIMIT - 4096 } else { 0 };
            let mut decoding = Decoding { p, generation: 1, first, len: first + context };
            (p, raw.into_iter().map(|r| decoding.step(r)).collect())
        })
    })
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
    let page = prop_oneof![Just(0u32), Just(1), Just(16)];
    let tokens = prop_oneof![3 => 1..=4u32, 1 => 5..=MAX_TOKENS];
    let shape = (most, tokens, any::<u32>(), page);
    (table, shape, 0..3u32, 0..=7u32, lifetimes()).prop_map(
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

fn lifetimes() -> impl Strategy<Value = Lifetime> {
    prop_oneof![
        prop_oneof![Just(0i8), Just(1), Just(16), Just(127)].prop_map(Lifetime::Constant),
        Just(Lifetime::Learned),
    ]
}

#[derive(Clone, Debug)]
struct RawStep {
    leave: bool,
    accepted: usize,
    distinct: bool,
    no_stable: bool,
    short_pool: bool,
    seed: u32,
    ids: Vec<Vec<u32>>,
}

fn raw_step(p: Params) -> impl Strategy<Value = RawStep> {
    let flags = (
        prop::bool::weighted(0.08),
        any::<bool>(),
        prop::bool::weighted(0.7),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.2),
    );
    let k = p.k as usize;
    let token = proptest::collection::vec(any::<u32>(), k);
    let ids = proptest::collection::vec(token, 0..=p.tokens as usize);
    (flags, 0..=p.tokens as usize, any::<u32>(), ids, 1..=k).prop_map(
        |((leave, full, distinct, no_stable, short_pool), accepted, seed, mut ids, k)| {
            if !full {
                ids.iter_mut().for_each(|t| t.truncate(k));
            }
            RawStep { leave, accepted, distinct, no_stable, short_pool, seed, ids }
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
}

impl Decoding {
    fn step(&mut self, raw: RawStep) -> Step {
        if raw.leave {
            self.generation = self.generation % 3 + 1;
            self.len = self.first + (raw.seed % 3000) as i32;
        }
        let made = raw.ids.len() as i32;
        let (stable, limit) = if raw.no_stable {
            // Without invalidation, only final tokens may be selected.
            (NO_STABLE_LEN, self.len)
        } else {
            (self.len, self.len + made)
        };
        let hot = (self.p.slots as i32).min(limit.max(1));
        let from = (raw.seed % (limit.max(1) as u32)) as i32;
        let pick = |r: u32| {
            let n = (r >> 7) as i32;
            match r % 64 {
                0 => -1 - n % 3,
                1 => [i32::MIN, i32::MAX][(n & 1) as usize],
                2 => limit + n % 5,
                _ if limit == 0 => -1,
                3..=6 => limit - 1 - n % made.max(1).min(limit),
                7..=30 => n % limit,
                _ => (from + n % hot) % limit,
            }
        };
        let mut tokens: Vec<Vec<i32>> =
            raw.ids.iter().map(|t| t.iter().map(|&r| pick(r)).collect()).collect();
        if raw.distinct {
            for token in &mut tokens {
                let mut seen = std::collections::HashSet::new();
                token.iter_mut().for_each(|x| {
                    if !seen.insert(*x) {
                        *x = -1;
                    }
                });
            }
        }
        let step = self.placed(&raw, stable, limit, tokens);
        self.len += if raw.no_stable { 0 } else { (raw.accepted as i32).min(made) };
        step
    }

    /// Returns a step with the tokens, whose rows it places in the pool.
    fn placed(&self, raw: &RawStep, stable: i32, limit: i32, tokens: Vec<Vec<i32>>) -> Step {
        let mut step = Step {
            generation: self.generation,
            stable,
            limit,
            rows: limit,
            tokens,
            ..Step::default()
        };
        let needed = if self.p.page == 0 { limit } else { limit / self.p.page as i32 + 1 };
        let available = if raw.short_pool { needed - needed / 4 } else { needed };
        step.rows = if self.p.page == 0 { available } else { needed + 7 };
        if self.p.page != 0 {
            step.blocks = (0..available)
                .map(|b| match (b as u32).wrapping_mul(raw.seed | 1) >> 27 {
                    0 if raw.short_pool => -1,
                    1 if raw.short_pool => step.rows + b,
                    2 if raw.short_pool => i32::MAX,
                    _ => (b + 3) % step.rows,
                })
                .collect();
        }
        step
    }
}
