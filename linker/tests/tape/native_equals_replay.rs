//! Stage One gives the same bits on every machine and in the interpreter at every width, over
//! random sequences of steps with invalid ids, rollbacks and changes of generation.

pub mod step;

use avsg_device::learned::{LIFETIMES, part};
use avsg_device::machine::cpu::Cpu;
use avsg_device::machine::emu::Emu;
use avsg_device::params::{Lifetime, MAX_SLOTS, Params};
use avsg_device::request::{record, status};
use avsg_device::sequential::Sequential;
use avsg_device::vector_core::VectorCore;
use avsg_linker::check::check;
use avsg_linker::record::{record_scheduled, record_stage_one};
use avsg_linker::tape::Tape;
use std::collections::{BTreeMap, BTreeSet};

use crate::outputs::small_geometries;
use step::{Request, SplitMix64, StepState};

/// Runs steps on a native machine.
fn native<C: Cpu>(m: C, p: &Params, steps: &[Request]) -> Vec<StepState> {
    let mut state = StepState::clear(p);
    let run_step = |step| {
        state.prepare(p, step);
        state.native(m, p, step);
        state.learn(p);
        state.clone()
    };
    steps.iter().map(run_step).collect()
}

/// Runs steps in the interpreter, with deferred refreshes, which follow the step, or without.
fn replayed(
    tape: &Tape,
    width: usize,
    p: &Params,
    steps: &[Request],
    deferring: bool,
) -> Vec<StepState> {
    let mut state = StepState::clear(p);
    let run_step = |step: &Request| {
        let mut step = step.clone();
        if !deferring {
            step.params.iter_mut().filter(|p| p.0 == "deferred").for_each(|p| p.1 = 0);
        }
        state.prepare(p, &step);
        state.replay(tape, width, &step);
        state.finish(p, &step);
        state.clone()
    };
    steps.iter().map(run_step).collect()
}

/// Checks that the step returned no slot for two ids, so that no slot that it used was a victim later.
fn assert_one_id_per_slot(step: &Request, state: &StepState) {
    let [tokens, k, ids_at, ids_stride, slot_at, slot_stride] =
        ["tokens", "k", "ids_at", "ids_stride", "slot_at", "slot_stride"]
            .map(|name| step.param(name) as usize);
    let mut held = BTreeMap::new();
    for (token, lane) in (0..tokens).flat_map(|token| (0..k).map(move |lane| (token, lane))) {
        let id = step.ids[ids_at + token * ids_stride + lane];
        let slot = state.output("gm_slot")[slot_at + token * slot_stride + lane];
        if slot >= 0 {
            assert_eq!(*held.entry(slot).or_insert(id), id, "slot {slot}");
        }
    }
}

/// Totals over the steps of a test, which show that the steps were not empty.
#[derive(Default)]
struct Totals {
    returned: usize,
    missed: usize,
    status: i32,
}

/// Runs random steps in every way and compares the results. Some of the steps have values of lifetimes that
/// no request would learn.
fn compare(p: &Params, random: &mut SplitMix64, steps: usize) -> Totals {
    let mut steps = step::sequence(p, random, steps);
    step::scramble(&mut steps, random);
    compare_steps(p, &steps)
}

/// Runs steps in every way and compares the results.
fn compare_steps(p: &Params, steps: &[Request]) -> Totals {
    p.check().unwrap_or_else(|e| panic!("{p:?}: {e:?}"));
    let tape = record_scheduled::<Sequential>(p).unwrap();
    check(&tape).unwrap_or_else(|e| panic!("{e}"));
    let want = replayed(&tape, 16, p, steps, false);
    for (step, state) in steps.iter().zip(&want) {
        assert_one_id_per_slot(step, state);
    }
    let expect_same = |name: &str, got: Vec<StepState>| {
        for (n, (got, want)) in got.iter().zip(&want).enumerate() {
            got.expect_same(want, &format!("{name}, step {n} of {p:?}"));
        }
    };
    for width in [1, 3, 2048] {
        expect_same(&format!("replay at {width}"), replayed(&tape, width, p, steps, false));
    }
    let deferring = record_stage_one(p).unwrap();
    check(&deferring).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(deferring == tape, !VectorCore::serves(p), "only the wide table defers refreshes");
    expect_same("scheduled replay without deferral", replayed(&deferring, 16, p, steps, false));
    expect_same("deferred replay at 16", replayed(&deferring, 16, p, steps, true));
    expect_same("deferred replay at 3", replayed(&deferring, 3, p, steps, true));
    expect_same("Emu<1>", native(Emu::<1>, p, steps));
    expect_same("Emu<3>", native(Emu::<3>, p, steps));
    expect_same("Emu<16>", native(Emu::<16>, p, steps));
    #[cfg(target_arch = "x86_64")]
    {
        use avsg_device::machine::avx512::Avx512;
        if let (Some(extracted), Some(gathered)) =
            (Avx512::<false>::detect(), Avx512::<true>::detect())
        {
            expect_same("AVX-512, extracted lanes", native(extracted, p, steps));
            expect_same("AVX-512, vpgatherdd", native(gathered, p, steps));
        }
    }
    let mut totals = Totals::default();
    for state in &want {
        let request = &state.output("gm_record")[record::WORDS..];
        totals.status |= request[record::STATUS as usize];
        totals.missed += request[record::TOTAL as usize] as usize;
        totals.returned += state.output("gm_slot").iter().filter(|&&slot| slot >= 0).count();
    }
    totals
}

/// Covers both tables, all spreads, both lifetimes, and geometries with and without a block table.
#[test]
fn small_geometries_match() {
    let random = &mut SplitMix64(1);
    let (mut returned, mut missed, mut bits) = (0, 0, 0);
    for p in (1..=4).flat_map(|tokens| small_geometries(Some(tokens))) {
        let totals = compare(&p, random, 12);
        (returned, missed) = (returned + totals.returned, missed + totals.missed);
        bits |= totals.status;
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
    let steps = step::sequence(&p, &mut SplitMix64(5), 400);
    compare_steps(&p, &steps);
    let (mut state, mut taught) = (StepState::clear(&p), BTreeSet::new());
    for step in &steps {
        state.native(Emu::<16>, &p, step);
        state.learn(&p);
        let values = &state.output("learned")[part::VALUES..LIFETIMES];
        if !values.is_sorted() {
            taught.insert(step.param("generation"));
        }
    }
    assert!(taught.len() >= 2, "{taught:?}");
}

/// A record has more tokens than words for their misses.
#[test]
fn nine_to_sixteen_tokens_match() {
    let random = &mut SplitMix64(6);
    for tokens in 9..=16 {
        let constant = Lifetime::Constant(random.below(2) as i8);
        let wide = Params::wide(7, tokens, 128);
        for p in [wide, Params { lifetime: constant, ..wide }, Params::paper(7, tokens, 128)] {
            let compared = compare(&p, random, 4);
            assert!(compared.missed > 8, "{p}: {} misses", compared.missed);
        }
    }
    let learned = Params { page: 16, ..Params::wide(40, 16, 1024) };
    assert_eq!(learned.lifetime, Lifetime::Learned);
    compare(&learned, random, 40);
}

/// The most slots: each link and each fingerprint has the fewest bits or the most, and probe sequences of four links per
/// slot do not fit a word. Lengths that are no powers of two: the slots of lanes above 256 must not wrap around. And
/// sweeps of several tiles.
#[test]
fn large_and_odd_geometries_match() {
    let most = |spread| Params { spread, ..Params::wide(64, 2, MAX_SLOTS) };
    let odd = [65, 129, 257, 300, 500].map(|k| (Params::wide(k, 2, 1024), 3));
    let large = [(most(1), 2), (most(4), 2), (Params::paper(512, 1, 1024), 4)];
    let wide = [2048, 1536].map(|slots| (Params::wide(512, 2, slots), 4));
    for (seed, (p, steps)) in (2..).zip(odd.into_iter().chain(large).chain(wide)) {
        compare(&p, &mut SplitMix64(seed), steps);
    }
}
