//! Tests of the division of misses.

use super::*;

#[test]
fn shares_cover_all_items_and_differ_by_at_most_one() {
    // Miri is about a thousand times slower, so it tests fewer lengths.
    let (lengths, most) = if cfg!(miri) { (12, 8) } else { (200, 50) };
    for n in 0..lengths {
        for cores in 1..most {
            let sizes = (0..cores).map(|c| share_start(n, c + 1, cores) - share_start(n, c, cores));
            let (low, high) = sizes.fold((usize::MAX, 0), |(l, h), s| (l.min(s), h.max(s)));
            assert!(high - low <= 1);
            assert!((0..=cores).all(|c| share_start(n, c, cores) == c * n / cores));
        }
    }
    assert_eq!(share_start(usize::MAX, 3, 3), usize::MAX);
}

#[test]
fn every_miss_is_copied_once() {
    let lists = [4, 0, 1, 6];
    for cores in 1..10 {
        let mut seen = [[0; 8]; 4];
        for core in 0..cores {
            for_each_range(
                core,
                cores,
                4,
                |request| lists[request],
                |request, range| {
                    assert!(!range.is_empty());
                    range.for_each(|i| seen[request][i] += 1);
                },
            );
        }
        for (seen, n) in seen.iter().zip(lists) {
            assert!((0..8).all(|i| seen[i] == i32::from(i < n)));
        }
    }
}
