//! Stage One as it is emitted for the 910B, executed on the shim, leaves the same bits as the tape: over
//! sequences with everything in them that a request can do.

use super::shim::{Launch, Mode, gxx};
use super::steps;
use super::steps::{Random, Request, Table as State};
use super::tier;
use super::together::{Compiled, compile_all};
use avsg_device::memory;
use avsg_device::params::{Lifetime, Params, Table};
use avsg_device::tiling::rules;
use avsg_linker::ascendc::camel;
use avsg_linker::ascendc::kernels::{Abi, kernels};
use avsg_linker::ascendc::{StageOneText, stage_one, stage_one_within};
use avsg_linker::check::check;
use avsg_linker::record::record_stage_one;
use avsg_linker::tape::Param;

/// Takes a request's fields from memory, so that a test may set each of them.
const ENTRY: &str = r#"
extern "C" __global__ __aicore__ void one_request(GM_ADDR ids, GM_ADDR blocks, GM_ADDR slot, GM_ADDR valid,
    GM_ADDR missPos, GM_ADDR missId, GM_ADDR missSlot, GM_ADDR missRow, GM_ADDR record, GM_ADDR tables,
    GM_ADDR rules, GM_ADDR fields)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
    using namespace avsg;
    Gm gm;
    gm.ids = Global<int32_t>(ids);
    gm.blockTable = Global<int32_t>(blocks);
    gm.slot = Global<int32_t>(slot);
    gm.valid = Global<int32_t>(valid);
    gm.missPos = Global<int32_t>(missPos);
    gm.missId = Global<int32_t>(missId);
    gm.missSlot = Global<int32_t>(missSlot);
    gm.missRow = Global<int32_t>(missRow);
    gm.record = Global<int32_t>(record);
    gm.tables = Global<int32_t>(tables);
    gm.rules = Global<half>(rules);
    const GlobalTensor<int32_t> f = Global<int32_t>(fields);
    Request q;
FIELDS
    q.turn = 3;
    q.owner = true;
    q.tableAt = 0;
    stage_one::Setup(gm);
    PipeBarrier<PIPE_ALL>();
    stage_one::StageOne(gm, q);
}
"#;

struct Emitted {
    text: StageOneText,
    kernels: Compiled,
}

fn file(p: &Params, text: &StageOneText) -> String {
    let all = kernels(p, text, Abi::Direct).expect("it fits");
    let plan = all.kernels.iter().find(|k| k.name == "avsg_plan").expect("a plan kernel");
    // The kernel itself costs a compiler as much as Stage One, and is not called here.
    let text = if tier::thorough() { &plan.text } else { "#include \"avsg_plan.h\"\n" };
    let fields = record_stage_one(p).expect("it records").params.into_iter().enumerate();
    let field =
        |(n, param): (usize, Param)| format!("    q.{} = f.GetValue({n});", camel(&param.name));
    let fields: Vec<String> = fields.map(field).collect();
    all.whole(text) + &ENTRY.replace("FIELDS", &fields.join("\n"))
}

/// A text in which each barrier and flag can be left out: number n by setting the last field to n.
fn mutable(text: &str) -> (String, Vec<String>) {
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
    // The number comes before the request's fields.
    let entry = "    const GlobalTensor<int32_t> f = Global<int32_t>(fields)";
    let set = "    without = Global<int32_t>(fields).GetValue(0);\n";
    (out.replace(&format!("{entry};"), &format!("{set}{entry}[1];")), removed)
}

/// Two steps that fill a table; one that finds some of its oldest ids beside new ones, a few hits that must not
/// wait; the same again; one that misses a few ids and has no other
/// than valid ones; and one that misses none and has a few that are not valid.
fn few_early(p: &Params, like: &Request) -> Vec<Request> {
    let (k, slots) = (p.k as i32, p.slots as i32);
    let step = |ids: Vec<i32>, tokens, k| {
        let blocks: Vec<i32> = (0..4 * slots / p.page as i32).collect();
        let params = like.params.iter().map(|&(name, value)| {
            let n = blocks.len() as i32;
            let set = match name {
                "tokens" | "late" => tokens,
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
        Request { params: params.collect(), ids, blocks, slots: words, misses: words }
    };
    let mut some = vec![-1; k as usize];
    for i in 0..20 {
        some[45 * i] = 2 * k - 200 + i as i32;
        some[45 * i + 1] = 4 * k + i as i32;
    }
    let (first, second) = (step((0..2 * k).collect(), 2, k), step((2 * k..4 * k).collect(), 2, k));
    let mut valid: Vec<i32> = (3 * k..4 * k).collect();
    (0..20).for_each(|i| valid[i] = 5 * k + i as i32);
    // So few that all of them found a link.
    let mut hits = valid[700..].to_vec();
    hits.iter_mut().step_by(45).for_each(|id| *id = -1);
    let few = hits.len() as i32;
    let one = |ids: Vec<i32>| step(ids, 1, k);
    vec![first, second, one(some.clone()), one(some), one(valid), step(hits, 1, few)]
}

/// What the analysis cannot know: either all hits are refreshed or those few, no run has both; only the first token is
/// shared, so no earlier one uses what a part is copied to; in this geometry nothing that is still needed lies where a search, or what follows one, begins; and no miss of a
/// last token loses its link twice.
const KNOWN: [&str; 6] = [
    "V_MTE2>(EVENT_ID0); before CopyIn(ids, gm.ids[from + q.partAt]",
    "PIPE_V>(); before Cast(bytes, life",
    "PIPE_V>(); before ShiftRight(sign, slot[base]",
    "S_V>(EVENT_ID0); before RefreshLifetimeAll(life, dead[base]",
    "PIPE_V>(); before Find(",
    "PIPE_V>(); before FindFree(",
];

fn known(sync: &str) -> bool {
    KNOWN.iter().any(|known| sync.contains(known))
}

/// No barrier and no flag is there for nothing: without any single one, some step breaks a rule. (In `paper`,
/// two are for paths that the analysis cannot know to be closed: a loop of no rounds before one of some.)
#[test]
fn every_synchronisation_is_needed() {
    if !gxx() {
        return;
    }
    let random = &mut Random(3);
    let p = Params {
        spread: 2,
        lifetime: Lifetime::frequency(),
        page: 16,
        ..Params::wide(900, 2, 2048)
    };
    // As little as it can do with: several tiles.
    let needs = (1..).map(|n| 1024 * n).find_map(|limit| stage_one_within(&p, limit).ok());
    let text = needs.expect("it fits somewhere");
    let (file, removed) = mutable(&file(&p, &text));
    let emitted = Emitted { kernels: Compiled::alone(&file), text };
    let tape = record_stage_one(&p).unwrap();
    let mut steps = steps::sequence(&p, random, 16);
    // Tokens that select nothing: what orders one after the other then?
    let nothing =
        steps.iter().position(|s| s.param("tokens") > 1).expect("some step has two tokens");
    steps.push(steps[nothing].clone());
    steps.last_mut().unwrap().params[1].1 = 0;
    steps.extend(few_early(&p, &steps[nothing]));
    let mut state = State::clear(&p);
    let one = |step| {
        let both = (state.clone(), state.replay(&tape, 16, step));
        state.finish(&p, step);
        both
    };
    let states: Vec<_> = steps.iter().map(one).collect();
    let breaks = |n: usize| {
        steps.iter().zip(&states).find_map(|(step, (before, want))| {
            let mut step = step.clone();
            step.params.push(("without", n as i32));
            run(&p, &emitted, before, want, &step, (Mode::InOrder, 1)).err()
        })
    };
    assert_eq!(breaks(0), None);
    let alive: Vec<_> = (1..=removed.len())
        .filter(|&n| !known(&removed[n - 1]))
        .filter(|&n| breaks(n).is_none())
        .map(|n| (n, &removed[n - 1]))
        .collect();
    assert!(alive.is_empty(), "{p:?}: nothing shows that these are gone: {alive:#?}");
    let spare = removed.iter().filter(|sync| known(sync)).count();
    let n = removed.len();
    println!("{}, {n} of {n} barriers and flags, all needed but {spare}", tier::name());
}

fn emit(geometries: &[Params]) -> Vec<Emitted> {
    let text = |p| stage_one(p).unwrap_or_else(|e| panic!("{p:?}: {e}"));
    let texts: Vec<_> = geometries.iter().map(text).collect();
    let files: Vec<_> = geometries.iter().zip(&texts).map(|(p, text)| file(p, text)).collect();
    let all = compile_all(&files).into_iter().zip(texts);
    all.map(|(kernels, text)| Emitted { text, kernels }).collect()
}

/// The words of a table, as the CPU lays them out.
fn words(p: &Params, state: &State) -> Vec<i32> {
    let mut words = vec![0; memory::table_words(p)];
    {
        let mut s: avsg_device::state::State<'_, avsg_device::machine::emu::Emu<1>> =
            memory::split_state(p, &mut words);
        s.header.copy_from_slice(state.output("header"));
        s.id.words_mut().copy_from_slice(state.output("id"));
        s.link.words_mut().copy_from_slice(state.output("link"));
        s.life.slots_mut().copy_from_slice(&state.life);
    }
    words
}

/// Runs one step on the shim from `before`; `None` where the model refused it.
fn run(
    p: &Params,
    e: &Emitted,
    before: &State,
    want: &State,
    step: &Request,
    (mode, seed): (Mode, u64),
) -> Result<(), String> {
    let mut tables = words(p, before);
    let mut out: Vec<Vec<i32>> = want.words[3..].iter().map(|(_, w)| vec![-77; w.len()]).collect();
    let tape = record_stage_one(p).expect("it records");
    let fields = tape.params.iter().map(|param| step.param(&param.name));
    let without = step.params.iter().find(|param| param.0 == "without").map(|param| param.1);
    let fields: Vec<i32> = without.into_iter().chain(fields).collect();
    let rule = match &p.lifetime {
        Lifetime::Frequency(f) => rules(f),
        Lifetime::Constant(_) => [0; 256],
    };
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
        return Err(format!("{peak} bytes of UB, planned are {}", e.text.ub_bytes));
    }
    for ((name, want), got) in want.words[3..].iter().zip(&out) {
        // A kernel writes a request's whole record; the tape only what it knows.
        let mut want = want.clone();
        if *name == "gm_record" {
            want[16..32].iter_mut().filter(|w| **w == -77).for_each(|w| *w = 0);
        }
        if let Some(at) = want.iter().zip(got).position(|(a, b)| a != b) {
            return Err(format!("{name}[{at}] is {}, not {}", got[at], want[at]));
        }
    }
    let good = words(p, want);
    match good.iter().zip(&tables).position(|(a, b)| a != b) {
        Some(at) => Err(format!("word {at} of the table is {}, not {}", tables[at], good[at])),
        None => Ok(()),
    }
}

/// So many steps in each geometry.
fn compare(geometries: &[Params], random: &mut Random, steps: usize) {
    geometries.iter().for_each(|p| p.check().unwrap_or_else(|e| panic!("{p:?}: {e:?}")));
    for (p, emitted) in geometries.iter().zip(emit(geometries)) {
        let tape = record_stage_one(p).unwrap();
        check(&tape).unwrap_or_else(|e| panic!("{e}"));
        let mut state = State::clear(p);
        for (n, step) in steps::sequence(p, random, steps).iter().enumerate() {
            let before = state.clone();
            let want = state.replay(&tape, 16, step);
            for mode in [Mode::InOrder, Mode::Adversarial] {
                run(p, &emitted, &before, &want, step, (mode, n as u64))
                    .unwrap_or_else(|e| panic!("step {n} of {p:?}, {mode:?}: {e}"));
            }
            state.finish(p, step);
        }
    }
}

/// Both tables, all spreads, both lifetimes, with and without a block table: a few of each, because every
/// geometry is work for g++.
#[test]
fn small_geometries() {
    if !gxx() {
        return;
    }
    let random = &mut Random(1);
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
    let geometry = |(table, spread, frequency, page)| {
        let slots = 256 << random.below(3);
        let k = 64 + random.below(193) as u32;
        let tokens = (1 + random.below(4) as u32).min(slots / k).max(1);
        let constant = Lifetime::Constant(1 + random.below(127) as i8);
        let lifetime = if frequency { Lifetime::frequency() } else { constant };
        let retries = 1 + random.below(7) as u32;
        Params { table, lifetime, spread, retries, page, ..Params::wide(k, tokens, slots) }
    };
    let geometries = kinds.map(geometry);
    compare(&geometries, random, 10);
}

/// The geometries that matter, at full size.
#[test]
fn full_size() {
    if !gxx() {
        return;
    }
    let random = &mut Random(2);
    let wide = Params { spread: 2, retries: 7, ..Params::wide(2048, 4, 8192) };
    let frequency = Params { lifetime: Lifetime::frequency(), page: 16, ..wide };
    let spread = Params { spread: 4, ..Params::wide(2048, 2, 4096) };
    compare(&[wide, frequency, Params::paper(2048, 4, 8192), spread], random, 3);
}

/// A whole repeat of halves, no less: the compare of 64 would leave bits undefined.
#[test]
fn too_small_names_the_slots() {
    let refused = stage_one(&Params::wide(16, 1, 64)).unwrap_err().to_string();
    assert!(refused.contains("S is 64"), "{refused}");
    assert!(stage_one(&Params::wide(16, 1, 128)).is_ok());
}

#[test]
fn too_large_names_the_bytes() {
    let p = Params { spread: 2, retries: 7, ..Params::wide(2048, 1, 16384) };
    let refused = stage_one(&p).unwrap_err().to_string();
    assert!(refused.contains("bytes of unified buffer, and there are"), "{refused}");
}

/// Corners of the geometry rules: the fewest slots that a core compares, one id, no retry and the most, pages
/// of two rows and of 65536, lists that are no whole blocks, and tables that are all hits.
#[test]
fn corners() {
    if !gxx() {
        return;
    }
    let random = &mut Random(7);
    let (wide, frequency) = (Params::wide, Lifetime::frequency());
    let corners = [
        wide(128, 1, 128),
        wide(16, 8, 128),
        Params { retries: 0, ..Params::paper(7, 8, 128) },
        Params { spread: 1, retries: 0, lifetime: frequency, ..wide(1, 2, 128) },
        Params { lifetime: Lifetime::Constant(0), retries: 15, page: 65536, ..wide(100, 1, 128) },
        Params { spread: 2, lifetime: frequency, page: 2, ..wide(300, 3, 1024) },
        Params { spread: 2, ..wide(2048, 1, 2048) },
    ];
    compare(&corners, random, 6);
}
