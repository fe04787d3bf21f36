//! Lives that nobody has to shrink: drawn from a seed, or long enough to fill tables.

use super::{Request, Shape, Step, Workload};
use crate::splitmix::SplitMix64;

/// The form of a step whose batch has the same sizes as every other, as a graph needs it: K ids a row,
/// nothing between rows, tables of exactly a request's blocks.
pub const PLAIN: u8 = 48;

/// The next step of a random workload: joins, leaves, permuted and swapped states, padded and read-only
/// requests, rejected drafts, any number of tokens, bad ids, rows of the step itself. Block tables are
/// whole, so that the rows can be appended by them. Always so many requests, by tables of `states`.
pub fn random_step(dice: &mut SplitMix64, form: u8, states: usize, requests: usize) -> Step {
    let mut order: Vec<usize> = (0..states).collect();
    dice.shuffle(&mut order);
    let mut request = |r: usize| {
        // More requests than states: the rest names one again, and so is padded.
        let who = order[r % states] as u8;
        let act = [1, 1, 0, 0, 5, 2, 4, 6, 6, 6, 6, 6, 6, 6, 6, 6][dice.below(16)];
        let [tokens, accept] = [0; 2].map(|_| dice.below(256) as u8);
        let pick = dice.below(1 << 16) as u16;
        // A multiple of five would spoil a block.
        let pick = if pick.is_multiple_of(5) { pick + 1 } else { pick };
        // Every second id at least is a row of the pool.
        let ids = (0..40).map(|i| dice.word() as u16 | (9 * (i % 2))).collect();
        Request { who, act, tokens, accept, pick, ids }
    };
    let requests = (0..requests).map(&mut request).collect();
    // Two states change places once in a while; 1 is no multiple of 8.
    let swap = if dice.below(12) == 0 { dice.below(32) as u8 * 8 } else { 1 };
    Step { form, swap, requests }
}

/// Geometries for devices that differ in everything. Table, lifetime, K, tokens, slots, page, format, states,
/// cores, strategy: see [`Shape`].
pub const DEVICE_SHAPES: [[u8; 10]; 3] = [
    [0, 0, 29, 3, 1, 0, 0, 2, 0, 0],
    [1, 0, 7, 1, 1, 2, 1, 6, 3, 0],
    [3, 3, 17, 3, 1, 3, 4, 3, 6, 0],
];

/// What requests of a [`long_workload`] do, to have everything in it: they decode, roll back, only read, are
/// padded, and join.
pub const EVERYTHING: [u8; 8] = [6, 6, 6, 5, 2, 1, 6, 0];

/// A workload long enough to fill tables. `acts` are what its four requests do in turn, after they have joined.
pub fn long_workload(bytes: [u8; 10], steps: usize, acts: [u8; 8]) -> Workload {
    let ids = |seed: usize| (0..60).map(|i| ((i * seed * 2_741 + i * i) % 65_536) as u16).collect();
    let requests = |step: usize| {
        let one = |r: usize| Request {
            who: r as u8,
            act: acts[(step * 3 + r * 5) % 8] * u8::from(step > 0),
            tokens: (4 - r) as u8,
            accept: (step + r) as u8,
            pick: (step * 3 + r) as u16,
            ids: ids(step * 5 + r + 1),
        };
        (0..4).map(one).collect()
    };
    let step = |s: usize| Step { form: s as u8, swap: s as u8, requests: requests(s) };
    Workload { shape: Shape::from(bytes), steps: (0..steps).map(step).collect() }
}
