//! How much a run of the tests does: a sample by default, all with `AVSG_THOROUGH=1`.

use crate::splitmix::SplitMix64;

/// Whether everything is to be run.
pub fn thorough() -> bool {
    std::env::var_os("AVSG_THOROUGH").is_some_and(|v| v == "1")
}

/// The points of 0..`of` that this run takes, in order: all of them if it is thorough, else for each
/// different `kind` the first, the last, and up to `more` between them, drawn by the seed, which is printed.
pub fn sample<K: PartialEq>(
    what: &str,
    seed: u64,
    of: usize,
    more: usize,
    kind: impl Fn(usize) -> K,
) -> Vec<usize> {
    if thorough() {
        return (0..of).collect();
    }
    let mut kinds: Vec<(K, Vec<usize>)> = Vec::new();
    for at in 0..of {
        let one = kind(at);
        match kinds.iter_mut().find(|(known, _)| *known == one) {
            Some((_, points)) => points.push(at),
            None => kinds.push((one, vec![at])),
        }
    }
    let mut dice = SplitMix64::new(seed);
    let mut taken = Vec::new();
    for (_, points) in &kinds {
        let (first, last) = (points[0], points[points.len() - 1]);
        let mut between = points.get(1..points.len() - 1).unwrap_or_default().to_vec();
        dice.shuffle(&mut between);
        between.truncate(more);
        taken.extend(between.into_iter().chain([first, last]));
    }
    taken.sort_unstable();
    taken.dedup();
    println!("{what}: {} of {of} points by seed {seed}; AVSG_THOROUGH=1 takes all", taken.len());
    taken
}

/// The cases of 0..`of` that this run takes, in order: all of them if it is thorough, else as few as have every
/// value of each axis once; which, the seed says, which is printed. `axes` are a case's values.
pub fn cover<const N: usize>(
    what: &str,
    seed: u64,
    of: usize,
    axes: impl Fn(usize) -> [usize; N],
) -> Vec<usize> {
    if thorough() {
        return (0..of).collect();
    }
    let mut order: Vec<usize> = (0..of).collect();
    SplitMix64::new(seed).shuffle(&mut order);
    let mut seen: Vec<(usize, usize)> = Vec::new();
    let mut taken = Vec::new();
    for case in order {
        let new = |axis: &(usize, usize)| !seen.contains(axis);
        let values: Vec<_> = axes(case).into_iter().enumerate().filter(new).collect();
        if !values.is_empty() {
            seen.extend(values);
            taken.push(case);
        }
    }
    taken.sort_unstable();
    println!("{what}: cases {taken:?} of {of} by seed {seed}; AVSG_THOROUGH=1 takes all");
    taken
}
