//! Which tier of tests runs, and how the default tier thins a matrix. Needs nothing else of this crate:
//! packages below it include this file by its path.

use std::collections::BTreeSet;

/// Where samples of the default tier start: the same cases in every run.
pub const SEED: u64 = 0x5EED_0910;

/// Does everything run? So it is with `AVSG_THOROUGH=1`.
pub fn thorough() -> bool {
    std::env::var_os("AVSG_THOROUGH").is_some_and(|value| value == "1")
}

/// What tests call the tier when they say what they ran.
pub fn name() -> &'static str {
    if thorough() { "thorough tier" } else { "default tier" }
}

/// The cases of a matrix that this tier runs, in their order: all of them, or a sample of at least
/// `least` in which every value of every axis occurs. `axes` names a case's value on each axis.
pub fn cases<T>(what: &str, all: Vec<T>, least: usize, axes: impl Fn(&T) -> Vec<String>) -> Vec<T> {
    let of = all.len();
    if thorough() {
        println!("{what}: {}, {of} of {of} cases", name());
        return all;
    }
    let values: Vec<Vec<_>> =
        all.iter().map(|case| axes(case).into_iter().enumerate().collect()).collect();
    // A case's place in the draw: splitmix64 of the seed and its number.
    let place = |case: usize| {
        let z = SEED.wrapping_add((case as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let mut drawn: Vec<_> = (0..of).collect();
    drawn.sort_by_key(|&case| place(case));
    let (mut seen, mut taken) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let new = |case: usize| values[case].iter().filter(|v| !seen.contains(v)).count();
        let free = drawn.iter().copied().filter(|case| !taken.contains(case));
        // The first drawn of those with the most values that no case has had; `max_by_key` takes the last.
        let Some(best) = free.rev().max_by_key(|&case| new(case)) else { break };
        if new(best) == 0 && taken.len() >= least {
            break;
        }
        seen.extend(&values[best]);
        taken.insert(best);
    }
    println!("{what}: {}, {} of {of} cases, seed {SEED:#x}", name(), taken.len());
    all.into_iter().enumerate().filter(|(n, _)| taken.contains(n)).map(|(_, case)| case).collect()
}

#[cfg(test)]
mod tests {
    use super::{cases, thorough};

    #[test]
    fn a_sample_holds_every_value_of_every_axis() {
        let all: Vec<_> = (0..60).map(|n| (n % 3, n / 3 % 4, n / 12)).collect();
        let names = |c: &(i32, i32, i32)| vec![c.0.to_string(), c.1.to_string(), c.2.to_string()];
        let some = cases("numbers", all.clone(), 7, names);
        assert!(some.len() == 7 && !thorough() || some == all);
        assert!((0..3).all(|x| some.iter().any(|c| c.0 == x)));
        assert!((0..4).all(|x| some.iter().any(|c| c.1 == x)));
        assert!((0..5).all(|x| some.iter().any(|c| c.2 == x)));
        assert!(some.is_sorted_by_key(|c| (c.2, c.1, c.0)));
        assert_eq!(cases("numbers", all, 7, names), some);
    }
}
