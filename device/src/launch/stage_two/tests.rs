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
fn every_strategy_copies_every_miss_once() {
    let lists: [&[i32]; 4] = [&[0, 1, 2, 9], &[], &[5], &[0, 7, 8, 15, 16, 17]];
    for strategy in [Strategy::Request, Strategy::Position, Strategy::Balanced] {
        for cores in 1..10 {
            let mut seen = [[0; 8]; 4];
            for core in 0..cores {
                let share = |r: usize| RequestMisses { positions: lists[r], selected: 20 };
                for_each_range(strategy, core, cores, 4, share, |r, range| {
                    assert!(!range.is_empty());
                    range.for_each(|i| seen[r][i] += 1);
                });
            }
            for (r, list) in lists.iter().enumerate() {
                assert!(seen[r].iter().enumerate().all(|(i, &n)| n == i32::from(i < list.len())));
            }
        }
    }
}
