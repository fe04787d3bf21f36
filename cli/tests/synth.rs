//! The synthetic workload: the shares it was asked for, and the same trace on every machine.

use std::collections::HashSet;

use avsg_cli::synth::{CONTEXT, Synth};
use avsg_cli::trace::Trace;
use avsg_testkit::splitmix::mix;

fn synth(gamma: f64, mu: f64) -> Synth {
    Synth { gamma, mu, k: 1024, steps: 12, seed: 7, context: CONTEXT }
}

/// Of each step from the second: ids shared with the previous step, and ids seen in earlier ones only.
fn shares(trace: &Trace) -> Vec<(usize, usize)> {
    let mut seen = HashSet::new();
    let rows = trace.ids.chunks(trace.k).map(|row| row.iter().copied().collect::<HashSet<i32>>());
    let mut previous = HashSet::new();
    let mut out = Vec::new();
    for row in rows {
        assert_eq!(row.len(), trace.k, "ids of a row are distinct");
        let near = row.intersection(&previous).count();
        out.push((near, row.intersection(&seen).count() - near));
        seen.extend(&row);
        previous = row;
    }
    out.split_off(1)
}

#[test]
fn shares_are_as_asked() {
    for (gamma, mu) in [(0.5, 0.3), (0.8, 0.6), (0.25, 0.1)] {
        let trace = synth(gamma, mu).trace().unwrap();
        assert_eq!((trace.steps, trace.tokens, trace.k, &trace.stable), (12, 1, 1024, &None));
        assert!(trace.ids.iter().all(|&id| (0..CONTEXT as i32).contains(&id)));
        let kept = (gamma * 1024.0).round() as usize;
        // In the second step nothing is old enough to return.
        for (step, (near, far)) in shares(&trace).into_iter().enumerate().skip(1) {
            assert_eq!(near, kept, "step {step}");
            let rest = 1024 - kept;
            let share = far as f64 / rest as f64;
            assert!((share - mu).abs() < 0.05, "step {step}: {share} of the rest, not {mu}");
        }
    }
}

#[test]
fn the_recent_return_first() {
    // Weight e^-(age - 2): of ids that return, most were last used two steps ago.
    let trace = synth(0.5, 0.5).trace().unwrap();
    let row = |step: usize| trace.row(step, 0).iter().copied().collect::<HashSet<i32>>();
    let (now, one, two) = (row(9), row(8), row(7));
    let older: HashSet<i32> = (0..7).flat_map(row).collect();
    let back = |from: &HashSet<i32>, not: &[&HashSet<i32>]| {
        now.intersection(from).filter(|id| not.iter().all(|n| !n.contains(id))).count()
    };
    let (recent, old) = (back(&two, &[&one]), back(&older, &[&one, &two]));
    assert!(recent > 5 * old / 4 && old > 0, "{recent} against {old}");
}

#[test]
fn an_exhausted_context_gives_its_oldest() {
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
fn a_seed_is_a_trace() {
    let trace = synth(0.8, 0.5).trace().unwrap();
    assert_eq!(trace, synth(0.8, 0.5).trace().unwrap());
    let other = Synth { seed: 8, ..synth(0.8, 0.5) }.trace().unwrap();
    assert_ne!(trace, other);
    let sum = trace.ids.iter().fold(0, |sum, &id| mix(sum ^ id as u64));
    assert_eq!(sum, 15383355161291201029, "on another machine the trace differs");
}

#[test]
fn bad_parameters_are_refused() {
    let good = synth(0.5, 0.5);
    for (bad, part) in [
        (Synth { gamma: 1.5, ..good }, "gamma is 1.5"),
        (Synth { mu: f64::NAN, ..good }, "mu is NaN"),
        (Synth { k: 0, ..good }, "k is 0"),
        (Synth { k: CONTEXT + 1, ..good }, "16384 ids"),
        (Synth { context: 1 << 23, ..good }, "context is 8388608"),
        (Synth { steps: 0, ..good }, "steps is 0"),
        (Synth { steps: usize::MAX, ..good }, "steps is"),
    ] {
        let text = bad.trace().unwrap_err().to_string();
        assert!(text.contains(part) && !text.contains('\n'), "{text}");
    }
}
