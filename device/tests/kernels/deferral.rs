//! The order of the work changes no result: neither deferred refreshes, searches of all links at
//! once, nor sharing of a token. Most refreshes are deferred where the schedule defers.

// Miri runs the conformance suite over the same machines; here it would take minutes.
#![cfg(not(miri))]

use super::one_request::{OneRequest, Order, Runner, Step};
use super::sequences;
use avsg_device::machine::emu::Emu;
use avsg_device::params::{Lifetime, Params};
use proptest::prelude::*;

/// Compares all state and outputs of the steps of each schedule on `m` with those of [`Sequential`]
/// on the scalar machine, whatever values a request has learned.
///
/// [`Sequential`]: avsg_device::sequential::Sequential
fn changes_nothing(m: impl Runner) {
    let mut runner = proptest::test_runner::TestRunner::new(sequences::config(192));
    let result = runner.run(&sequences::sequences(false), |(p, steps)| {
        let mut one = OneRequest::new(p);
        let (mut batched, mut simt) = (one.clone(), one.clone());
        (batched.order, simt.order) = (Order::VectorCore, Order::Simt);
        for (i, step) in steps.iter().enumerate() {
            batched.shared = i % 2 == 0;
            for request in [&mut one, &mut batched, &mut simt] {
                request.scramble(i as u32);
            }
            let outcome = one.step(Emu::<1>, step);
            prop_assert_eq!(&outcome, &batched.step(m, step), "step {}, batched", i);
            prop_assert_eq!(&outcome, &simt.step(m, step), "step {}, simt", i);
        }
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn no_schedule_changes_a_result() {
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
        r.order = Order::VectorCore;
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
