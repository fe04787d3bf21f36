//! The strategies, and the misses that they are compared on.

use avsg::device::stage_two::Strategy;
use avsg_testkit::splitmix::SplitMix64;

/// In the order of the columns.
pub const STRATEGIES: [Strategy; 3] = [Strategy::Request, Strategy::Position, Strategy::Balanced];

/// Positions that miss, for each request.
pub fn miss_lists(
    k: usize,
    requests: usize,
    reuse: u32,
    scattered: bool,
    seed: u64,
) -> Vec<Vec<i32>> {
    let hits = k * reuse as usize / 100;
    let mut random = SplitMix64::new(seed);
    let list = |_| {
        let mut positions: Vec<i32> = (0..k as i32).collect();
        if scattered {
            random.shuffle(&mut positions);
        }
        let mut missing = positions.split_off(hits);
        missing.sort_unstable();
        missing
    };
    (0..requests).map(list).collect()
}
