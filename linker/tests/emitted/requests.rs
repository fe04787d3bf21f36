//! The request loop and SyncAll around a Stage One with simple results: every id misses.

use super::compiled::{AllTexts, Compiled};
use super::harness::{RunOptions, differs, kernel_around, launch, shim_launch, small_geometry};
use super::layer_memory::{LayerMemory, Places, SplitMix64, kv_offset, tiling};
use super::mutants::{Mutants, SYNC_CALLS};
use super::shim::{Failure, Mode};
use super::test_engine::{Batch, Outputs};
use avsg_device::machine::emu::Emu;
use avsg_device::memory::{learn, split_state, state_words, table_words};
use avsg_device::params::{ID_LIMIT, MAX_TOKENS, NO_STABLE_LEN, Params};
use avsg_device::request::{record, status};
use avsg_device::rules::rules;
use avsg_device::state::State;
use avsg_device::tiling::{Launch, MAX_SLOT_BLOCKS};
use avsg_device::vector_core::refresh_deferred;
use avsg_linker::ascend::StageOneText;
use avsg_linker::ascend::kernels::{Abi, kernels};

fn stage_one() -> StageOneText {
    let text = include_str!("everything_misses.h");
    let (setup, body) = text.split_once("\n\n").expect("two functions");
    let (setup, body) = (setup.to_string(), body.to_string());
    StageOneText { setup, body, ub_bytes: 384, ..StageOneText::default() }
}

fn kernel_name(step: bool) -> &'static str {
    if step { "avsg_step" } else { "avsg_plan" }
}

/// Returns a geometry whose states may have more blocks than a core has memory for, and whose requests may
/// have as many tokens as any.
fn many_blocks() -> Params {
    Params { slots: 1024, tokens: MAX_TOKENS, ..small_geometry(0) }
}

/// Returns the mutants of the request loop of a plan, and of SyncAll and what follows it in a step.
fn mutants(step: bool, p: &Params) -> Mutants {
    let text = kernel_around(p, &stage_one(), kernel_name(step)).text;
    if step {
        let late = "// Refreshes the lifetimes of the slots that the last";
        return Mutants::new(&text, late, &[&SYNC_CALLS[..], &["SyncAll<"]].concat());
    }
    // The flags above this line belong to code that Stage Two shares; `transfer.rs` tests them.
    Mutants::new(&text, "constexpr int32_t PLAN_REQUESTS = 16;", &SYNC_CALLS)
}

/// Returns the compiled kernels of a text of this file.
fn compiled(text: &str) -> Option<&'static Compiled> {
    static ALL: AllTexts = AllTexts::new();
    ALL.compiled(text, || [false, true].map(|step| mutants(step, &many_blocks()).text).into())
}

const POOL_ROWS: usize = 1024;

/// Returns a random batch, some of whose states and lengths are out of range.
fn random_batch(random: &mut SplitMix64, p: &Params, requests: usize) -> Batch {
    let k = [64, 1, 37][random.below(3)];
    let stride = k + random.below(9);
    let mut b = Batch { k, ids_stride: stride, cu_q: vec![0], ..Batch::default() };
    for request in 0..requests {
        let tokens = random.below(p.tokens as usize + 1);
        b.cu_q.push(b.cu_q[request] + tokens as i32);
        let state = (requests - 1 - request) as i32;
        b.state.push([state, state, state, -1, requests as i32][random.below(5)]);
        b.generation.push(random.below(1000) as i32 - 500);
        b.stable.push([-1, random.below(5000) as i32, i32::MAX][random.below(3)]);
        b.seq.push([random.below(5000) as i32, -9, i32::MAX][random.below(3)]);
        // The ids of a request are distinct, because they become its slots.
        let mut free: Vec<_> = (0..p.slots as i32).collect();
        for _ in 0..tokens {
            b.ids.extend((0..stride).map(|i| match i < k {
                true => free.swap_remove(random.below(free.len())),
                false => -99,
            }));
        }
    }
    b
}

/// Returns the tables after a batch. This Stage One does not change them, a step refreshes the
/// slots of each request's last token, and each request learns.
fn expected_tables(p: &Params, step: bool, b: &Batch, out: &Outputs) -> Vec<i32> {
    let mut tables = vec![7; b.state.len() * table_words(p)];
    for (request, &state) in b.state.iter().enumerate() {
        let (first, end) = (b.cu_q[request], b.cu_q[request + 1]);
        if !(0..b.state.len() as i32).contains(&state) {
            continue;
        }
        let words = &mut tables[state as usize * table_words(p)..][..state_words(p)];
        if step && first < end {
            let mut table: State<'_, Emu<1>> = split_state(p, words);
            let slots = &out.slot[(end - 1) as usize * p.k as usize..][..b.k];
            refresh_deferred(p, table.life.slots_mut(), slots);
        }
        learn(p, words);
    }
    tables
}

/// Returns the outputs that a batch must have. With `refused` every request is padded and has a status
/// bit.
fn expected_outputs(p: &Params, b: &Batch, step: bool, refused: bool) -> Outputs {
    let (requests, full) = (b.state.len(), p.k as usize);
    let rows = *b.cu_q.last().expect("cu_q is not empty") as usize;
    let (slot, valid, record) = (vec![-1; rows * full], vec![0; rows], vec![0; requests * 16]);
    let mut out = Outputs { slot, valid, record, ..Outputs::untouched(requests, rows, full) };
    for request in 0..requests {
        if refused {
            out.record[request * 16 + record::STATUS as usize] = status::TOO_MANY_SLOT_BLOCKS;
        }
        if refused || !(0..requests as i32).contains(&b.state[request]) {
            continue;
        }
        let (first, end) = (b.cu_q[request] as usize, b.cu_q[request + 1] as usize);
        let tokens = end - first;
        let stable = b.stable[request];
        let fields = [
            tokens as i32,
            b.k as i32,
            b.generation[request],
            if stable < 0 { NO_STABLE_LEN } else { stable.min(NO_STABLE_LEN) },
            b.seq[request].clamp(0, ID_LIMIT),
            POOL_ROWS as i32,
            (first * b.ids_stride) as i32,
            b.ids_stride as i32,
            0,
            0,
            (first * full) as i32,
            full as i32,
            first as i32,
            (first * full) as i32,
            (request * 16) as i32,
            b.state[request] * table_words(p) as i32,
            if step { tokens as i32 } else { 0 },
            4711,
        ];
        let record = &mut out.record[request * 16..][..16];
        record.copy_from_slice(&fields[..16]);
        (record[0], record[8]) = (b.k as i32, (tokens * b.k) as i32);
        if tokens > 0 {
            out.miss[0][first * full..][..18].copy_from_slice(&fields);
        }
        for g in 0..tokens {
            let ids = &b.ids[(first + g) * b.ids_stride..][..b.k];
            out.slot[(first + g) * full..][..b.k].copy_from_slice(ids);
            out.valid[first + g] = b.k as i32;
            for miss in &mut out.miss[1..] {
                miss[first * full + g * b.k..][..b.k].copy_from_slice(ids);
            }
        }
    }
    out
}

/// Runs `avsg_plan`, or `avsg_step` with its copies, and compares outputs, tables and rows. In some
/// runs of tables with enough slots, a state has too many blocks.
fn run_and_compare(
    p: &Params,
    kernels: &Compiled,
    step: bool,
    seed: u64,
    requests: usize,
    options: RunOptions,
) -> Result<(), Failure> {
    let mut random = SplitMix64(seed);
    let b = random_batch(&mut random, p, requests);
    let refused = p.slots > MAX_SLOT_BLOCKS && seed % 4 == 2;
    let expected = expected_outputs(p, &b, step, refused);
    let places = match seed / 2 % 2 {
        0 => Places::default(),
        _ => Places::random(&mut random, p, requests, 2),
    };
    let places = Places { base: [None, Some(31), Some(0)][seed as usize % 3], ..places };
    let slots = if step { places.slots(p, requests).max(8) } else { 8 };
    let mut layer = LayerMemory::new(&mut random, &[(24, 24), (5, 8)], POOL_ROWS, 5, slots, 1);
    let segments = layer.layouts();
    let mut scalars = tiling(
        p,
        places.scalars(Launch {
            k: b.k as u32,
            ids_stride: b.ids_stride as u32,
            pool_units: POOL_ROWS as u32,
            ..launch(requests, options.cores, &segments)
        }),
    );
    if refused {
        // Each slot is a block.
        (scalars[27], scalars[30]) = (0, 1 << 20);
    }
    let mut out = Outputs::untouched(requests, expected.valid.len(), p.k as usize);
    let mut tables = vec![7; requests * table_words(p)];
    let mut kv: Vec<_> = layer.segments.iter().map(|segment| segment.kv.clone()).collect();
    for request in 0..requests {
        let (first, end) = (b.cu_q[request] as usize, b.cu_q[request + 1] as usize);
        if !step || refused || !(0..requests as i32).contains(&b.state[request]) {
            continue;
        }
        for row in first..end {
            for &id in &b.ids[row * b.ids_stride..][..b.k] {
                for (s, segment) in layer.segments.iter().enumerate() {
                    let slot = places.index(p, b.state[request] as usize, id as usize);
                    let Some(slot) = slot else { continue };
                    let from = layer.host_row(s, id as usize);
                    let at = kv_offset(slot, segment.layout.kv_stride);
                    kv[s][at..at + from.len()].copy_from_slice(from);
                }
            }
        }
    }
    let rule = rules(&p.lifetime).expect("learned lifetimes");
    let name = kernels.name(kernel_name(step));
    let run = b.pass(shim_launch(&name, options)).device(&mut tables).input(&rule);
    let run = if step { layer.pass(run, &places) } else { places.pass(run) };
    out.pass(run).raw(std::ptr::null_mut()).input(&scalars).run(&kernels.kernels)?;
    let mut slot = expected.slot.clone();
    for (request, &state) in b.state.iter().enumerate() {
        if (0..requests as i32).contains(&state) {
            let rows = [0, 1].map(|at| b.cu_q[request + at] as usize * p.k as usize);
            places.globalize(p, state as usize, &mut slot[rows[0]..rows[1]]);
        }
    }
    let rows = layer.segments.iter().zip(&kv).all(|(segment, kv)| segment.kv == *kv);
    let untouched = vec![7; tables.len()];
    let want = if refused { untouched } else { expected_tables(p, step, &b, &expected) };
    let same = [
        (out.slot == slot, "slot"),
        (out.valid == expected.valid, "valid"),
        (out.record == expected.record, "record"),
        (out.miss == expected.miss, "a miss list"),
        (rows || !step, "the device buffer"),
        (tables == want, "a table"),
    ];
    same.iter().find(|(same, _)| !same).map_or(Ok(()), |(_, what)| Err(differs(what)))
}

/// The whole text plans each request once, and with a status bit if a state has more blocks than a core has memory for;
/// `step.rs` compares it on more cores and in program order. Then each barrier and flag of the request loop is left out,
/// and SyncAll. Those of Stage One are not tested here.
#[test]
fn requests_are_planned_once_and_every_barrier_and_flag_is_needed() {
    let p = many_blocks();
    for step in [false, true] {
        let mutants = mutants(step, &p);
        let Some(kernels) = compiled(&mutants.text) else { return };
        mutants.assert_each_fails(kernels, |kernels| {
            (0..16).any(|seed| {
                let cores = 1 + seed as u32 % 3;
                let options = RunOptions { cores, mode: Mode::Adversarial, seed };
                let requests = [5, 60, 1][seed as usize % 3];
                run_and_compare(&p, kernels, step, seed, requests, options).is_err()
            })
        });
    }
}

#[test]
fn a_stage_one_that_is_too_large_is_refused_with_its_bytes() {
    let large = StageOneText { ub_bytes: 187_500, ..stage_one() };
    let error = kernels(&small_geometry(0), &large, Abi::Direct).unwrap_err().to_string();
    assert!(error.contains("187520 bytes") && error.contains("187360"), "{error}");
}
