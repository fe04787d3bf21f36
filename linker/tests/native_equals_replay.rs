//! Stage One gives the same bits on every machine and in the interpreter at every width, over
//! sequences of steps with everything in them that a request can do.

#[path = "native_equals_replay/step.rs"]
mod step;

use avsg_device::batched::Batched;
use avsg_device::machine::cpu::Cpu;
use avsg_device::machine::emu::Emu;
use avsg_device::params::{Lifetime, Params, Table};
use avsg_device::request::{record, status};
use avsg_device::sequential::Sequential;
use avsg_linker::check::check;
use avsg_linker::record::{record_scheduled, record_stage_one};
use avsg_linker::tape::Tape;
use step::{Random, Request, Table as State};

/// Runs the same steps on one native machine.
fn native<C: Cpu>(m: C, p: &Params, steps: &[Request]) -> Vec<State> {
    let mut state = State::clear(p);
    steps.iter().map(|step| state.native(m, p, step)).collect()
}

fn replayed(tape: &Tape, width: usize, p: &Params, steps: &[Request]) -> Vec<State> {
    let mut state = State::clear(p);
    let one = |step| {
        state.replay(tape, width, step);
        state.finish(p, step);
        state.clone()
    };
    steps.iter().map(one).collect()
}

/// The same steps with nothing deferred.
fn at_once(tape: &Tape, width: usize, p: &Params, steps: &[Request]) -> Vec<State> {
    let mut state = State::clear(p);
    let one = |step: &Request| {
        let mut step = step.clone();
        step.params.iter_mut().filter(|p| p.0 == "deferred").for_each(|p| p.1 = 0);
        state.replay(tape, width, &step)
    };
    steps.iter().map(one).collect()
}

/// What happened in the steps of a test, so that it cannot pass on empty ones.
#[derive(Default)]
struct Seen {
    found: usize,
    missed: usize,
    status: i32,
}

fn compare(p: &Params, random: &mut Random, steps: usize) -> Seen {
    p.check().unwrap_or_else(|e| panic!("{p:?}: {e:?}"));
    let tape = record_scheduled::<Sequential>(p).unwrap();
    check(&tape).unwrap_or_else(|e| panic!("{e}"));
    let steps = step::sequence(p, random, steps);
    let want = at_once(&tape, 16, p, &steps);
    let same = |name: &str, got: Vec<State>| {
        for (n, (got, want)) in got.iter().zip(&want).enumerate() {
            got.expect_same(want, &format!("{name}, step {n} of {p:?}"));
        }
    };
    for width in [1, 3, 2048] {
        same(&format!("replay at {width}"), at_once(&tape, width, p, &steps));
    }
    let late = record_stage_one(p).unwrap();
    check(&late).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(late == tape, !Batched::serves(p), "only wide defers");
    same("late replay that defers nothing", at_once(&late, 16, p, &steps));
    same("deferred replay at 16", replayed(&late, 16, p, &steps));
    same("deferred replay at 3", replayed(&late, 3, p, &steps));
    same("Emu<1>", native(Emu::<1>, p, &steps));
    same("Emu<3>", native(Emu::<3>, p, &steps));
    same("Emu<16>", native(Emu::<16>, p, &steps));
    #[cfg(target_arch = "x86_64")]
    {
        use avsg_device::machine::avx512::Avx512;
        if let (Some(extracted), Some(gathered)) =
            (Avx512::<false>::detect(), Avx512::<true>::detect())
        {
            same("AVX-512, extracted lanes", native(extracted, p, &steps));
            same("AVX-512, vpgatherdd", native(gathered, p, &steps));
        }
    }
    let mut seen = Seen::default();
    for state in &want {
        let request = &state.output("gm_record")[record::WORDS..];
        seen.status |= request[record::STATUS as usize];
        seen.missed += request[record::TOTAL as usize] as usize;
        seen.found += state.output("gm_slot").iter().filter(|&&slot| slot >= 0).count();
    }
    seen
}

/// Both tables, all spreads, both lifetimes, with and without a block table.
#[test]
fn small_geometries() {
    let random = &mut Random(1);
    let (mut found, mut missed, mut bits) = (0, 0, 0);
    for table in [Table::KNUTH_XXHASH, Table::Wide] {
        let paper = table != Table::Wide;
        for spread in if paper { &[1][..] } else { &[1, 2, 4][..] } {
            for frequency in if paper { &[false][..] } else { &[false, true][..] } {
                for page in [0, 1, 16] {
                    let slots = 256 << random.below(3);
                    let k = 64 + random.below(193) as u32;
                    let tokens = (1 + random.below(4) as u32).min(slots / k);
                    let p = Params::wide(k.min(slots), tokens.max(1), slots);
                    let lifetime = if *frequency {
                        Lifetime::frequency()
                    } else {
                        Lifetime::Constant(1 + random.below(127) as i8)
                    };
                    let retries = random.below(8) as u32;
                    let p = Params { table, lifetime, spread: *spread, retries, page, ..p };
                    let seen = compare(&p, random, 12);
                    (found, missed) = (found + seen.found, missed + seen.missed);
                    bits |= seen.status;
                }
            }
        }
    }
    // A third of what was returned were hits, and both kinds of bad ids came up.
    assert!(missed > 1000 && found > missed * 3 / 2, "{found} found, {missed} missed");
    assert_eq!(bits, status::ID_OUT_OF_RANGE | status::ROW_OUT_OF_POOL);
}

/// Column lengths that are no power of two: the slot of a lane above 256 must not wrap round.
#[test]
fn odd_k() {
    let random = &mut Random(2);
    for k in [65, 129, 257, 300, 500] {
        compare(&Params::wide(k, 2, 1024), random, 3);
    }
}

/// The default at K = 512.
#[test]
fn middle_geometry() {
    compare(&Params::wide(512, 2, 2048), &mut Random(3), 4);
    compare(&Params::paper(512, 1, 1024), &mut Random(4), 4);
}
