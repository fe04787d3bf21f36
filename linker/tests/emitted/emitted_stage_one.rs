//! Stage One as it is emitted for the 910B and run on the shim gives the same bits as on a CPU,
//! over random sequences of steps with invalid ids, rollbacks and changes of generation.

use super::decoding::Decoding;
use super::one_request::{GUARD, OnDevice, OneRequest, SUMMARY_GUARD, Step, UNTOUCHED, Way};
use super::{Compiled, Mode, ShimLaunch, compile_all, tier};
use avsg_device::machine::emu::Emu;
use avsg_device::one_request::StageOne;
use avsg_device::params::{ID_LIMIT, Lifetime, Params};
use avsg_device::request::summary;
use avsg_device::rules::rules;
use avsg_linker::ascend::camel;
use avsg_linker::ascend::kernels::{Abi, kernels};
use avsg_linker::ascend::{StageOneText, stage_one};
use avsg_linker::check::check;
use avsg_linker::record::record_stage_one;
use avsg_linker::tape::{Param, Tape};

/// A kernel that reads the fields of a request from memory, so that a test can set each of them.
const ENTRY: &str = include_str!("one_request.cpp.in");

/// What a kernel does on a CPU with the arrays of a step.
pub type Native = fn(StageOne<'_>, Way);

pub const STAGE_ONE: Native = |one, way| Emu::<16>.run(OnDevice(one, way));

/// A step, and the request before and after it.
pub struct Traced {
    step: Step,
    way: Way,
    before: OneRequest,
    want: OneRequest,
}

/// Returns the steps of a random decoding, in every way. Without a block table the
/// context of every second one is nearly as long as it can be.
pub fn random_steps(p: &Params, seed: u64, steps: usize) -> Vec<(Step, Way)> {
    let (context, far) = (2 * p.slots as i32, p.page == 0 && seed % 2 == 1);
    let first = if far { ID_LIMIT - 4096 - context } else { 0 };
    let mut decoding = Decoding::new(*p, first, context, seed);
    let way = |n| Way { shared: n % 2 == 0, deferred: n % 3 > 0 };
    (0..steps).map(|n| (decoding.step(), way(n))).collect()
}

/// Returns the value of a parameter of a tape.
fn value(name: &str, one: &StageOne<'_>, way: Way) -> i32 {
    let words = match name {
        "generation" => return one.generation,
        "stable" => return one.stable,
        "limit" => return one.limit,
        "rows" => one.rows,
        "tokens" => one.tokens,
        "deferred" if way.deferred => one.tokens,
        // A step without tokens has no ids.
        "k" => one.k.max(1),
        "ids_stride" | "share_len" => one.k,
        "slot_stride" => one.params.k as usize,
        "ids_at" | "blocks_at" | "slot_at" | "valid_at" | "miss_at" => GUARD,
        "summary_at" => SUMMARY_GUARD,
        "blocks_len" => one.blocks.len() - GUARD,
        "shared" => way.shared.into(),
        "deferred" | "share_at" => 0,
        _ => panic!("no value for {name}"),
    };
    words as i32
}

/// Stage One of a geometry or another tape on its memory, compiled.
pub struct Emitted {
    pub p: Params,
    native: Native,
    tape: Tape,
    text: StageOneText,
    pub kernels: Compiled,
}

/// Returns the file of a Stage One and the kernel [`ENTRY`].
fn file(p: &Params, tape: &Tape, text: &StageOneText) -> String {
    let all = kernels(p, text, Abi::Direct).expect("the kernels fit");
    let step = all.kernels.iter().find(|k| k.name == "avsg_step").expect("a step kernel");
    // `avsg_step` is not called here and takes the compiler as long as Stage One, so only the
    // thorough tier includes it.
    let text = if tier::thorough() { &step.text } else { "#include \"avsg_plan.h\"\n" };
    let field = |(n, param): (usize, &Param)| format!("    q.{} = f[{n}];", camel(&param.name));
    let fields: Vec<String> = tape.params.iter().enumerate().map(field).collect();
    all.whole(text) + &ENTRY.replace("FIELDS", &fields.join("\n"))
}

/// Compiles the texts of tapes on the memory of Stage One.
pub fn emit_all(
    all: Vec<(Params, Native, Tape, StageOneText)>,
    mut change: impl FnMut(String) -> String,
) -> Option<Vec<Emitted>> {
    let files: Vec<_> = all.iter().map(|(p, _, tape, text)| change(file(p, tape, text))).collect();
    let compiled = compile_all(&files)?;
    let emitted = |((p, native, tape, text), kernels)| Emitted { p, native, tape, text, kernels };
    Some(all.into_iter().zip(compiled).map(emitted).collect())
}

impl Emitted {
    /// Runs steps on the CPU. With `scrambles`, some of them have values of lifetimes that no request would learn.
    pub fn trace(&self, steps: Vec<(Step, Way)>, scrambles: bool) -> Vec<Traced> {
        let mut request = OneRequest::new(self.p);
        let run = |(n, (step, way)): (u32, (Step, Way))| {
            if scrambles && n % 3 == 0 {
                request.scramble(n / 3);
            }
            let before = request.clone();
            request.run_on_device(&step, |one| (self.native)(one, way));
            let mut want = request.clone();
            // The kernel writes the whole summary of a request, a CPU only some of its words.
            let summary = &mut want.outputs[6][SUMMARY_GUARD..][..summary::WORDS];
            summary.iter_mut().filter(|word| **word == UNTOUCHED).for_each(|word| *word = 0);
            if way.deferred {
                request.refresh_last(&step);
            }
            request.learn();
            Traced { step, way, before, want }
        };
        (0..).zip(steps).map(run).collect()
    }

    /// Runs one step on the shim, and compares all outputs and the table with those of the CPU.
    pub fn run_and_compare(
        &self,
        traced: &Traced,
        (mode, seed): (Mode, u64),
    ) -> Result<(), String> {
        let Traced { step, way, before, want } = traced;
        let (mut got, mut ran) = (before.clone(), None);
        let rule = rules(&self.p.lifetime).unwrap_or([0; 256]);
        let name = self.kernels.name("one_request");
        got.run_on_device(step, |one| {
            let fields = self.tape.params.iter().map(|p| value(&p.name, &one, *way));
            let fields: Vec<i32> = fields.collect();
            let launch = ShimLaunch::new(&name).mode(mode, seed).input(one.ids).input(one.blocks);
            let launch = launch.device(one.slot).device(one.valid);
            let launch = one.miss.into_iter().fold(launch, |launch, list| launch.device(list));
            let launch = launch.device(one.summary).device(one.state).input(&fields);
            ran = Some(launch.input(&rule).run(&self.kernels.kernels));
        });
        let peak = ran.expect("it ran").map_err(|failure| format!("{failure:?}"))?;
        let names =
            ["slots", "counts", "positions", "ids", "miss slots", "rows", "summary", "table"];
        let [got, want] = [&got, want].map(|r| r.outputs.iter().chain([&r.state]));
        for (name, (got, want)) in names.iter().zip(got.zip(want)) {
            let differs = got.iter().zip(want).position(|(got, want)| got != want);
            if let Some(at) = differs {
                return Err(format!("{name}[{at}] is {}, not {}", got[at], want[at]));
            }
        }
        let (fits, planned) = (peak <= self.text.ub_bytes, self.text.ub_bytes);
        fits.then_some(()).ok_or(format!("{peak} bytes of UB are used, but {planned} are planned"))
    }

    /// Compares steps with the CPU.
    pub fn compare(&self, traced: &[Traced]) {
        for (n, traced) in (0..).zip(traced) {
            for mode in [Mode::InOrder, Mode::Adversarial] {
                let same = self.run_and_compare(traced, (mode, n));
                same.unwrap_or_else(|e| panic!("step {n} of {}, {mode:?}: {e}", self.p));
            }
        }
    }
}

/// Returns geometries of both tables, all spreads, both lifetimes, with and without a block table.
fn small_geometries() -> [Params; 7] {
    let (wide, paper, learned) = (Params::wide, Params::paper, Lifetime::Learned);
    let constant = Lifetime::Constant;
    [
        Params { lifetime: constant(77), ..paper(190, 2, 512) },
        Params { lifetime: constant(3), page: 16, ..paper(70, 6, 1024) },
        Params { spread: 1, retries: 3, lifetime: learned, ..wide(121, 5, 640) },
        Params { spread: 2, retries: 5, lifetime: constant(100), page: 1, ..wide(64, 7, 896) },
        Params { spread: 2, retries: 7, lifetime: learned, page: 16, ..wide(250, 3, 768) },
        Params { spread: 4, retries: 2, lifetime: constant(9), page: 16, ..wide(99, 8, 1024) },
        Params { spread: 4, retries: 1, lifetime: learned, ..wide(160, 2, 384) },
    ]
}

fn full_size_geometries() -> [Params; 4] {
    let wide = Params { spread: 2, retries: 7, ..Params::wide(2048, 4, 8192) };
    let learned = Params { lifetime: Lifetime::Learned, page: 16, ..wide };
    let spread = Params { spread: 4, ..Params::wide(2048, 2, 4096) };
    [learned, wide, Params::paper(2048, 4, 8192), spread]
}

/// Returns geometries with the least number of slots, a single id, the most tokens, no retry and the maximum, pages
/// of 2 and of 65536 rows, lists that are no multiple of a block, tables in which all ids hit, and one in which a Gather
/// maps 4096 lifetimes: the shim refuses what CANN's check of a Gather's parameters refuses.
fn extreme_geometries() -> [Params; 9] {
    let (wide, learned) = (Params::wide, Lifetime::Learned);
    [
        wide(128, 1, 128),
        wide(16, 8, 128),
        Params { retries: 0, ..Params::paper(7, 16, 128) },
        Params { spread: 1, retries: 0, lifetime: learned, ..wide(1, 9, 128) },
        Params { lifetime: Lifetime::Constant(0), retries: 15, page: 65536, ..wide(100, 1, 128) },
        Params { spread: 2, lifetime: learned, page: 2, ..wide(300, 3, 1024) },
        Params { spread: 2, ..wide(2048, 1, 2048) },
        Params { lifetime: learned, ..wide(16, 16, 256) },
        Params { spread: 2, retries: 7, ..wide(512, 4, 4096) },
    ]
}

#[test]
fn every_kind_of_geometry_matches_the_cpu() {
    let (mut small, mut full) = (small_geometries().to_vec(), full_size_geometries().to_vec());
    let mut extreme = extreme_geometries().to_vec();
    if !tier::thorough() {
        small = small.into_iter().step_by(3).collect();
        full.truncate(1);
        extreme = extreme.into_iter().step_by(2).collect();
    }
    let steps = [vec![10; small.len()], vec![3; full.len()], vec![6; extreme.len()]].concat();
    let text = |p| {
        let text = stage_one(&p).unwrap_or_else(|e| panic!("{p:?}: {e:?}"));
        let tape = record_stage_one(&p).unwrap();
        check(&tape).unwrap_or_else(|e| panic!("{e}"));
        assert!(p.k != 512 || text.ops.contains("MAP_TILE = 4096;"), "{}", text.ops);
        (p, STAGE_ONE, tape, text)
    };
    let texts = [small, full, extreme].concat().into_iter().map(text).collect();
    let Some(all) = emit_all(texts, |text| text) else { return };
    for (seed, (emitted, &steps)) in (0..).zip(all.iter().zip(&steps)) {
        emitted.compare(&emitted.trace(random_steps(&emitted.p, seed, steps), true));
    }
}

/// A vector core compares at least 128 halves; a compare of 64 would leave bits undefined. A table must fit the unified
/// buffer.
#[test]
fn tables_of_other_sizes_are_refused_with_them() {
    let wide = |k, slots| Params { spread: 2, retries: 7, ..Params::wide(k, 1, slots) };
    let (large, k) = ("bytes of unified buffer, and there are", 2048);
    for (p, expected) in [
        (wide(16, 64), "S is 64"),
        (wide(16, 192), "S is 192"),
        (wide(k, 12288), large),
        (wide(k, 16384), large),
        (wide(k, 65536), large),
    ] {
        let refused = stage_one(&p).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    assert!(stage_one(&wide(16, 128)).is_ok());
}
