//! The kernels of a batch give the same tables, slots, miss lists, records and rows as the CPU, with plan and transfer as
//! two launches and as one, by bulk copies and by loads.

use super::gpu::{Compiled, Gpu, compile, run};
use super::mutants::with_switches;
use super::{Batch, Outputs, Places, SplitMix64, TestEngine, optional, tier, unneeded};
use avsg_device::params::{Lifetime, Params};
use avsg_linker::cuda::{Options, cuda};
use avsg_sim::shim::{Failure, Launch, Mode};

const NAMES: [&str; 3] = ["avsg_plan", "avsg_step", "avsg_transfer"];

/// Emits and compiles the kernels of a geometry as one text.
fn emit(
    p: &Params,
    options: Options,
    gpu: Gpu,
    change: impl FnOnce(String) -> String,
) -> Option<Compiled> {
    let kernels = cuda(p, options).unwrap_or_else(|e| panic!("{p:?}: {e}"));
    let text: String = kernels.kernels.iter().map(|(_, text)| text.as_str()).collect();
    let launch = Options { shared_bytes: kernels.shared_bytes, ..options };
    compile(&change(kernels.whole(&text, false)), &NAMES, launch, gpu)
}

/// Runs one step, as one launch or as two, and returns its outputs.
fn step(
    engine: &mut TestEngine,
    b: &Batch,
    compiled: &Compiled,
    two: bool,
    (mode, seed): (Mode, u64),
) -> Result<Outputs, Failure> {
    let k = engine.p.k as usize;
    let mut out = Outputs::untouched(b, k);
    let scalars = engine.scalars(b, 4);
    let blocks = b.state.len() as u32;
    let launch =
        Launch::new(if two { "avsg_plan" } else { "avsg_step" }).blocks(blocks).mode(mode, seed);
    let launch = b.pass(launch).device(&mut engine.tables);
    let launch = match two {
        true => optional(launch, &engine.places.table),
        false => engine.layer.pass(launch, &engine.places),
    };
    run(out.pass(launch).input(&scalars), compiled)?;
    if two {
        // Any number of blocks may copy.
        let launch = Launch::new("avsg_transfer").blocks(1 + seed as u32 % 5).mode(mode, seed);
        let launch = launch.input(&b.cu_q).input(&b.state).input(&out.miss[2]);
        let launch = launch.input(&out.miss[3]).input(&out.record);
        run(engine.layer.pass(launch, &engine.places).input(&scalars), compiled)?;
    }
    Ok(out.cut_lists(b, k))
}

/// Runs random batches on rows of these segments, and compares all memory with that of a CPU.
fn compare(p: &Params, options: Options, gpu: Gpu, format: &[(usize, usize)], seed: u64) {
    let Some(compiled) = emit(p, options, gpu, |text| text) else { return };
    let (requests, units) = (4, 1024 / p.page.max(1) as usize);
    let random = &mut SplitMix64(seed);
    let places = Places::random(random, p, requests, (seed % 2 == 1).then_some(3));
    let places = Places { base: (seed % 3 == 1).then_some(11), ..places };
    let mut engine = TestEngine::new(random, p, places, (requests, units, 32), format, 7);
    let (mut misses, mut fresh) = (0, 0);
    for n in 0..if tier::thorough() { 40 } else { 8 } {
        let b = engine.random_batch(random, requests);
        let mode = [Mode::InOrder, Mode::Adversarial][n % 2];
        let what = format!("step {n} of {p:?}, {options:?}, {gpu:?}, {format:?}, {mode:?}");
        let want = engine.expect_as_on_cpu(&b, &what, |engine, two| {
            step(engine, &b, &compiled, two, (mode, seed + n as u64))
        });
        misses += want.miss_count();
        fresh += want.fresh_count();
    }
    assert!(misses > 300 && fresh > 10, "{misses} misses, {fresh} of fresh rows");
}

const OPTIONS: Options = Options { threads: 256, shared_bytes: 96 * 1024 };

#[test]
fn batches_match_the_cpu() {
    let wide = Params { spread: 2, retries: 7, ..Params::wide(96, 4, 512) };
    let paged = Params { page: 16, lifetime: Lifetime::Constant(127), ..wide };
    // Rows of which bulk copies can copy all, one segment and two, and rows of which they cannot.
    compare(&paged, OPTIONS, Gpu::Bulk, &[(1024, 1024), (128, 144)], 1);
    compare(&paged, OPTIONS, Gpu::Bulk, &[(584, 600)], 2);
    compare(&Params::paper(100, 2, 512), OPTIONS, Gpu::Loads, &[(5, 8)], 4);
    if tier::thorough() {
        compare(&wide, OPTIONS, Gpu::Bulk, &[(656, 656)], 0);
        compare(&wide, OPTIONS, Gpu::Loads, &[(1152, 1152), (64, 64)], 3);
    }
}

/// The memory of a block that has fewer entries for copies than there are rows, some of them late.
const FEW_ENTRIES: Options = Options { shared_bytes: 32 * 1024, ..OPTIONS };

/// Returns an engine, and a batch that has more requests than a transfer has threads, so that it has two windows.
fn two_windows() -> (TestEngine, Batch) {
    let p = Params { spread: 2, retries: 7, ..Params::wide(256, 1, 1024) };
    // Only the first and the last request are planned, with one token each.
    let b = Batch {
        k: 256,
        ids_stride: 256,
        ids: (0..512).map(|i| 5 * i).collect(),
        cu_q: [&[0][..], &[1; 257], &[2]].concat(),
        state: [&[0][..], &[-1; 256], &[1]].concat(),
        generation: vec![1; 258],
        stable: vec![-1; 258],
        seq: vec![4096; 258],
        ..Batch::default()
    };
    let (places, sizes, format) = (Places::default(), (2, 4096, 4), &[(656, 656)]);
    (TestEngine::new(&mut SplitMix64(1), &p, places, sizes, format, 7), b)
}

/// A block uses all memory that a launch gives it, so one with a larger number of bytes, one with a column behind the memory
/// and one with an entry more for copies are refused.
#[test]
fn no_block_uses_more_shared_memory_than_its_launch_gives() {
    let (mut engine, b) = two_windows();
    let bytes = FEW_ENTRIES.shared_bytes;
    let size = format!("constexpr int SHARED_BYTES = {bytes};");
    let changed = [
        (size, format!("#define SHARED_BYTES (left_out == 1 ? {bytes} + 1024 : {bytes})")),
        ("slot = Shared<int>(".into(), format!("slot = Shared<int>(left_out == 2 ? {bytes} : ")),
        ("- ENTRIES_AT) / c.bytes".into(), "- ENTRIES_AT) / c.bytes + (left_out == 3)".into()),
    ];
    let change = |text: String| {
        let (text, _) = with_switches(&text, &[], &[]);
        changed.iter().fold(text, |text, (from, to)| {
            assert_eq!(text.matches(from).count(), 1, "{from}");
            text.replace(from, to)
        })
    };
    let Some(compiled) = emit(&engine.p.clone(), FEW_ENTRIES, Gpu::Bulk, change) else { return };
    let before = engine.contents();
    let mut run = |n| {
        compiled.leave_out(n);
        engine.restore(&before);
        step(&mut engine, &b, &compiled, false, (Mode::Adversarial, 1)).map(drop)
    };
    assert_eq!(run(0), Ok(()));
    for n in 1..=changed.len() {
        let text = run(n).expect_err(&changed[n - 1].1).text;
        let end = format!("of shared memory, of which the launch gives {bytes}");
        assert!(text.ends_with(&end), "{text}");
    }
}

/// Leaves out each barrier, fence and wait of the copies, as one launch and as two.
#[test]
fn every_wait_of_the_copy_is_needed() {
    let (mut engine, b) = two_windows();
    let calls = [
        "__syncthreads();",
        "FenceBulkCopies();",
        "WaitFor",
        "InitCopyBarrier(",
        "ExpectBytes(",
        "EndGroup();",
    ];
    let mut statements = Vec::new();
    let change = |text: String| {
        let (switched, all) = with_switches(&text, &["copies.cuh", "transfer.cuh"], &calls);
        statements = all;
        switched
    };
    let Some(compiled) = emit(&engine.p.clone(), FEW_ENTRIES, Gpu::Bulk, change) else { return };
    let before = engine.contents();
    let want = engine.step_on_cpu(&b);
    let after = engine.contents();
    let passing = unneeded(&statements, |n| {
        compiled.leave_out(n);
        [false, true].into_iter().any(|two| {
            engine.restore(&before);
            // One block copies both windows.
            let got = step(&mut engine, &b, &compiled, two, (Mode::Adversarial, 5 * n as u64));
            !got.is_ok_and(|got| got == want) || engine.contents() != after
        })
    });
    assert!(passing.is_empty() && statements.len() > 7, "no run fails without these: {passing:#?}");
}
