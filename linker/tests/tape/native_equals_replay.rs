//! Stage One gives the same bits on a CPU machine and in the interpreter at every width, over random sequences of
//! steps with invalid ids, rollbacks and changes of generation. The tests of the device crate compare the machines.

#[expect(dead_code, reason = "the tests of emitted kernels choose steps and trace them")]
pub mod random_step;

use avsg_device::learned::{LIFETIMES, part};
use avsg_device::memory::links_end;
use avsg_device::params::{Lifetime, MAX_SLOTS, Params};
use avsg_device::request::{status, summary};
use avsg_device::sequential::Sequential;
use avsg_device::vector_core::VectorCore;
use avsg_linker::check::check;
use avsg_linker::record::{record_scheduled, record_stage_one};
use avsg_linker::tape::Tape;
use std::collections::BTreeSet;

use crate::geometries::small_geometries;
use random_step::{Request, SplitMix64, StepState};

/// Returns the states after steps, each of which `run` runs. Deferred refreshes follow a step; without `deferring` there are
/// none.
fn run_steps(
    p: &Params,
    steps: &[Request],
    deferring: bool,
    run: impl Fn(&mut StepState, &Request),
) -> Vec<StepState> {
    let mut state = StepState::clear(p);
    let run_step = |step: &Request| {
        let mut step = step.clone();
        if !deferring {
            step.set("deferred", 0);
        }
        state.prepare(&step);
        run(&mut state, &step);
        state.finish(&step);
        state.clone()
    };
    steps.iter().map(run_step).collect()
}

/// Runs random steps in every way and compares the results. Some of the steps have values of lifetimes that
/// no request would learn.
fn compare(p: &Params, random: &mut SplitMix64, steps: usize) -> Vec<StepState> {
    let mut steps = random_step::sequence(p, random, steps);
    random_step::scramble(&mut steps, random);
    compare_steps(p, &steps)
}

/// Runs steps in every way and compares the results. Returns the states after them.
fn compare_steps(p: &Params, steps: &[Request]) -> Vec<StepState> {
    p.check().unwrap_or_else(|e| panic!("{p:?}: {e:?}"));
    let tape = record_scheduled(Sequential, p).unwrap();
    check(&tape).unwrap_or_else(|e| panic!("{e}"));
    let replayed = |tape: &Tape, width: usize, deferring: bool| {
        run_steps(p, steps, deferring, |state, step| state.replay(tape, width, step))
    };
    let want = replayed(&tape, 16, false);
    let expect_same = |name: &str, got: Vec<StepState>| {
        for (n, (got, want)) in got.iter().zip(&want).enumerate() {
            assert_eq!(got.difference(want), None, "{name}, step {n} of {p:?}");
        }
    };
    for width in [1, 3, 2048] {
        expect_same(&format!("replay at {width}"), replayed(&tape, width, false));
    }
    let deferring = record_stage_one(p).unwrap();
    check(&deferring).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(deferring == tape, !VectorCore::serves(p), "only the wide table defers refreshes");
    expect_same("scheduled replay without deferral", replayed(&deferring, 16, false));
    expect_same("deferred replay", replayed(&deferring, 3, true));
    expect_same("Emu<16>", run_steps(p, steps, false, StepState::native));
    want
}

fn summary_word(state: &StepState, word: i32) -> i32 {
    state.output("gm_summary")[summary::WORDS + word as usize]
}

/// Covers both tables, all spreads, both lifetimes, and geometries with and without a block table.
#[test]
fn small_geometries_match() {
    let random = &mut SplitMix64(1);
    let (mut returned, mut missed, mut bits) = (0, 0, 0);
    for p in (1..=4).flat_map(|tokens| small_geometries(Some(tokens))) {
        for state in compare(&p, random, 12) {
            bits |= summary_word(&state, summary::STATUS);
            missed += summary_word(&state, summary::TOTAL) as usize;
            returned += state.output("gm_slot").iter().filter(|&&slot| slot >= 0).count();
        }
    }
    // At least a third of the returned slots are hits, and both kinds of invalid ids occur.
    assert!(missed > 1000 && returned > missed * 3 / 2, "{returned} returned, {missed} missed");
    assert_eq!(bits, status::ID_OUT_OF_RANGE | status::ROW_OUT_OF_POOL);
}

/// Two generations are long enough to learn values, and these choose victims.
#[test]
fn learned_values_match() {
    let p = Params { page: 16, ..Params::wide(64, 2, 256) };
    assert_eq!(p.lifetime, Lifetime::Learned);
    let steps = random_step::sequence(&p, &mut SplitMix64(5), 400);
    let states = compare_steps(&p, &steps);
    let values = links_end(&p) + part::VALUES..links_end(&p) + LIFETIMES;
    let learned = |state: &StepState| !state.table[values.clone()].is_sorted();
    let taught = steps.iter().zip(&states).filter(|(_, state)| learned(state));
    let taught: BTreeSet<_> = taught.map(|(step, _)| step.param("generation")).collect();
    assert!(taught.len() >= 2, "{taught:?}");
}

/// A summary has more tokens than words for their misses. The most slots: each link and each fingerprint has the fewest bits or
/// the most, and probe sequences of four links per slot do not fit a word. Lengths that are no powers of two: the slots of
/// lanes above 256 must not wrap around. And sweeps of several tiles.
#[test]
fn many_tokens_and_large_and_odd_geometries_match() {
    let most = |spread| Params { spread, ..Params::wide(64, 2, MAX_SLOTS) };
    let tokens =
        [9, 16].map(|tokens| [Params::wide(7, tokens, 128), Params::paper(7, tokens, 128)]);
    let tokens = tokens.into_iter().flatten().map(|p| (p, 4));
    let learned = (Params { page: 16, ..Params::wide(40, 16, 1024) }, 40);
    assert_eq!(learned.0.lifetime, Lifetime::Learned);
    let odd = [65, 129, 257, 300, 500].map(|k| (Params::wide(k, 2, 1024), 3));
    let large = [(most(1), 2), (most(4), 2), (Params::paper(512, 1, 1024), 4), learned];
    let wide = [2048, 1536].map(|slots| (Params::wide(512, 2, slots), 4));
    let all = tokens.chain(odd).chain(large).chain(wide);
    for (seed, (p, steps)) in (2..).zip(all) {
        let compared = compare(&p, &mut SplitMix64(seed), steps);
        let missed: i32 = compared.iter().map(|state| summary_word(state, summary::TOTAL)).sum();
        assert!(missed > 8, "{p}: {missed} misses");
    }
}
