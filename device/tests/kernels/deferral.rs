//! Deferred refreshes, searches of all links at once, and sharing of a token change no result, and
//! most refreshes are deferred.

// Miri runs the conformance suite over the same machines; here it would take minutes.
#![cfg(not(miri))]

use super::one_request::{OneRequest, Runner, Step};
use super::sequences;
use avsg_device::machine::emu::Emu;
use avsg_device::params::{Lifetime, Params};
use proptest::prelude::*;

/// Compares all state and outputs of deferred steps on `m` with those of steps that refresh at once
/// on the scalar machine, whatever values a request has learned.
fn changes_nothing(m: impl Runner) {
    let mut runner = proptest::test_runner::TestRunner::new(sequences::config(192));
    let result = runner.run(&sequences::sequences(false), |(p, steps)| {
        let (mut one, mut other) = (OneRequest::new(p), OneRequest::new(p));
        other.batched = true;
        for (i, step) in steps.iter().enumerate() {
            other.shared = i % 2 == 0;
            one.scramble(i as u32);
            other.scramble(i as u32);
            prop_assert_eq!(one.step(Emu::<1>, step), other.step(m, step), "step {}", i);
        }
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn deferral_changes_nothing() {
    changes_nothing(Emu::<1>);
    changes_nothing(Emu::<16>);
    #[cfg(target_arch = "x86_64")]
    {
        use avsg_device::machine::{avx2::Avx2, avx512::Avx512};
        Avx2::<false>::detect().map_or_else(|| println!("skipped: no AVX2"), changes_nothing);
        Avx2::<true>::detect().map_or_else(|| println!("skipped: no AVX2"), changes_nothing);
        Avx512::<false>::detect().map_or_else(|| println!("skipped: no AVX-512"), changes_nothing);
        Avx512::<true>::detect().map_or_else(|| println!("skipped: no AVX-512"), changes_nothing);
    }
}

#[test]
fn most_hits_are_deferred_if_there_are_more_slots_than_ids() {
    for lifetime in [Lifetime::Constant(127), Lifetime::Learned] {
        let mut r = OneRequest::new(Params { lifetime, ..Params::wide(640, 1, 4096) });
        r.batched = true;
        let (mut hits, mut deferred) = (0, 0);
        for step in 0..20 {
            // A tenth of the selection is new in every step.
            let ids: Vec<i32> = (0..640).map(|i| 64 * step + i).collect();
            let outcome = r.step(Emu::<1>, &Step::from(vec![ids]));
            if step > 10 {
                hits += 640 - outcome.misses.len();
                deferred += r.deferred;
            }
        }
        assert!(hits > 5000 && deferred * 20 > hits * 19, "{deferred} of {hits}, {lifetime:?}");
    }
}
