//! Tests of the synthetic workload: its shares of reuse, and the same trace on every machine.

use std::collections::HashSet;

use avsg_cli::synth::{CONTEXT, Synth};
use avsg_cli::trace::Trace;
use avsg_testkit::splitmix::mix;

fn synth(gamma: f64, mu: f64) -> Synth {
    Synth { gamma, mu, k: 1024, steps: 12, seed: 7, context: CONTEXT }
}

/// Returns for each step from the second on: the number of ids that the previous step selected too,
/// and the number of ids that only earlier steps selected.
fn reused_ids(trace: &Trace) -> Vec<(usize, usize)> {
    let mut seen = HashSet::new();
    let rows = trace.ids.chunks(trace.k).map(|row| row.iter().copied().collect::<HashSet<i32>>());
    let mut previous = HashSet::new();
    let mut out = Vec::new();
    for row in rows {
        assert_eq!(row.len(), trace.k, "ids of a row are distinct");
        let of_previous = row.intersection(&previous).count();
        out.push((of_previous, row.intersection(&seen).count() - of_previous));
        seen.extend(&row);
        previous = row;
    }
    out.split_off(1)
}

#[test]
fn reuse_is_as_gamma_and_mu_say() {
    for (gamma, mu) in [(0.5, 0.3), (0.8, 0.6), (0.25, 0.1)] {
        let trace = synth(gamma, mu).trace().unwrap();
        assert_eq!((trace.steps, trace.tokens, trace.k, &trace.stable), (12, 1, 1024, &None));
        assert!(trace.ids.iter().all(|&id| (0..CONTEXT as i32).contains(&id)));
        let kept = (gamma * 1024.0).round() as usize;
        // In the second step no id is old enough to return.
        for (step, (of_previous, of_earlier)) in reused_ids(&trace).into_iter().enumerate().skip(1)
        {
            assert_eq!(of_previous, kept, "step {step}");
            let others = 1024 - kept;
            let share = of_earlier as f64 / others as f64;
            assert!((share - mu).abs() < 0.05, "step {step}: a share of {share}, not {mu}");
        }
    }
}

#[test]
fn an_exhausted_context_returns_its_least_recently_used_ids() {
    let small = Synth { gamma: 0.0, mu: 0.0, k: 8, steps: 20, seed: 1, context: 20 };
    let trace = small.trace().unwrap();
    // 16 ids are new in the first two steps; the third takes the last 4 and the 4 oldest.
    let third: HashSet<i32> = trace.row(2, 0).iter().copied().collect();
    assert_eq!(trace.row(0, 0).iter().filter(|id| third.contains(id)).count(), 4);
    assert_eq!(trace.row(1, 0).iter().filter(|id| third.contains(id)).count(), 0);
    let all = Synth { context: 8, ..small }.trace().unwrap();
    assert_eq!(all.row(5, 0).iter().collect::<HashSet<_>>().len(), 8);
}

#[test]
fn a_seed_determines_the_trace() {
    let trace = synth(0.8, 0.5).trace().unwrap();
    assert_eq!(trace, synth(0.8, 0.5).trace().unwrap());
    let other = Synth { seed: 8, ..synth(0.8, 0.5) }.trace().unwrap();
    assert_ne!(trace, other);
    let sum = trace.ids.iter().fold(0, |sum, &id| mix(sum ^ id as u64));
    assert_eq!(sum, 15383355161291201029, "the trace differs from other machines' trace");
}
