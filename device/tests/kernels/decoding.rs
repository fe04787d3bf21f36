//! Random decodings: requests join and leave, drafts are accepted or rolled back, and ids repeat, are padding, are out
//! of range, or are in an invalid block. Tests of the linker include this file by its path.

use super::one_request::Step;
use super::splitmix::SplitMix64;
use avsg_device::params::{NO_STABLE_LEN, Params};
use std::collections::HashSet;

/// A random decoding.
pub struct Decoding {
    p: Params,
    generation: i32,
    /// The least number of tokens of a request when it joins.
    first: i32,
    /// The number of tokens whose KV is final.
    len: i32,
    random: SplitMix64,
}

impl Decoding {
    /// Returns a decoding with `first` tokens at least, which begins with `context` more.
    pub fn new(p: Params, first: i32, context: i32, seed: u64) -> Self {
        Self { p, generation: 1, first, len: first + context, random: SplitMix64::new(seed) }
    }

    pub fn step(&mut self) -> Step {
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
