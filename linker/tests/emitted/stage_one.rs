//! Stage One as it is emitted for the 910B and run on the shim gives the same bits as the tape,
//! over random sequences of steps with invalid ids, rollbacks and changes of generation.

use std::sync::OnceLock;

use super::compiled::{Compiled, compile_all};
use super::outputs::{compare_outputs, small_geometries};
use super::shim::{Launch, Mode};
use super::steps;
use super::steps::{Request, SplitMix64, StepState};
use super::tier;
use avsg_device::params::{Lifetime, Params};
use avsg_device::rules::rules;
use avsg_linker::ascend::camel;
use avsg_linker::ascend::kernels::{Abi, kernels};
use avsg_linker::ascend::{StageOneText, stage_one};
use avsg_linker::check::check;
use avsg_linker::record::record_stage_one;
use avsg_linker::tape::Param;

/// A kernel that reads the fields of a request from memory, so that a test can set each of them.
const ENTRY: &str = include_str!("one_request.cpp.in");

pub struct Emitted {
    pub text: StageOneText,
    pub kernels: Compiled,
}

/// Returns the file of a Stage One and the kernel [`ENTRY`].
pub fn file(p: &Params, text: &StageOneText) -> String {
    let all = kernels(p, text, Abi::Direct).expect("the kernels fit");
    let step = all.kernels.iter().find(|k| k.name == "avsg_step").expect("a step kernel");
    // `avsg_step` is not called here and takes the compiler as long as Stage One, so only the
    // thorough tier includes it.
    let text = if tier::thorough() { &step.text } else { "#include \"avsg_plan.h\"\n" };
    let fields =
        record_stage_one(p).expect("Stage One can be recorded").params.into_iter().enumerate();
    let field = |(n, param): (usize, Param)| format!("    q.{} = f[{n}];", camel(&param.name));
    let fields: Vec<String> = fields.map(field).collect();
    all.whole(text) + &ENTRY.replace("FIELDS", &fields.join("\n"))
}

/// Returns Stage One of a geometry of this file. The first call compiles those of all.
fn emitted(p: &Params) -> Option<&'static Emitted> {
    static ALL: OnceLock<Option<Vec<(Params, Emitted)>>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let small = small_geometries(None).into_iter();
        let geometries: Vec<_> =
            small.chain(full_size_geometries()).chain(extreme_geometries()).collect();
        let text = |p| stage_one(p).unwrap_or_else(|e| panic!("{p:?}: {e}"));
        let texts: Vec<_> = geometries.iter().map(text).collect();
        let files: Vec<_> = geometries.iter().zip(&texts).map(|(p, text)| file(p, text)).collect();
        let emitted = compile_all(&files)?.into_iter().zip(texts);
        let emitted = emitted.map(|(kernels, text)| Emitted { text, kernels });
        Some(geometries.into_iter().zip(emitted).collect())
    });
    let of_geometry = all.as_ref()?.iter().find(|(other, _)| other == p);
    Some(&of_geometry.expect("a geometry of this file").1)
}

/// Runs one step on the shim from the table `before` and compares all outputs and the table with
/// `want`.
pub fn run_and_compare(
    p: &Params,
    e: &Emitted,
    before: &StepState,
    want: &StepState,
    step: &Request,
    (mode, seed): (Mode, u64),
) -> Result<(), String> {
    let mut tables = before.table(p);
    let mut out: Vec<Vec<i32>> = want.results().iter().map(|(_, w)| vec![-77; w.len()]).collect();
    let tape = record_stage_one(p).expect("Stage One can be recorded");
    let fields = tape.params.iter().map(|param| step.param(&param.name));
    let without = step.params.iter().find(|param| param.0 == "without").map(|param| param.1);
    let fields: Vec<i32> = without.into_iter().chain(fields).collect();
    let rule = rules(&p.lifetime).unwrap_or([0; 256]);
    let [ids, blocks] = [&step.ids, &step.blocks].map(|words| [&words[..], &[0]].concat());
    let name = e.kernels.name("one_request");
    let launch = Launch::new(&name).mode(mode, seed).input(&ids).input(&blocks);
    let launch = out.iter_mut().fold(launch, |launch, words| launch.device(words));
    let launch = launch.device(&mut tables).input(&rule).input(&fields);
    let peak = launch.run(&e.kernels.kernels).map_err(|f| format!("{f:?}"))?;
    if peak > e.text.ub_bytes {
        return Err(format!("{peak} bytes of UB are used, but {} are planned", e.text.ub_bytes));
    }
    compare_outputs(p, want, &out, &tables)
}

/// Runs and compares a number of random steps in each geometry.
fn compare(geometries: &[Params], random: &mut SplitMix64, steps: usize) {
    geometries.iter().for_each(|p| p.check().unwrap_or_else(|e| panic!("{p:?}: {e:?}")));
    for p in geometries {
        let Some(emitted) = emitted(p) else { return };
        let tape = record_stage_one(p).unwrap();
        check(&tape).unwrap_or_else(|e| panic!("{e}"));
        let mut state = StepState::clear(p);
        let mut steps = steps::sequence(p, random, steps);
        steps::scramble(&mut steps, random);
        for (n, step) in steps.iter().enumerate() {
            state.prepare(p, step);
            let before = state.clone();
            let want = state.replay(&tape, 16, step);
            for mode in [Mode::InOrder, Mode::Adversarial] {
                run_and_compare(p, emitted, &before, &want, step, (mode, n as u64))
                    .unwrap_or_else(|e| panic!("step {n} of {p:?}, {mode:?}: {e}"));
            }
            state.finish(p, step);
        }
    }
}

fn full_size_geometries() -> [Params; 4] {
    let wide = Params { spread: 2, retries: 7, ..Params::wide(2048, 4, 8192) };
    let learned = Params { lifetime: Lifetime::Learned, page: 16, ..wide };
    let spread = Params { spread: 4, ..Params::wide(2048, 2, 4096) };
    [wide, learned, Params::paper(2048, 4, 8192), spread]
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
fn small_geometries_match_the_tape() {
    compare(&small_geometries(None), &mut SplitMix64(1), 10);
}

#[test]
fn full_size_geometries_match_the_tape() {
    compare(&full_size_geometries(), &mut SplitMix64(2), 3);
}

#[test]
fn extreme_geometries_match_the_tape() {
    compare(&extreme_geometries(), &mut SplitMix64(7), 6);
}

/// A vector core compares at least 128 halves; a compare of 64 would leave bits undefined.
#[test]
fn a_table_of_other_numbers_of_slots_is_refused_with_them() {
    for slots in [64, 192] {
        let refused = stage_one(&Params::wide(16, 1, slots)).unwrap_err().to_string();
        assert!(refused.contains(&format!("S is {slots}")), "{refused}");
    }
    assert!(stage_one(&Params::wide(16, 1, 128)).is_ok());
}

#[test]
fn a_table_that_is_too_large_is_refused_with_its_bytes() {
    for slots in [12288, 16384, 65536] {
        let p = Params { spread: 2, retries: 7, ..Params::wide(2048, 1, slots) };
        let refused = stage_one(&p).unwrap_err().to_string();
        assert!(refused.contains("bytes of unified buffer, and there are"), "{refused}");
    }
}
