//! Tests of the hit rates of exact LRU for all buffer sizes, and of rows that were rewritten: a buffer
//! that is simulated from the definition, and the policy itself.

use std::collections::HashMap;

use avsg_cli::baseline::{Belady, ExactLru, HitCount, LruCurve, count_hits};
use avsg_cli::trace::Trace;
use avsg_testkit::splitmix::SplitMix64;

use crate::support::SAMPLE;

/// Counts the hits of exact LRU on a list of ids, oldest first, with the version of each row: a step
/// gives the rows from `stable` on a new version, and a hit needs the row that has the current one.
fn simulate(trace: &Trace, slots: usize) -> HitCount {
    let mut list: Vec<i32> = Vec::new();
    let (mut current, mut held) = (HashMap::new(), HashMap::new());
    let mut count = HitCount::default();
    for step in 0..trace.steps {
        let stable = trace.stable.as_ref().map_or(-1, |s| s[step]);
        if stable >= 0 {
            (stable..100).for_each(|id| *current.entry(id).or_insert(0) += 1);
        }
        for token in 0..trace.tokens {
            let row: Vec<i32> =
                trace.row(step, token).iter().copied().filter(|&i| i >= 0).collect();
            let mut hits = 0;
            for (at, &id) in row.iter().enumerate() {
                let version = *current.get(&id).unwrap_or(&0);
                let fresh = held.insert(id, version) == Some(version);
                hits += u64::from(row[..at].contains(&id) || list.contains(&id) && fresh);
            }
            list.retain(|id| !row.contains(id));
            let mut last: Vec<i32> = Vec::new();
            for &id in row.iter().rev() {
                if !last.contains(&id) {
                    last.push(id);
                }
            }
            list.extend(last.iter().rev());
            list.drain(..list.len().saturating_sub(slots));
            count.selected += row.len() as u64;
            count.hits += hits;
        }
        if step == 0 {
            (count.first_selected, count.first_hits) = (count.selected, count.hits);
        }
    }
    count
}

/// Returns a trace with padding, repeated ids and, in every second case, rows that are rewritten.
fn random_trace(random: &mut SplitMix64, case: usize) -> Trace {
    let [steps, tokens, k] = [2 + random.below(14), 1 + case % 3, 1 + random.below(6)];
    let context = k + random.below(30);
    let ids = (0..steps * tokens * k).map(|_| random.below(context + 1) as i32 - 1).collect();
    let stable = |_| random.below(context + 2) as i32 - 1;
    let stable = case.is_multiple_of(2).then(|| (0..steps).map(stable).collect());
    Trace::new(ids, stable, [steps, tokens, k]).unwrap()
}

#[test]
fn the_curve_is_the_brute_force_simulation_at_every_size() {
    let mut random = SplitMix64::new(21);
    for case in 0..150 {
        let trace = random_trace(&mut random, case);
        let curve = LruCurve::of(&trace);
        for slots in trace.k..trace.k + 40 {
            let expected = simulate(&trace, slots);
            assert_eq!(curve.count(slots), expected, "case {case}, {slots} slots");
            let policy = count_hits(&trace, &mut ExactLru::new(slots).unwrap());
            assert_eq!(policy, expected, "case {case}, {slots} slots");
        }
    }
}

#[test]
fn the_curve_is_the_policy_on_the_committed_trace() {
    let trace = Trace::read(SAMPLE).unwrap();
    let curve = LruCurve::of(&trace);
    let end = curve.largest_distance();
    assert!((1024..4352).contains(&end), "{end}");
    for slots in (256..end + 128).step_by(256) {
        let policy = count_hits(&trace, &mut ExactLru::new(slots).unwrap());
        assert_eq!(curve.count(slots), policy, "{slots} slots");
    }
    assert_eq!(curve.count(end), curve.count(usize::MAX));
    assert!(curve.count(end - 1).hits < curve.count(end).hits);
}

/// The order of use is renumbered when its times run out: here after every 4 * K selections.
#[test]
fn long_traces_renumber_the_order_of_use() {
    let mut random = SplitMix64::new(22);
    let ids = (0..4000).map(|_| random.below(300) as i32).collect();
    let trace = Trace::new(ids, None, [2000, 1, 2]).unwrap();
    let curve = LruCurve::of(&trace);
    for slots in [2, 3, 64, 150, 299, 300, 301] {
        let policy = count_hits(&trace, &mut ExactLru::new(slots).unwrap());
        assert_eq!(curve.count(slots), policy, "{slots} slots");
    }
}

#[test]
fn traces_without_reuse_or_without_ids_have_a_curve() {
    let curve = |ids: Vec<i32>, shape| LruCurve::of(&Trace::new(ids, None, shape).unwrap());
    let never = curve((0..64).collect(), [16, 1, 4]);
    assert_eq!((never.largest_distance(), never.count(64).percent()), (0, Some(0.0)));
    let one = curve(vec![7; 16], [16, 1, 1]);
    assert_eq!((one.largest_distance(), one.count(1).percent()), (1, Some(100.0)));
    let padding = curve(vec![-1; 16], [4, 2, 2]);
    assert_eq!(padding.count(64).percent(), None);
    let first_only = curve(vec![1, 2, 3, 4], [1, 1, 4]);
    assert_eq!((first_only.count(64).percent(), first_only.count(64).misses()), (None, 0));
}

#[test]
fn the_selection_of_a_rewritten_row_is_a_miss_of_every_policy() {
    // Step 1 rewrites rows 5 and 6, step 2 rewrites none of them, step 3 rewrites row 6 alone.
    let ids = vec![4, 5, 6, 4, 5, 6, 4, 5, 6, 4, 5, 6];
    let trace = Trace::new(ids, Some(vec![-1, 5, 7, 6]), [4, 1, 3]).unwrap();
    assert_eq!(trace.stale(), [4, 5, 11]);
    let curve = LruCurve::of(&trace);
    for count in [
        count_hits(&trace, &mut ExactLru::new(16).unwrap()),
        count_hits(&trace, &mut Belady::new(&trace, 16).unwrap()),
        curve.count(16),
    ] {
        assert_eq!((count.selected, count.hits, count.misses()), (12, 6, 3));
    }
    // Token 1 of a step may select a row that token 0 of the same step selected first.
    let trace = Trace::new(vec![9, 9, 9, 9], Some(vec![9, 9]), [2, 2, 1]).unwrap();
    assert_eq!(trace.stale(), [2]);
    assert_eq!(LruCurve::of(&trace).count(2).hits, 2);
}
