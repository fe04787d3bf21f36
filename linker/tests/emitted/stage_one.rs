//! Stage One as it is emitted for the 910B and run on the shim gives the same bits as the tape,
//! over random sequences of steps with invalid ids, rollbacks and changes of generation.

use std::sync::OnceLock;

use super::compiled::{Compiled, compile_all};
use super::shim::{Launch, Mode};
use super::steps;
use super::steps::{Request, SplitMix64, StepState};
use super::tier;
use avsg_device::params::{Lifetime, Params, Table};
use avsg_device::rules::rules;
use avsg_linker::ascend::aiv::CountRead;
use avsg_linker::ascend::camel;
use avsg_linker::ascend::kernels::{Abi, kernels};
use avsg_linker::ascend::{StageOneText, stage_one, stage_one_with};
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

/// Returns a text in which a number before the request's fields selects a barrier or flag that is
/// left out, and these barriers and flags.
fn with_switches(text: &str) -> (String, Vec<String>) {
    let (mut out, mut removed) = (String::new(), Vec::new());
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        inside |= line.starts_with("namespace ") && line.ends_with("stage_one {");
        inside &= !(line.starts_with("} // namespace ") && line.ends_with("stage_one"));
        let sync = line.trim_start();
        if inside && ["SetWaitFlag<", "PipeBarrier<"].iter().any(|s| sync.starts_with(s)) {
            let next = text
                .lines()
                .skip(number + 1)
                .find(|l| !l.contains("HardEvent") && !l.contains("PipeB"));
            removed.push(format!("{sync} before {}", next.unwrap_or("").trim()));
            out += &format!("if (without != {}) {{ {sync} }}\n", removed.len());
        } else {
            out += line;
            out.push('\n');
        }
    }
    let out = out.replacen("namespace avsg {", "static int32_t without = 0;\nnamespace avsg {", 1);
    let entry = "    const int32_t *f = reinterpret_cast<const int32_t *>(fields);\n";
    (out.replace(entry, &format!("{entry}    without = *f++;\n")), removed)
}

/// Returns two steps that fill a table, two that select some of its oldest ids beside new ones, so
/// that a few hits must be refreshed at once, one in which a few ids miss and all are valid, and
/// one in which no id misses and a few are invalid.
fn steps_with_few_early_refreshes(p: &Params, like: &Request) -> Vec<Request> {
    let (k, slots) = (p.k as i32, p.slots as i32);
    let step = |ids: Vec<i32>, tokens, k| {
        let blocks: Vec<i32> = (0..4 * slots / p.page as i32).collect();
        let params = like.params.iter().map(|&(name, value)| {
            let n = blocks.len() as i32;
            let set = match name {
                "tokens" | "deferred" => tokens,
                "k" | "ids_stride" | "slot_stride" => k,
                "generation" => -1,
                "stable" | "limit" => 4 * slots,
                "rows" | "blocks_len" => n,
                "ids_at" | "blocks_at" | "shared" => 0,
                _ => value,
            };
            (name, set)
        });
        let words = (2 * k + 32) as usize;
        let (params, values) = (params.collect(), None);
        Request { params, ids, blocks, slots: words, misses: words, values }
    };
    let mut few_hits = vec![-1; k as usize];
    for i in 0..20 {
        few_hits[45 * i] = 2 * k - 200 + i as i32;
        few_hits[45 * i + 1] = 4 * k + i as i32;
    }
    let (first, second) = (step((0..2 * k).collect(), 2, k), step((2 * k..4 * k).collect(), 2, k));
    let mut valid: Vec<i32> = (3 * k..4 * k).collect();
    (0..12).for_each(|i| valid[i] = 5 * k + i as i32);
    // These ids are few enough that all of them have a link.
    let mut hits = valid[700..].to_vec();
    hits.iter_mut().step_by(45).for_each(|id| *id = -1);
    let hit_count = hits.len() as i32;
    let one_token = |ids: Vec<i32>| step(ids, 1, k);
    vec![
        first,
        second,
        one_token(few_hits.clone()),
        one_token(few_hits),
        one_token(valid),
        step(hits, 1, hit_count),
    ]
}

/// Barriers and flags that no run needs, for reasons that the emitter's analysis does not cover: a
/// run refreshes either all hits or a few of them; in this geometry the searches start in memory
/// that is no longer used; no miss of a last token loses its link twice; sweeps with barriers
/// prepare Probe for as many lanes as its passes have; every run collects the overwritten links
/// between its two searches for links, with flags of its own; the scatter behind the second one waits
/// for the vector unit; the sweeps over the losers of a link run only if the sweep before them did; no run
/// has so many of them that the vector unit searches for them; the scatter before a search waits for the
/// vector unit; a token ends with waits for all units, which
/// cover the memory that the next token's ids and hashes replace; packed indices lie behind the words
/// that are copied out; the only wide sweep with lane numbers is that of a sample, which has one tile; and
/// values of slots are mapped again, or kept, only after they were mapped, with the waits of the first time.
const UNNEEDED: [&str; 22] = [
    "PIPE_V>(); before Cast(bytes, life",
    "S_V>(EVENT_ID0); before RefreshLifetimeAll(life, dead[base]",
    "PIPE_V>(); before Find(",
    "PIPE_V>(); before FindFree(",
    "PIPE_V>(); before Duplicate(slot[base], -1",
    "MTE3_MTE2>(EVENT_ID0); before CopyIn(ids, gm.ids[",
    "V_MTE2>(EVENT_ID0); before CopyIn(ids, gm.ids[",
    "S_V>(EVENT_ID0); before FindFree(",
    "PIPE_V>(); before AndWord(victim, newLink",
    "PIPE_V>(); before ShiftLeftWords(offset, dead[base]",
    "S_MTE2>(EVENT_ID0); before CopyIn(ids, gm.ids[",
    "MTE3_V>(EVENT_ID0); before for (int32_t base = 0; base < k; base += WIDE",
    "PIPE_V>(); before SignWords(wideSign, ids[base]",
    "S_V>(EVENT_ID0); before for (int32_t base = 0; base < sought2; base += WIDE",
    "V_MTE3>(EVENT_ID0); before CopyOut(gm.missPos[missesAt]",
    "PIPE_V>(); before BeginFindFree(secondSequence",
    "V_S>(EVENT_ID0); before FindFewFree(linkPosition, ",
    "PIPE_V>(); before AddsWords(dst[done], dst, done",
    "S_V>(EVENT_ID0); before for (int32_t base = 0; base < k; base += WIDE",
    "MTE3_V>(EVENT_ID0); before MapLifetimes(value, life, valueOf)",
    "PIPE_V>(); before RefreshLifetimeAll(life, dead[base]",
    "MTE3_S>(EVENT_ID0); before for (int32_t base = 0; base < deadLen; base += WIDE",
];

fn is_unneeded(sync: &str) -> bool {
    UNNEEDED.iter().any(|part| sync.contains(part))
}

/// The first line of a file for a device whose register of counts interlocks.
pub const INTERLOCKED: &str = "#define AVSG_SHIM_INTERLOCKED_COUNT\n";

/// Without any single barrier or flag, except those in [`UNNEEDED`], some step breaks a rule.
#[test]
fn every_barrier_and_flag_is_needed() {
    assert_all_needed(CountRead::AfterWait, "");
}

#[test]
fn every_barrier_and_flag_is_needed_where_the_register_interlocks() {
    if tier::thorough() {
        assert_all_needed(CountRead::AtOnce, INTERLOCKED);
    }
}

fn assert_all_needed(read: CountRead, define: &str) {
    let random = &mut SplitMix64(3);
    let p =
        Params { spread: 2, lifetime: Lifetime::Learned, page: 16, ..Params::wide(900, 2, 2048) };
    // The smallest unified buffer that suffices gives several tiles.
    let needs = (1..).map(|n| 1024 * n).find_map(|limit| stage_one_with(&p, limit, read).ok());
    let text = needs.expect("some size fits");
    let (file, removed) = with_switches(&file(&p, &text));
    let Some(kernels) = Compiled::single(&format!("{define}{file}")) else { return };
    let emitted = Emitted { text, kernels };
    let tape = record_stage_one(&p).unwrap();
    let mut steps = steps::sequence(&p, random, 16);
    // Tokens of one id test that each token is still ordered after the one before.
    let two_tokens =
        steps.iter().position(|s| s.param("tokens") > 1).expect("some step has two tokens");
    steps.push(steps[two_tokens].clone());
    steps.last_mut().unwrap().params[1].1 = 1;
    steps.extend(steps_with_few_early_refreshes(&p, &steps[two_tokens]));
    let mut state = StepState::clear(&p);
    let run_step = |step| {
        state.prepare(&p, step);
        let both = (state.clone(), state.replay(&tape, 16, step));
        state.finish(&p, step);
        both
    };
    let states: Vec<_> = steps.iter().map(run_step).collect();
    let breaks = |n: usize| {
        steps.iter().zip(&states).find_map(|(step, (before, want))| {
            let mut step = step.clone();
            step.params.push(("without", n as i32));
            run_and_compare(&p, &emitted, before, want, &step, (Mode::InOrder, 1)).err()
        })
    };
    assert_eq!(breaks(0), None);
    let passing: Vec<_> = (1..=removed.len())
        .filter(|&n| !is_unneeded(&removed[n - 1]))
        .filter(|&n| breaks(n).is_none())
        .map(|n| (n, &removed[n - 1]))
        .collect();
    assert!(passing.is_empty(), "{p:?}: no run fails without these: {passing:#?}");
    let spare = removed.iter().filter(|sync| is_unneeded(sync)).count();
    let n = removed.len();
    println!("{}, {n} of {n} barriers and flags, all needed except {spare}", tier::name());
}

/// Returns Stage One of a geometry of this file. The first call compiles those of all.
fn emitted(p: &Params) -> Option<&'static Emitted> {
    static ALL: OnceLock<Option<Vec<(Params, Emitted)>>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let small = small_geometries(&mut SplitMix64(SMALL_SEED)).into_iter();
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
    let ids = if step.ids.is_empty() { vec![0] } else { step.ids.clone() };
    let blocks = if step.blocks.is_empty() { vec![0] } else { step.blocks.clone() };
    let [slot, valid, pos, id, dead, row, record] = &mut out[..] else { panic!("seven outputs") };
    let name = e.kernels.name("one_request");
    let peak = Launch::new(&name)
        .input(&ids)
        .input(&blocks)
        .device(slot)
        .device(valid)
        .device(pos)
        .device(id)
        .device(dead)
        .device(row)
        .device(record)
        .device(&mut tables)
        .input(&rule)
        .input(&fields)
        .mode(mode, seed)
        .run(&e.kernels.kernels)
        .map_err(|f| format!("{f:?}"))?;
    if peak > e.text.ub_bytes {
        return Err(format!("{peak} bytes of UB are used, but {} are planned", e.text.ub_bytes));
    }
    for ((name, want), got) in want.results().iter().zip(&out) {
        // The kernel writes the whole record of a request, the tape only some of its words.
        let mut want = want.clone();
        if *name == "gm_record" {
            want[16..32].iter_mut().filter(|w| **w == -77).for_each(|w| *w = 0);
        }
        if let Some(at) = want.iter().zip(got).position(|(a, b)| a != b) {
            return Err(format!("{name}[{at}] is {}, not {}", got[at], want[at]));
        }
    }
    let want_words = want.table(p);
    match want_words.iter().zip(&tables).position(|(a, b)| a != b) {
        Some(at) => {
            Err(format!("word {at} of the table is {}, not {}", tables[at], want_words[at]))
        }
        None => Ok(()),
    }
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

const SMALL_SEED: u64 = 1;

/// Returns geometries of both tables, all spreads, both lifetimes, with and without a block table.
/// There are few, because g++ compiles each of them.
fn small_geometries(random: &mut SplitMix64) -> [Params; 7] {
    let paper = Table::KNUTH_XXHASH;
    let kinds = [
        (paper, 1, false, 0),
        (paper, 1, false, 16),
        (Table::Wide, 1, true, 0),
        (Table::Wide, 2, false, 1),
        (Table::Wide, 2, true, 16),
        (Table::Wide, 4, false, 16),
        (Table::Wide, 4, true, 0),
    ];
    kinds.map(|(table, spread, learned, page)| {
        let slots = 256 << random.below(3);
        let k = 64 + random.below(193) as u32;
        let tokens = (1 + random.below(4) as u32).min(slots / k).max(1);
        let constant = Lifetime::Constant(1 + random.below(127) as i8);
        let lifetime = if learned { Lifetime::Learned } else { constant };
        let retries = 1 + random.below(7) as u32;
        Params { table, lifetime, spread, retries, page, ..Params::wide(k, tokens, slots) }
    })
}

fn full_size_geometries() -> [Params; 4] {
    let wide = Params { spread: 2, retries: 7, ..Params::wide(2048, 4, 8192) };
    let learned = Params { lifetime: Lifetime::Learned, page: 16, ..wide };
    let spread = Params { spread: 4, ..Params::wide(2048, 2, 4096) };
    [wide, learned, Params::paper(2048, 4, 8192), spread]
}

/// Returns geometries with the least number of slots, a single id, no retry and the maximum, pages
/// of 2 and of 65536 rows, lists that are no multiple of a block, and tables in which all ids hit.
fn extreme_geometries() -> [Params; 7] {
    let (wide, learned) = (Params::wide, Lifetime::Learned);
    [
        wide(128, 1, 128),
        wide(16, 8, 128),
        Params { retries: 0, ..Params::paper(7, 8, 128) },
        Params { spread: 1, retries: 0, lifetime: learned, ..wide(1, 2, 128) },
        Params { lifetime: Lifetime::Constant(0), retries: 15, page: 65536, ..wide(100, 1, 128) },
        Params { spread: 2, lifetime: learned, page: 2, ..wide(300, 3, 1024) },
        Params { spread: 2, ..wide(2048, 1, 2048) },
    ]
}

#[test]
fn small_geometries_match_the_tape() {
    let random = &mut SplitMix64(SMALL_SEED);
    compare(&small_geometries(random), random, 10);
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
fn a_table_that_is_too_small_is_refused_with_its_slots() {
    let refused = stage_one(&Params::wide(16, 1, 64)).unwrap_err().to_string();
    assert!(refused.contains("S is 64"), "{refused}");
    assert!(stage_one(&Params::wide(16, 1, 128)).is_ok());
}

#[test]
fn a_table_that_is_too_large_is_refused_with_its_bytes() {
    let p = Params { spread: 2, retries: 7, ..Params::wide(2048, 1, 16384) };
    let refused = stage_one(&p).unwrap_err().to_string();
    assert!(refused.contains("bytes of unified buffer, and there are"), "{refused}");
}
