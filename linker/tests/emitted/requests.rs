//! The request loop and SyncAll around a Stage One with simple results: every id misses.

use super::{
    Compiled, Contents, Mode, Mutants, Outputs, Places, RunFailure, RunOptions, SYNC_CALLS,
    SplitMix64, TestEngine, compile_all, kernel_around, small_geometry,
};
use avsg_device::params::{MAX_TOKENS, Params};
use avsg_linker::ascend::StageOneText;
use avsg_linker::ascend::kernels::{Abi, kernels};

fn stage_one() -> StageOneText {
    let text = include_str!("everything_misses.h");
    let (setup, body) = text.split_once("\n\n").expect("two functions");
    let (setup, body) = (setup.to_string(), body.to_string());
    StageOneText { setup, body, ub_bytes: 384, ..StageOneText::default() }
}

/// Returns a geometry whose states may have more blocks than a core has memory for, and whose requests may
/// have as many tokens as any.
fn many_blocks() -> Params {
    Params { slots: 1024, tokens: MAX_TOKENS, ..small_geometry(0) }
}

/// Returns the mutants of the request loop of a plan, and of SyncAll and what follows it in a step.
fn mutants(step: bool, p: &Params) -> Mutants {
    let text = kernel_around(p, &stage_one(), if step { "avsg_step" } else { "avsg_plan" }).text;
    if step {
        let late = "// Refreshes the lifetimes of the slots that the last";
        return Mutants::new(&text, late, &[&SYNC_CALLS[..], &["SyncAll<"]].concat());
    }
    // The flags above this line belong to code that Stage Two shares; `transfer.rs` tests them.
    Mutants::new(&text, "constexpr int32_t PLAN_REQUESTS = 16;", &SYNC_CALLS)
}

/// The outputs, tables and rows after a run.
type After = (Outputs, Contents);

/// Runs `avsg_plan`, or `avsg_step` with its copies. In some runs a state has more blocks than a core has memory for.
fn run(
    p: &Params,
    kernels: &Compiled,
    step: bool,
    order: (u64, Mode),
) -> Result<After, RunFailure> {
    let (seed, mode) = order;
    let (mut random, requests) = (SplitMix64::new(seed), [5, 60, 1][seed as usize % 3]);
    let options = RunOptions { cores: 1 + seed as u32 % 3, mode, seed };
    let places = Places::random(&mut random, p, requests, (seed / 2 % 2 == 1).then_some(2));
    let places = Places { base: [None, Some(31), Some(0)][seed as usize % 3], ..places };
    let (sizes, format) = ((requests, 1024, requests * p.tokens as usize), &[(24, 24), (5, 8)]);
    let mut engine = TestEngine::new(&mut random, p, places, sizes, format, 5);
    engine.tables.fill(7);
    let mut b = engine.random_batch(&mut random, requests);
    // The ids of a request are distinct, because they become its slots.
    for rows in b.cu_q.windows(2) {
        let mut free: Vec<_> = (0..p.slots as i32).collect();
        for ids in b.ids.chunks_mut(b.ids_stride).take(rows[1] as usize).skip(rows[0] as usize) {
            ids[..b.k].fill_with(|| free.swap_remove(random.below(free.len())));
        }
    }
    let mut scalars = engine.scalars(&b, options.cores);
    if seed % 4 == 2 {
        // Each slot is a block.
        (scalars[27], scalars[30]) = (0, 1 << 20);
    }
    let mut out = Outputs::untouched(&b, p.k as usize);
    engine.plan(&b, &mut out, kernels, &scalars, (step, options))?;
    Ok((out, engine.contents()))
}

/// Each barrier and flag of the request loop is left out, and SyncAll: a run breaks a rule, or gives other words or bytes
/// than the whole text in program order. `step.rs` compares these kernels with the CPU. The barriers of Stage One are not
/// tested here.
#[test]
fn every_barrier_and_flag_is_needed() {
    let p = many_blocks();
    let all = [false, true].map(|step| mutants(step, &p));
    let texts = all.each_ref().map(|mutants| mutants.text.clone());
    let Some(compiled) = compile_all(&texts) else { return };
    for (step, (mutants, kernels)) in [false, true].into_iter().zip(all.iter().zip(&compiled)) {
        let whole =
            |seed| run(&p, kernels, step, (seed, Mode::InOrder)).expect("no rule is broken");
        let expected: Vec<After> = (0..16).map(whole).collect();
        mutants.assert_each_fails(kernels, |kernels| {
            (0..).zip(&expected).any(|(seed, expected)| {
                !run(&p, kernels, step, (seed, Mode::Adversarial)).is_ok_and(|got| got == *expected)
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
