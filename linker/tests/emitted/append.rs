//! The emitted append and reset, executed by the shim and compared with plain stores.

use super::mutants::{self, CALLS};
use super::pool::{Layer, Lot, tiling, with_chunks};
use super::shim::{Failure, Mode, gxx};
use super::stand::{EVERY_ORDER, How, differs, kernel, launch, run, small};
use super::together::{Compiled, compile_all};
use avsg_device::memory::clear_state;
use avsg_device::memory::table_words;
use avsg_device::params::Params;
use avsg_device::tiling::Launch;

/// Batches for append: lengths and blocks around every limit.
struct Arrivals {
    cu_q: Vec<i32>,
    state: Vec<i32>,
    stable: Vec<i32>,
    seq: Vec<i32>,
    blocks: Vec<i32>,
    block_stride: usize,
}

fn arrivals(lot: &mut Lot, p: &Params, requests: usize, units: usize) -> Arrivals {
    let page = p.page as usize;
    let mut a = Arrivals {
        cu_q: vec![0],
        state: vec![],
        stable: vec![],
        seq: vec![],
        blocks: vec![],
        block_stride: if page == 0 { 0 } else { 5 },
    };
    // Rows of different requests must not meet: each has ids, or blocks, of its own.
    let own = if page == 0 { units / requests.max(1) } else { units / requests.max(1) * page };
    let mut free: Vec<_> = (0..units as i32).collect();
    for request in 0..requests {
        let tokens = lot.below(p.tokens as usize + 1);
        a.cu_q.push(a.cu_q[request] + tokens as i32);
        a.state.push(if lot.below(6) == 0 { -1 } else { request as i32 });
        let from = if page == 0 { request * own } else { 0 };
        // Now and then past the last entry, or past the pool.
        let stable =
            from + lot.below(own.max(4) - 3) + if lot.below(9) == 0 { own + units } else { 0 };
        a.stable.push(if lot.below(6) == 0 { -1 } else { stable as i32 });
        a.seq.push((stable + tokens - lot.below(2) * lot.below(tokens + 1)) as i32);
        for _ in 0..a.block_stride {
            let block = free.swap_remove(lot.below(free.len()));
            a.blocks.push(if lot.below(7) == 0 { [-1, units as i32][lot.below(2)] } else { block });
        }
    }
    a
}

fn check_append(
    p: &Params,
    kernels: &Compiled,
    seed: u64,
    requests: usize,
    how: How,
) -> Result<(), Failure> {
    let mut lot = Lot(seed);
    let page = p.page.max(1) as usize;
    let units = requests * if p.page == 0 { 24 } else { 6 } + 3;
    let a = arrivals(&mut lot, p, requests, units);
    let format: &[(usize, usize)] = [&[(96, 100)][..], &[(33, 33), (7, 8)]][seed as usize % 2];
    let mut layer = Layer::new(&mut lot, format, units * page, 5, 1, 4 * requests);
    let segments = layer.segments();
    let scalars = tiling(
        p,
        Launch {
            block_stride: a.block_stride as u32,
            pool_units: units as u32,
            ..launch(requests, how.cores, &segments)
        },
    );
    let mut expected: Vec<Vec<Vec<u8>>> = vec![];
    for lane in &layer.lanes {
        expected.push(lane.chunks.clone());
    }
    for request in 0..requests {
        for row in a.cu_q[request]..a.cu_q[request + 1] {
            let (stable, first) = (a.stable[request], a.cu_q[request]);
            let id = (stable + row - first) as usize;
            if a.state[request] < 0 || stable < 0 || id as i32 >= a.seq[request] {
                continue;
            }
            let place = if p.page == 0 {
                Some(id)
            } else {
                let entry =
                    (id / page < a.block_stride).then(|| request * a.block_stride + id / page);
                let block = entry.and_then(|at| usize::try_from(a.blocks[at]).ok());
                block.map(|block| block * page + id % page)
            };
            let Some(place) = place.filter(|&place| place < units * page) else { continue };
            for (s, lane) in layer.lanes.iter().enumerate() {
                let t = &lane.segment;
                let within = place & ((1 << t.chunk_shift) - 1);
                let from = &lane.fresh[row as usize * t.fresh_stride as usize..];
                expected[s][place >> t.chunk_shift][within * t.host_stride as usize..]
                    [..t.bytes as usize]
                    .copy_from_slice(&from[..t.bytes as usize]);
            }
        }
    }
    let name = kernels.name("avsg_append");
    let run = run(&name, how).input(&a.cu_q).input(&a.state).input(&a.stable).input(&a.seq);
    let null = std::ptr::null_mut();
    let run = if p.page == 0 { run.raw(null) } else { run.input(&a.blocks) };
    let mut run = run.input(&layer.pointers);
    let (mut chunks, lanes) = (vec![], layer.lanes.len());
    for lane in &mut layer.lanes {
        run = run.input(&lane.fresh);
        chunks.extend(&mut lane.chunks);
    }
    run = if lanes == 1 { run.raw(null) } else { run };
    with_chunks(run.raw(null).input(&scalars), chunks.into_iter()).run(&kernels.kernels)?;
    let same = layer.lanes.iter().zip(&expected).all(|(lane, expected)| lane.chunks == *expected);
    if same { Ok(()) } else { Err(differs("the host pool")) }
}

#[test]
fn append_writes_the_rows_that_have_a_place_and_no_others() {
    if !gxx() {
        return;
    }
    let pages = [0, 16];
    let texts = pages.map(|page| kernel(&small(page), "avsg_append").text);
    for (page, kernels) in pages.into_iter().zip(compile_all(&texts)) {
        let p = small(page);
        for (seed, requests) in [(1, 1), (2, 5), (3, 40), (4, 200), (5, 300), (6, 0)] {
            for cores in [1, 2, 20, 40] {
                for mode in EVERY_ORDER {
                    let how = How { cores, mode, seed };
                    let done = check_append(&p, &kernels, seed, requests, how);
                    assert!(
                        done.is_ok(),
                        "page {page}, {requests} requests, {cores} cores: {done:?}"
                    );
                }
            }
        }
    }
}

fn check_reset(p: &Params, kernels: &Compiled, states: usize, how: How) -> Result<(), Failure> {
    let words = table_words(p);
    let mut tables = vec![0x5A5A_5A5A; words * states];
    let mut expected = tables.clone();
    expected.chunks_exact_mut(words).for_each(|table| clear_state(p, table));
    let segments = Layer::new(&mut Lot(1), &[(8, 8)], 1, 0, 1, 1).segments();
    let sized =
        Launch { k: p.k, ids_stride: p.k, states: states as u32, ..launch(1, 1, &segments) };
    let scalars = tiling(p, sized);
    let null = std::ptr::null_mut();
    let name = kernels.name("avsg_reset");
    run(&name, how).device(&mut tables).raw(null).input(&scalars).run(&kernels.kernels)?;
    if tables == expected { Ok(()) } else { Err(differs("a table")) }
}

#[test]
fn reset_writes_what_the_cpu_calls_an_empty_table() {
    if !gxx() {
        return;
    }
    let large = Params { spread: 2, retries: 7, ..Params::wide(2048, 1, 8192) };
    let least = Params::wide(16, 1, 64);
    let geometries = [least, small(0), large, Params::paper(64, 1, 256)];
    let texts = geometries.map(|p| kernel(&p, "avsg_reset").text);
    for (p, kernels) in geometries.iter().zip(compile_all(&texts)) {
        for (states, cores) in [(1, 1), (1, 40), (3, 2), (7, 20), (50, 40)] {
            for mode in EVERY_ORDER {
                let done = check_reset(p, &kernels, states, How { cores, mode, seed: 3 });
                assert!(done.is_ok(), "{states} states on {cores} cores: {done:?}");
            }
        }
    }
}

/// Every barrier and flag is needed: without it some run breaks a rule or gives other bytes.
#[test]
fn every_flag_is_needed() {
    if !gxx() {
        return;
    }
    let (p, paged) = (small(0), small(16));
    let mode = Mode::Adversarial;
    mutants::every_one_dies(
        &kernel(&paged, "avsg_append").text,
        "// ---- copies",
        &CALLS,
        |kernels| {
            (0..12).any(|seed| {
                let how = How { cores: 1 + seed as u32 % 2, mode, seed };
                check_append(&paged, kernels, seed, 300, how).is_err()
            })
        },
    );
    mutants::every_one_dies(
        &kernel(&p, "avsg_reset").text,
        "constexpr int32_t PARTS",
        &CALLS,
        |kernels| {
            (0..4).any(|seed| check_reset(&p, kernels, 3, How { cores: 1, mode, seed }).is_err())
        },
    );
}
