//! A refresh that waits until the miss list is published changes nothing, and most of it does wait.

// Safe code over machines that the conformance suite shows to Miri; here it would take minutes.
#![cfg(not(miri))]

#[path = "rig/one_request.rs"]
mod one_request;
#[path = "rig/sequences.rs"]
mod sequences;

use avsg_device::defer::{Refresh, refresh_early};
use avsg_device::machine::Kernel;
use avsg_device::machine::cpu::{Cpu, Scalar};
use avsg_device::machine::emu::Emu;
use avsg_device::machine::memory::{split_state, split_work, work_words};
use avsg_device::params::{ID_LIMIT, Lifetime, Params};
use avsg_device::probe::probe;
use one_request::{OneRequest, Runner, Step};
use proptest::prelude::*;

/// Deferred on `m` against at once on the scalar machine: all that a step leaves behind must be equal.
fn changes_nothing(m: impl Runner) {
    let mut runner = proptest::test_runner::TestRunner::new(sequences::config(192));
    let result = runner.run(&sequences::sequences(false), |(p, steps)| {
        let (mut one, mut other) = (OneRequest::new(p), OneRequest::new(p));
        other.when = Refresh::Late;
        for (i, step) in steps.iter().enumerate() {
            prop_assert_eq!(one.step(Emu::<1>, step), other.step(m, step), "step {}", i);
        }
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn scalar() {
    changes_nothing(Emu::<1>);
}

#[test]
fn sixteen_lanes() {
    changes_nothing(Emu::<16>);
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[test]
fn x86() {
    use avsg_device::machine::{avx2::Avx2, avx512::Avx512};
    Avx2::detect().map_or_else(|| println!("skipped: no AVX2"), changes_nothing);
    Avx512::<false>::detect().map_or_else(|| println!("skipped: no AVX-512"), changes_nothing);
    Avx512::<true>::detect().map_or_else(|| println!("skipped: no AVX-512"), changes_nothing);
}

/// Counts a token's hits, and the lifetimes that change before victims are chosen.
struct Early<'a>(&'a mut OneRequest, &'a [i32]);

impl Kernel for Early<'_> {
    type Out = (usize, usize);
    #[inline(always)]
    fn run<C: Cpu>(self, m: C) -> (usize, usize) {
        let Self(OneRequest { p, state, .. }, ids) = self;
        let mut words = vec![0; work_words(p)];
        let mut work = split_work::<C>(p, &mut words);
        let mut state = split_state::<C>(p, state);
        work.ids.words_mut()[..ids.len()].copy_from_slice(ids);
        let k = Scalar::new(i32::try_from(ids.len()).expect("small"));
        probe(m, p, &state, &mut work, k, Scalar::new(ID_LIMIT));
        let before = state.life.slots().to_vec();
        refresh_early(m, p, &mut state, &mut work, k);
        let changed = before.iter().zip(state.life.slots()).filter(|(a, b)| a != b).count();
        (work.slot.words()[..ids.len()].iter().filter(|&&s| s >= 0).count(), changed)
    }
}

#[test]
fn most_hits_wait_where_slots_outnumber_ids() {
    let k = 64;
    for lifetime in [Lifetime::Constant(127), Lifetime::frequency()] {
        let mut r = OneRequest::new(Params { lifetime, ..Params::wide(k, 1, 512) });
        let (mut hits, mut early) = (0, 0);
        for step in 0..40 {
            // A tenth of the selection is new in every step.
            let ids: Vec<i32> = (0..64).map(|i| 6 * step + i).collect();
            if step > 10 {
                let (h, e) = Emu::<1>.run(Early(&mut r.clone(), &ids));
                (hits, early) = (hits + h, early + e);
            }
            let _ = r.step(Emu::<1>, &Step::from(vec![ids]));
        }
        assert!(hits > 1000 && early * 20 < hits, "{early} of {hits} hits, {lifetime:?}");
    }
}
