//! Stage One as it is emitted for GPUs and run on the shim gives the same bits as the tape, over random sequences of steps
//! with invalid ids, rollbacks and changes of generation.

use std::collections::BTreeSet;

use super::gpu::{Compiled, Gpu, compile_all, entry, run};
use super::{
    Request, SplitMix64, StepState, Traced, compare_steps, run_and_compare, small_geometries,
    steps, tier,
};
use avsg_device::params::{Lifetime, MAX_TOKENS, Params};
use avsg_linker::ascend::camel;
use avsg_linker::cuda::{self, Options, kernels::kernels, record, text};
use avsg_linker::tape::{Param, Tape};
use avsg_sim::shim::{Launch, Mode};

/// A kernel that reads the fields of a request from memory, so that a test can set each of them.
const ENTRY: &str = include_str!("one_request.cu.in");

/// The memory of a block that holds the whole table of every geometry here.
pub const ALL: Options = Options { threads: 256, shared_bytes: 227 * 1024 };

/// Stage One of a geometry, compiled.
pub struct Emitted {
    pub p: Params,
    pub tape: Tape,
    pub compiled: Compiled,
    entry: String,
}

/// Emits tapes on the memory of Stage One and compiles them as one file.
pub fn emit_all(
    all: Vec<(Params, Tape, Options)>,
    gpu: Gpu,
    mut change: impl FnMut(String) -> String,
) -> Option<Vec<Emitted>> {
    let mut file = |(p, tape, options): &(Params, Tape, Options)| {
        let stage_one = text(p, tape, *options).unwrap_or_else(|e| panic!("{p:?}: {e}"));
        let kernels = kernels(p, &stage_one, *options);
        let field =
            |(n, param): (usize, &Param)| format!("    q.{} = fields[{n}];\n", camel(&param.name));
        let fields: String = tape.params.iter().enumerate().map(field).collect();
        let text = kernels.whole(&ENTRY.replace("FIELDS\n", &fields), false);
        (change(text), Options { shared_bytes: kernels.shared_bytes, ..*options })
    };
    let texts: Vec<_> = all.iter().map(&mut file).collect();
    let compiled = compile_all(&texts, gpu)?.into_iter().enumerate();
    let emitted = |((p, tape, _), (n, compiled))| Emitted { p, tape, compiled, entry: entry(n) };
    Some(all.into_iter().zip(compiled).map(emitted).collect())
}

/// Returns random steps as one block runs them: alone, and with values of lifetimes that no request would learn in
/// a third of them.
pub fn steps(p: &Params, seed: u64, n: usize) -> Vec<Request> {
    let random = &mut SplitMix64(seed);
    let mut all = steps::sequence(p, random, n);
    steps::scramble(&mut all, random);
    for step in &mut all {
        let own = ["shared", "share_at", "share_len", "deferred"];
        own.into_iter().for_each(|name| step.set(name, 0));
    }
    all
}

impl Emitted {
    /// Runs one step on the shim, and compares it with the tape. Returns the number of barriers.
    pub fn run_and_compare(&self, traced: &Traced, order: (Mode, u64)) -> Result<u32, String> {
        let launch = Launch::new(&self.entry).mode(order.0, order.1);
        let run = |launch: Launch<'_>| run(launch, &self.compiled);
        let mut traced = traced.clone();
        traced.want.learn();
        run_and_compare(launch, &self.tape, &traced, run)
    }

    /// Runs steps and compares them with the tape.
    pub fn compare(&self, steps: Vec<Request>, modes: &[Mode]) {
        let run = |traced: &_, order| self.run_and_compare(traced, order);
        compare_steps((&self.p, &self.tape), steps, modes, run);
    }
}

/// Returns geometries with as many threads, and steps to run: in the thorough tier those of all numbers of tokens, and the
/// largest ones, of 4096 and 8192 slots with both spreads.
fn geometries() -> Vec<(Params, Options, usize)> {
    // Where a block has little memory, ids and links stay in global memory.
    let global = Params { page: 16, ..Params::wide(256, 4, 1024) };
    let options = Options { threads: 256, shared_bytes: 24 * 1024 };
    let stage_one = text(&global, &record(&global).unwrap(), options).unwrap();
    assert!(!stage_one.plan.whole_table, "{}", stage_one.plan);
    let threads = |n: usize| Options { threads: [256, 512, 1024][n % 3], ..ALL };
    if !tier::thorough() {
        let small = small_geometries(None).into_iter().enumerate().step_by(2);
        let small = small.map(|(n, p)| (p, threads(n), 10));
        return small.chain([(global, options, 10)]).collect();
    }
    let small = (1..=MAX_TOKENS).flat_map(|tokens| small_geometries(Some(tokens)));
    let small = small.enumerate().map(|(n, p)| (p, threads(n), 20));
    let wide = Params { spread: 2, retries: 7, ..Params::wide(2048, 4, 8192) };
    let learned = Params { lifetime: Lifetime::Learned, page: 16, ..wide };
    let spread = Params { spread: 4, retries: 3, ..wide };
    let full = [wide, learned, Params::paper(2048, 4, 8192), spread].into_iter().enumerate();
    let full = full.map(|(n, p)| (p, threads(2 - n % 3), 3));
    small.chain(full).chain([(global, options, 10)]).collect()
}

#[test]
fn every_kind_of_geometry_matches_the_tape() {
    for (seed, all) in geometries().chunks(8).enumerate() {
        let with_tape = |(p, options, _): &(Params, Options, usize)| {
            p.check().unwrap_or_else(|e| panic!("{p:?}: {e:?}"));
            (*p, record(p).unwrap(), *options)
        };
        let emitted = emit_all(all.iter().map(with_tape).collect(), Gpu::Bulk, |text| text);
        let Some(emitted) = emitted else { return };
        for (n, (emitted, (p, _, count))) in emitted.iter().zip(all).enumerate() {
            let steps = steps(p, (8 * seed + n) as u64, *count);
            emitted.compare(steps, &[Mode::InOrder, Mode::Adversarial]);
        }
    }
}

/// Returns a step of one token that selects `k` neighbouring ids, of which the last `invalid` ones are not valid.
pub fn neighbours(p: &Params, like: &Request, base: i32, k: i32, invalid: usize) -> Request {
    let mut ids: Vec<_> = (base..base + k).collect();
    ids.iter_mut().rev().take(invalid).for_each(|id| *id = i32::MAX);
    like.selecting(p, ids, 1, 8 * p.k as i32)
}

/// Block barriers in a step of one token: at most 5 if it hits everything, 24 if it misses neighbours, and 27 in a trace.
#[test]
fn a_step_has_few_barriers() {
    for lifetime in [Lifetime::Constant(127), Lifetime::Learned] {
        few_barriers(&Params { spread: 2, retries: 7, lifetime, ..Params::wide(2048, 4, 8192) });
    }
}

fn few_barriers(p: &Params) {
    let options = Options { threads: 1024, ..ALL };
    let stage_one = vec![(*p, record(p).unwrap(), options)];
    let Some(emitted) = emit_all(stage_one, Gpu::Bulk, |text| text) else { return };
    let like = steps(p, 1, 1).remove(0);
    let mut state = StepState::clear(p);
    let mut barriers = |step: Request| {
        let traced = state.trace(&emitted[0].tape, vec![step]).remove(0);
        let n = emitted[0].run_and_compare(&traced, (Mode::InOrder, 1)).unwrap();
        (traced.want.output("gm_record")[16 + 8], n)
    };
    let all = [0, 400, 400].map(|base| barriers(neighbours(p, &like, base, 2048, 0)));
    println!("misses and barriers of neighbours: {all:?}, {p}");
    assert_eq!(all.map(|(misses, _)| misses), [2048, 400, 0]);
    assert!(all[2].1 <= 5 && all[..2].iter().all(|(_, n)| *n <= 24), "{all:?}");
    // A trace: most ids stay from one step to the next, a few are scattered over the context, and the number that is new
    // changes, so that the last threshold is not always next to this one.
    let random = &mut SplitMix64(1);
    let mut ids: Vec<i32> = (0..2048).map(|i| 7 * i).collect();
    let trace = (0..24).map(|n| {
        let mut step = neighbours(p, &like, 0, 2048, 0);
        for _ in 0..[3, 30, 300][n % 3] {
            ids[random.below(2048)] = random.below(16384) as i32;
        }
        step.ids = BTreeSet::from_iter(ids.iter().copied()).into_iter().collect();
        step.ids.resize(2048, -1);
        barriers(step)
    });
    let trace: Vec<_> = trace.collect();
    println!("misses and barriers of a trace: {trace:?}, {p}");
    assert!(trace.iter().all(|(_, n)| (20..=27).contains(n)), "{trace:?}");
}

/// The geometry with the most slots of the default ones leaves room for the copy, and one with more links does not
/// fit with them. Columns that are not live at once share bytes.
#[test]
fn the_plan_says_what_fits() {
    let wide = Params { spread: 2, retries: 7, ..Params::wide(2048, 4, 8192) };
    let plan = |p: &Params| text(p, &record(p).unwrap(), Options::default()).unwrap().plan;
    assert!(plan(&wide).whole_table && !plan(&Params { spread: 4, ..wide }).whole_table);
    let placed = plan(&wide);
    let alone: u32 = placed.columns.values().map(|at| at.end - at.start).sum();
    assert!(placed.bytes - placed.scratch.end < alone, "{placed}");
    let little = Options { threads: 1024, shared_bytes: 48 * 1024 };
    for (k, slots, options, part) in [
        (4096, 32768, little, "bytes of shared memory"),
        (2048, 65536, ALL, "choose S below 65536"),
        (8192, 8192, ALL, "choose more threads than 256"),
    ] {
        let refused = cuda::cuda(&Params::wide(k, 1, slots), options).unwrap_err().to_string();
        assert!(refused.contains(part), "{refused}");
    }
}
