//! The emitted append and reset kernels, run on the shim and compared with those in Rust.

use super::{
    Batch, Compiled, EVERY_ORDER, LayerMemory, Mode, Mutants, RunFailure, RunOptions, SYNC_CALLS,
    ShimLaunch, SplitMix64, compile_all, differs, kernel, optional, run_in_rust, shim_launch,
    small_geometry, tiling, with_chunks,
};
use avsg_device::kernels::KernelName;
use avsg_device::memory::{clear_state, table_words};
use avsg_device::params::Params;

/// Returns a random batch with lengths and block table entries at and beyond their limits.
fn random_batch(random: &mut SplitMix64, p: &Params, requests: usize, units: usize) -> Batch {
    let page = p.page as usize;
    let block_stride = if page == 0 { 0 } else { 5 };
    let mut a = Batch { k: 64, ids_stride: 64, cu_q: vec![0], block_stride, ..Batch::default() };
    // Requests must not write to the same pool rows, so each has ids or blocks of its own.
    let ids_per_request = units / requests.max(1) * page.max(1);
    let mut free: Vec<_> = (0..units as i32).collect();
    for request in 0..requests {
        let tokens = random.below(p.tokens as usize + 1);
        a.cu_q.push(a.cu_q[request] + tokens as i32);
        a.state.push(if random.below(6) == 0 { -1 } else { request as i32 });
        let from = if page == 0 { request * ids_per_request } else { 0 };
        // Some ids are past the last block table entry or past the pool.
        let stable = from
            + random.below(ids_per_request.max(4) - 3)
            + if random.below(9) == 0 { ids_per_request + units } else { 0 };
        a.stable.push(if random.below(6) == 0 { -1 } else { stable as i32 });
        a.seq.push((stable + tokens - random.below(2) * random.below(tokens + 1)) as i32);
        for _ in 0..a.block_stride {
            let block = free.swap_remove(random.below(free.len()));
            let wrong = [-1, units as i32][random.below(2)];
            a.blocks.push(if random.below(7) == 0 { wrong } else { block });
        }
    }
    a
}

/// Returns a launch of append. No segment but those of the memory has fresh rows.
fn launch<'a>(
    name: &'a str,
    options: RunOptions,
    a: &'a Batch,
    layer: &'a mut LayerMemory,
    scalars: &'a [i32],
) -> ShimLaunch<'a> {
    let run = shim_launch(name, options).input(&a.cu_q).input(&a.state);
    let run = optional(run.input(&a.stable).input(&a.seq), &a.blocks).input(&layer.pointers);
    let absent = 2 - layer.segments.len();
    let run = layer
        .segments
        .iter_mut()
        .fold(run, |run, segment| with_chunks(run.input(&segment.fresh), &mut segment.chunks));
    // Behind the fresh rows is the workspace.
    (0..=absent).fold(run, |run, _| run.raw(std::ptr::null_mut())).input(scalars)
}

/// Runs append, and compares every byte of the host pool with what the kernel in Rust writes.
fn check_append(
    p: &Params,
    kernels: &Compiled,
    requests: usize,
    options: RunOptions,
) -> Result<(), RunFailure> {
    let units = requests * if p.page == 0 { 24 } else { 6 } + 3;
    let rows = units * p.page.max(1) as usize;
    let a = random_batch(&mut SplitMix64::new(options.seed), p, requests, units);
    let format: &[(usize, usize)] =
        [&[(96, 100)][..], &[(33, 33), (7, 8)]][options.seed as usize % 2];
    let [mut got, mut want] = [(); 2].map(|()| {
        let random = &mut SplitMix64::new(options.seed);
        LayerMemory::new(random, format, rows, 5, 1, 4 * requests)
    });
    let segments = got.layouts();
    let scalars = tiling(p, a.launch(units, options.cores, &segments));
    run_in_rust(KernelName::Append, p, &launch("", options, &a, &mut want, &scalars));
    let name = kernels.name("avsg_append");
    launch(&name, options, &a, &mut got, &scalars).run(&kernels.kernels)?;
    let same = got.segments.iter().zip(&want.segments).all(|(got, want)| got.chunks == want.chunks);
    if same { Ok(()) } else { Err(differs("the host pool")) }
}

/// Runs reset, and returns whether every word of the tables is right.
fn resets(p: &Params, kernels: &Compiled, states: usize, options: RunOptions) -> bool {
    let words = table_words(p);
    let mut tables = vec![0x5A5A_5A5A; words * states];
    let mut expected = tables.clone();
    expected.chunks_exact_mut(words).for_each(|table| clear_state(p, table));
    let segments = LayerMemory::new(&mut SplitMix64::new(1), &[(8, 8)], 1, 0, 1, 1).layouts();
    let (k, state, cu_q) = (p.k as usize, vec![0; states], vec![0]);
    let b = Batch { k, ids_stride: k, state, cu_q, ..Batch::default() };
    let scalars = tiling(p, b.launch(0, 1, &segments));
    let name = kernels.name("avsg_reset");
    let run = shim_launch(&name, options).device(&mut tables).raw(std::ptr::null_mut());
    run.input(&scalars).run(&kernels.kernels).is_ok() && tables == expected
}

/// Appends write the rows that have a pool row and nothing else, and resets write empty tables. Without any single barrier
/// or flag, some run breaks a rule or gives other bytes.
#[test]
fn appends_and_resets_are_exact_and_every_barrier_and_flag_is_needed() {
    let (p, paged, mode) = (small_geometry(0), small_geometry(16), Mode::Adversarial);
    let [text, paged_text] = [&p, &paged].map(|p| kernel(p, "avsg_append").text);
    let append = Mutants::new(&paged_text, "// ---- copies", &SYNC_CALLS);
    let reset = kernel(&p, "avsg_reset").text;
    let reset = Mutants::new(&reset, "constexpr int32_t PARTS", &SYNC_CALLS);
    // Without a number, no statement of the paged append is left out.
    let texts = [text, append.text.clone(), reset.text.clone()];
    let Some(compiled) = compile_all(&texts) else { return };
    for (p, kernels) in [&p, &paged].into_iter().zip(&compiled) {
        for (seed, requests) in [(1, 1), (2, 5), (3, 40), (4, 200), (5, 300), (6, 0)] {
            for cores in [1, 2, 20, 40] {
                for mode in EVERY_ORDER {
                    let options = RunOptions { cores, mode, seed };
                    let result = check_append(p, kernels, requests, options);
                    assert!(result.is_ok(), "{p}, {requests} requests, {options:?}: {result:?}");
                }
            }
        }
    }
    append.assert_each_fails(&compiled[1], |kernels| {
        (0..12).any(|seed| {
            let options = RunOptions { cores: 1 + seed as u32 % 2, mode, seed };
            check_append(&paged, kernels, 300, options).is_err()
        })
    });
    reset.assert_each_fails(&compiled[2], |kernels| {
        (0..4).any(|seed| !resets(&p, kernels, 3, RunOptions { cores: 1, mode, seed }))
    });
}
