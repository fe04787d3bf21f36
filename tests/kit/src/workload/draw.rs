//! Workloads that need no shrinking: random steps from a seed, and long workloads that fill tables.

use super::{Request, Shape, Step, Workload};
use crate::splitmix::SplitMix64;

/// The form of a step whose arrays have the same lengths in every step, as a captured graph needs
/// them: K ids per row, no gaps between rows, and block tables of exactly a request's blocks.
const FIXED_SIZE_FORM: u8 = 48;

/// Returns a random step of `FIXED_SIZE_FORM` with `requests` requests on `states` states: requests join and leave, states
/// are permuted and swapped, and there are padded and read-only requests, rejected drafts, all
/// numbers of tokens, invalid ids and fresh rows. Block tables have no invalid entries, so that the
/// rows can be appended with them.
pub fn random_step(rng: &mut SplitMix64, states: usize, requests: usize) -> Step {
    let mut order: Vec<usize> = (0..states).collect();
    rng.shuffle(&mut order);
    let requests = (0..requests).map(|r| {
        // Requests beyond the number of states repeat a state and are therefore padded.
        let state = order[r % states] as u8;
        let action = [1, 1, 0, 0, 5, 2, 4, 6, 6, 6, 6, 6, 6, 6, 6, 6][rng.below(16)];
        let [tokens, accepted] = [0; 2].map(|_| rng.below(256) as u8);
        let choice = rng.below(1 << 16) as u16;
        // A multiple of 5 would make a block invalid.
        let choice = if choice.is_multiple_of(5) { choice + 1 } else { choice };
        // At least every second id selects a row of the pool.
        let ids = (0..40).map(|i| rng.word() as u16 | (9 * (i % 2))).collect();
        Request { state, action, tokens, accepted, choice, ids }
    });
    let requests = requests.collect();
    // One step in 12 swaps two states; 1 is not a multiple of 8 and swaps none.
    let swap = if rng.below(12) == 0 { rng.below(32) as u8 * 8 } else { 1 };
    Step { form: FIXED_SIZE_FORM, swap, requests }
}

/// Geometries for device engines that differ in every field, the last one with 16 tokens. The bytes are the fields of
/// [`Shape`] in order: table, lifetime, K, tokens, slots, page, format, states, cores.
pub const DEVICE_SHAPES: [[u8; 9]; 3] =
    [[0, 0, 29, 3, 1, 0, 0, 2, 0], [1, 0, 7, 1, 1, 2, 1, 6, 3], [3, 3, 6, 207, 1, 3, 4, 3, 6]];

/// Actions of every kind: decode, rollback, read-only, padded and join.
const MIXED_ACTIONS: [u8; 8] = [6, 6, 6, 5, 2, 1, 6, 0];

/// Returns a workload of four requests that is long enough to fill tables. All requests join in the
/// first step and then cycle through actions of every kind. `bytes` are the fields of [`Shape`].
pub fn long_workload(bytes: [u8; 9], steps: usize) -> Workload {
    let shape = Shape::from(bytes);
    let quarter = (shape.params().tokens / 4).max(1) as u8;
    let ids = |seed: usize| (0..60).map(|i| ((i * seed * 2_741 + i * i) % 65_536) as u16).collect();
    let requests = |step: usize| {
        let one = |r: usize| Request {
            state: r as u8,
            action: MIXED_ACTIONS[(step * 3 + r * 5) % 8] * u8::from(step > 0),
            tokens: (4 - r) as u8 * quarter,
            accepted: (step + r) as u8,
            choice: (step * 3 + r) as u16,
            ids: ids(step * 5 + r + 1),
        };
        (0..4).map(one).collect()
    };
    let step = |s: usize| Step { form: s as u8, swap: s as u8, requests: requests(s) };
    Workload { shape, steps: (0..steps).map(step).collect() }
}
