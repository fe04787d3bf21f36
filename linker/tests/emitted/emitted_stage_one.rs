//! Stage One as it is emitted for the 910B and run on the shim gives the same bits as the tape,
//! over random sequences of steps with invalid ids, rollbacks and changes of generation.

use super::{
    Compiled, Mode, Request, ShimLaunch, SplitMix64, Traced, compare_steps, compile_all,
    run_and_compare, small_geometries, steps, tier,
};
use avsg_device::params::{Lifetime, Params};
use avsg_device::rules::rules;
use avsg_linker::ascend::camel;
use avsg_linker::ascend::kernels::{Abi, kernels};
use avsg_linker::ascend::{StageOneText, stage_one};
use avsg_linker::check::check;
use avsg_linker::record::record_stage_one;
use avsg_linker::tape::{Param, Tape};

/// A kernel that reads the fields of a request from memory, so that a test can set each of them.
const ENTRY: &str = include_str!("one_request.cpp.in");

/// Stage One of a geometry or another tape on its memory, compiled.
pub struct Emitted {
    pub p: Params,
    pub tape: Tape,
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
    all: Vec<(Params, Tape, StageOneText)>,
    mut change: impl FnMut(String) -> String,
) -> Option<Vec<Emitted>> {
    let files: Vec<_> = all.iter().map(|(p, tape, text)| change(file(p, tape, text))).collect();
    let compiled = compile_all(&files)?;
    let emitted = |((p, tape, text), kernels)| Emitted { p, tape, text, kernels };
    Some(all.into_iter().zip(compiled).map(emitted).collect())
}

impl Emitted {
    /// Runs one step on the shim, and compares it with the tape.
    pub fn run_and_compare(&self, traced: &Traced, order: (Mode, u64)) -> Result<(), String> {
        let rule = rules(&self.p.lifetime).unwrap_or([0; 256]);
        let name = self.kernels.name("one_request");
        let launch = ShimLaunch::new(&name).mode(order.0, order.1);
        let run = |launch: ShimLaunch<'_>| launch.input(&rule).run(&self.kernels.kernels);
        let peak = run_and_compare(launch, &self.tape, traced, run)?;
        let (fits, planned) = (peak <= self.text.ub_bytes, self.text.ub_bytes);
        fits.then_some(()).ok_or(format!("{peak} bytes of UB are used, but {planned} are planned"))
    }

    /// Runs steps and compares them with the tape.
    pub fn compare(&self, steps: Vec<Request>) {
        let modes = [Mode::InOrder, Mode::Adversarial];
        let run = |traced: &_, order| self.run_and_compare(traced, order);
        compare_steps((&self.p, &self.tape), steps, &modes, run);
    }
}

/// Runs and compares a number of random steps in each geometry.
fn compare(all: &[Emitted], random: &mut SplitMix64, steps: usize) {
    for emitted in all {
        emitted.p.check().unwrap_or_else(|e| panic!("{:?}: {e:?}", emitted.p));
        check(&emitted.tape).unwrap_or_else(|e| panic!("{e}"));
        let mut steps = steps::sequence(&emitted.p, random, steps);
        steps::scramble(&mut steps, random);
        emitted.compare(steps);
    }
}

fn full_size_geometries() -> [Params; 4] {
    let wide = Params { spread: 2, retries: 7, ..Params::wide(2048, 4, 8192) };
    let learned = Params { lifetime: Lifetime::Learned, page: 16, ..wide };
    let spread = Params { spread: 4, ..Params::wide(2048, 2, 4096) };
    [learned, wide, Params::paper(2048, 4, 8192), spread]
}

/// Returns geometries with the least number of slots, a single id, the most tokens, no retry and the maximum, pages
/// of 2 and of 65536 rows, lists that are no multiple of a block, and tables in which all ids hit.
fn extreme_geometries() -> [Params; 7] {
    let (wide, learned) = (Params::wide, Lifetime::Learned);
    [
        wide(128, 1, 128),
        wide(16, 8, 128),
        Params { retries: 0, ..Params::paper(7, 16, 128) },
        Params { spread: 1, retries: 0, lifetime: learned, ..wide(1, 9, 128) },
        Params { lifetime: Lifetime::Constant(0), retries: 15, page: 65536, ..wide(100, 1, 128) },
        Params { spread: 2, lifetime: learned, page: 2, ..wide(300, 3, 1024) },
        Params { spread: 2, ..wide(2048, 1, 2048) },
    ]
}

#[test]
fn every_kind_of_geometry_matches_the_tape() {
    let (mut small, mut full) = (small_geometries(None).to_vec(), full_size_geometries().to_vec());
    let mut extreme = extreme_geometries().to_vec();
    if !tier::thorough() {
        small = small.into_iter().step_by(3).collect();
        full.truncate(1);
        extreme = extreme.into_iter().step_by(2).collect();
    }
    let geometries = [&small[..], &full, &extreme].concat();
    let text = |p| {
        let text = stage_one(&p).unwrap_or_else(|e| panic!("{p:?}: {e:?}"));
        (p, record_stage_one(&p).unwrap(), text)
    };
    let texts = geometries.into_iter().map(text).collect();
    let Some(all) = emit_all(texts, |text| text) else { return };
    let (small, others) = all.split_at(small.len());
    let (full, extreme) = others.split_at(full.len());
    compare(small, &mut SplitMix64(1), 10);
    compare(full, &mut SplitMix64(2), 3);
    compare(extreme, &mut SplitMix64(7), 6);
}

/// The shim refuses what CANN's check of a Gather's parameters refuses. Here one Gather maps 4096 lifetimes.
#[test]
fn the_sources_of_gathers_are_as_long_as_cann_demands() {
    let p = Params { spread: 2, retries: 7, ..Params::wide(512, 4, 4096) };
    let text = stage_one(&p).expect("the geometry fits");
    assert!(text.ops.contains("MAP_TILE = 4096;"), "{}", text.ops);
    let Some(all) = emit_all(vec![(p, record_stage_one(&p).unwrap(), text)], |text| text) else {
        return;
    };
    compare(&all, &mut SplitMix64(3), 3);
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
