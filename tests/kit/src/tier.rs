//! The tier of tests that runs, and the sample of a test matrix that the default tier runs. This
//! file uses nothing else of the crate, because packages that the crate depends on include it by
//! its path.

use std::collections::BTreeSet;

/// Seed of the samples of the default tier, which are the same in every run.
pub const SEED: u64 = 0x5EED_0910;

/// Returns whether the thorough tier runs: `AVSG_THOROUGH=1` selects it.
pub fn thorough() -> bool {
    std::env::var_os("AVSG_THOROUGH").is_some_and(|value| value == "1")
}

/// Returns the name of the tier for the output of tests.
pub fn name() -> &'static str {
    if thorough() { "thorough tier" } else { "default tier" }
}

/// Returns the cases of a matrix that this tier runs, in their order: all of them in the thorough
/// tier, otherwise a sample of at least `least` cases in which every value of every axis occurs.
/// `axes` returns the value of a case on each axis; `what` names the matrix in the output.
pub fn cases<T>(what: &str, all: Vec<T>, least: usize, axes: impl Fn(&T) -> Vec<String>) -> Vec<T> {
    let of = all.len();
    if thorough() {
        println!("{what}: {}, {of} of {of} cases", name());
        return all;
    }
    let values: Vec<Vec<_>> =
        all.iter().map(|case| axes(case).into_iter().enumerate().collect()).collect();
    // The sampling order is that of splitmix64(seed + case).
    let place = |case: usize| {
        let z = SEED.wrapping_add((case as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let mut drawn: Vec<_> = (0..of).collect();
    drawn.sort_by_key(|&case| place(case));
    let (mut selected, mut taken) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let new = |case: usize| values[case].iter().filter(|v| !selected.contains(v)).count();
        let free = drawn.iter().copied().filter(|case| !taken.contains(case));
        // Takes the first case, in sampling order, with the most values that no chosen case has.
        // `max_by_key` returns the last maximum, hence the reversal.
        let Some(best) = free.rev().max_by_key(|&case| new(case)) else { break };
        if new(best) == 0 && taken.len() >= least {
            break;
        }
        selected.extend(&values[best]);
        taken.insert(best);
    }
    println!("{what}: {}, {} of {of} cases, seed {SEED:#x}", name(), taken.len());
    all.into_iter().enumerate().filter(|(n, _)| taken.contains(n)).map(|(_, case)| case).collect()
}
