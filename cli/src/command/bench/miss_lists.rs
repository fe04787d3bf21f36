//! The three strategies, and the miss lists that they are compared on.

use avsg::device::stage_two::Strategy;
use avsg_testkit::splitmix::SplitMix64;

/// The strategies S1, S2 and S3, in the order of the columns.
pub const STRATEGIES: [Strategy; 3] = [Strategy::Request, Strategy::Position, Strategy::Balanced];

/// Returns for each of `requests` requests the positions of its `k` ids that miss, when `reuse`
/// percent hit. The hits are the first positions, or random ones if `scattered`.
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
