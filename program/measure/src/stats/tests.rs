//! Tests of the summaries of times.

use super::*;

#[test]
fn a_few_long_times_change_the_spread_and_not_the_median() {
    let mut quiet: Vec<f64> = (0..100).map(|n| 5.0 + f64::from(n) / 100.0).collect();
    let mut disturbed = quiet.clone();
    disturbed.iter_mut().step_by(7).for_each(|time| *time = 40.0);
    let (quiet, disturbed) = (summary(&mut quiet), summary(&mut disturbed));
    assert!(quiet.spread() < 1.1 && disturbed.spread() > 2.0, "{quiet:?} {disturbed:?}");
    assert!((disturbed.p50 / quiet.p50 - 1.0).abs() < 0.1);
    assert!(summary(&mut []).spread().is_nan());
}
