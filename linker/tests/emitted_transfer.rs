//! The emitted Stage Two, append and reset, executed by the shim and compared with plain copies.

#[path = "emitted/mutants.rs"]
mod mutants;
#[path = "emitted/pool.rs"]
mod pool;
#[path = "emitted/run.rs"]
mod run;

use avsg_device::machine::memory::clear_state;
use avsg_device::params::Params;
use avsg_device::tiling::Launch;
use avsg_linker::write::StageOneText;
use avsg_linker::write::kernels::{Abi, kernels, table_words};
use pool::{Layer, Lot};
use run::{Array, How, Kind, Library};

/// Few slots: every slot is soon in some miss list.
fn small(page: u32) -> Params {
    Params { page, ..Params::wide(64, 4, 256) }
}

/// A kernel that needs no Stage One.
fn text(p: &Params, name: &str) -> String {
    let all = kernels(p, &StageOneText::default(), Abi::Direct).expect("they fit");
    all.into_iter().find(|k| k.name == name).expect("a kernel of that name").text
}

fn launch<'a>(
    requests: usize,
    copy_cores: u32,
    segments: &'a [avsg_device::tiling::Segment],
) -> Launch<'a> {
    Launch {
        requests: requests as u32,
        rows: 4 * requests as u32,
        k: 64,
        ids_stride: 64,
        block_stride: 0,
        pool_units: 0,
        states: requests as u32,
        copy_cores,
        segments,
    }
}

/// Miss lists of a batch as Stage One leaves them, and the copies that they mean.
struct Misses {
    cu_q: Vec<i32>,
    state: Vec<i32>,
    slot: Vec<i32>,
    row: Vec<i32>,
    record: Vec<i32>,
    /// (state, slot, host row or fresh row of the batch)
    moves: Vec<(usize, usize, Result<usize, usize>)>,
}

/// Of `share` percent of the selected ids.
fn misses(lot: &mut Lot, p: &Params, requests: usize, pool_rows: usize, share: usize) -> Misses {
    let (k, slots) = (p.k as usize, p.slots as usize);
    let mut m = Misses {
        cu_q: vec![0],
        state: vec![],
        slot: vec![],
        row: vec![],
        record: vec![],
        moves: vec![],
    };
    for request in 0..requests {
        let (first, tokens) = (m.cu_q[request] as usize, lot.below(p.tokens as usize + 1));
        let padded = lot.below(5) == 0;
        m.cu_q.push((first + tokens) as i32);
        // States are a permutation, so that one taken for another shows.
        m.state.push(if padded { -1 } else { (requests - 1 - request) as i32 });
        let mut free: Vec<_> = (0..slots).collect();
        let n = if padded { 0 } else { (0..tokens * k).filter(|_| lot.below(100) < share).count() };
        for i in 0..tokens * k {
            let slot = free.swap_remove(lot.below(free.len()));
            let fresh = lot.below(8) == 0;
            let (row, source) = if fresh {
                let g = lot.below(tokens);
                (-1 - g as i32, Err(first + g))
            } else {
                let row = lot.below(pool_rows);
                (row as i32, Ok(row))
            };
            if i < n {
                m.moves.push((requests - 1 - request, slot, source));
            }
            // Behind the list lies what must not be copied.
            m.slot.push(if i < n { slot as i32 } else { i32::MAX });
            m.row.push(if i < n { row } else { i32::MAX });
        }
        let mut record = [-7; 16];
        record[8] = n as i32;
        m.record.extend(record);
    }
    m
}

struct Transfer<'a> {
    p: &'a Params,
    library: &'a Library,
}

impl Transfer<'_> {
    /// Runs it and compares every byte of the device buffer.
    fn check(&self, layer: &Layer, m: &Misses, copy_cores: u32, how: How) -> Result<u32, String> {
        let (p, requests) = (self.p, m.state.len());
        let segments = layer.segments();
        let tiling = layer.tiling(p, launch(requests, copy_cores, &segments));
        let ints = |from: &[i32]| Array::ints(from, Kind::ReadOnly);
        let (cu_q, state, slot) = (ints(&m.cu_q), ints(&m.state), ints(&m.slot));
        let (row, record) = (ints(&m.row), ints(&m.record));
        let mut expected: Vec<_> = layer.lanes.iter().map(|l| l.kv.as_bytes().to_vec()).collect();
        for &(state, slot, source) in &m.moves {
            for (s, lane) in layer.lanes.iter().enumerate() {
                let n = lane.segment.bytes as usize;
                let to = (state * p.slots as usize + slot) * lane.segment.kv_stride as usize;
                let from = match source {
                    Ok(row) => layer.host(s, row),
                    Err(row) => {
                        &lane.fresh.as_bytes()[row * lane.segment.fresh_stride as usize..][..n]
                    }
                };
                expected[s][to..to + n].copy_from_slice(from);
            }
        }
        let args = [
            Some(&cu_q),
            Some(&state),
            Some(&slot),
            Some(&row),
            Some(&record),
            Some(&layer.pointers),
            Some(layer.kv(0)),
            Some(layer.kv(1)),
            Some(layer.fresh(0)),
            Some(layer.fresh(1)),
            None,
            Some(&tiling),
        ];
        // One segment stands for both: it is one region.
        let mut args = args;
        if layer.lanes.len() == 1 {
            (args[7], args[9]) = (None, None);
        }
        let peak = self.library.run("avsg_transfer", &args, &layer.chunks(), how)?;
        for (lane, expected) in layer.lanes.iter().zip(&expected) {
            if lane.kv.as_bytes() != expected {
                return Err("the device buffer differs".into());
            }
        }
        Ok(peak)
    }
}

const EVERY_ORDER: [u32; 3] = [0, 1, 2];

#[test]
fn transfer_copies_every_miss_and_nothing_else() {
    let p = small(0);
    let Some(library) = Library::compile("transfer", &text(&p, "avsg_transfer")) else { return };
    let run = Transfer { p: &p, library: &library };
    let formats: [&[(usize, usize)]; 6] = [
        &[(656, 656)],
        &[(1152, 1152)],
        &[(1024, 1024), (128, 128)],
        &[(584, 640)],
        &[(7, 7)],
        &[(33, 50), (7, 9)],
    ];
    for (i, format) in formats.into_iter().enumerate() {
        for (j, cores) in [1, 2, 20, 40].into_iter().enumerate() {
            let mut lot = Lot((i * 4 + j) as u64);
            let (requests, rows) = ([1, 3, 9, 17][(i + j) % 4], 700);
            let m = misses(&mut lot, &p, requests, rows, [100, 10, 3, 50][i % 4]);
            let slots = requests * p.slots as usize;
            for mode in EVERY_ORDER {
                let layer = Layer::new(&mut lot, format, rows, 7, slots, 4 * requests);
                let how = How { cores, mode, seed: lot.below(1 << 20) as u64 };
                let done = run.check(&layer, &m, cores, how);
                assert!(done.is_ok(), "{format:?} on {cores} cores, order {mode}: {done:?}");
            }
        }
    }
}

#[test]
fn transfer_takes_more_requests_than_one_window_and_fewer_copying_cores() {
    let p = small(0);
    let Some(library) = Library::compile("transfer_many", &text(&p, "avsg_transfer")) else {
        return;
    };
    let run = Transfer { p: &p, library: &library };
    for (requests, share, cores, copy_cores) in [
        (300, 4, 3, 3),
        (129, 1, 20, 7),
        (300, 60, 40, 40),
        (128, 0, 5, 5),
        (0, 0, 2, 2),
        (40, 9, 4, 64),
    ] {
        let mut lot = Lot(requests as u64);
        let m = misses(&mut lot, &p, requests, 500, share);
        let slots = requests.max(1) * p.slots as usize;
        let layer = Layer::new(&mut lot, &[(40, 41)], 500, 6, slots, 4 * requests);
        for mode in EVERY_ORDER {
            let done = run.check(&layer, &m, copy_cores, How { cores, mode, seed: 5 });
            assert!(done.is_ok(), "{requests} requests: {done:?}");
        }
    }
}

#[test]
fn a_million_rows_and_rows_as_large_as_a_half() {
    let p = small(0);
    let Some(library) = Library::compile("transfer_large", &text(&p, "avsg_transfer")) else {
        return;
    };
    let run = Transfer { p: &p, library: &library };
    let mut lot = Lot(9);
    let m = misses(&mut lot, &p, 2, 1 << 20, 80);
    let layer = Layer::new(&mut lot, &[(7, 7)], 1 << 20, 17, 512, 8);
    run.check(&layer, &m, 2, How { cores: 2, mode: 1, seed: 1 }).expect("a million rows");
    let m = misses(&mut lot, &p, 1, 40, 30);
    let layer = Layer::new(&mut lot, &[(70_000, 70_016), (7_808, 7_808)], 40, 3, 256, 4);
    let peak = run.check(&layer, &m, 1, How { cores: 1, mode: 1, seed: 1 }).expect("large rows");
    let plan = kernels(&p, &StageOneText::default(), Abi::Direct).expect("they fit");
    let plan = plan.iter().find(|k| k.name == "avsg_transfer").expect("it is there").ub_bytes;
    assert_eq!(peak, plan, "rows as large as a half touch all that is planned");
}

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
    library: &Library,
    seed: u64,
    requests: usize,
    how: How,
) -> Result<(), String> {
    let mut lot = Lot(seed);
    let page = p.page.max(1) as usize;
    let units = requests * if p.page == 0 { 24 } else { 6 } + 3;
    let a = arrivals(&mut lot, p, requests, units);
    let format: &[(usize, usize)] = [&[(96, 100)][..], &[(33, 33), (7, 8)]][seed as usize % 2];
    let layer = Layer::new(&mut lot, format, units * page, 5, 1, 4 * requests);
    let segments = layer.segments();
    let tiling = layer.tiling(
        p,
        Launch {
            block_stride: a.block_stride as u32,
            pool_units: units as u32,
            ..launch(requests, how.cores, &segments)
        },
    );
    let mut expected: Vec<Vec<Vec<u8>>> = vec![];
    for lane in &layer.lanes {
        expected.push(lane.chunks.iter().map(|c| c.as_bytes().to_vec()).collect());
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
                let from = &lane.fresh.as_bytes()[row as usize * t.fresh_stride as usize..];
                expected[s][place >> t.chunk_shift][within * t.host_stride as usize..]
                    [..t.bytes as usize]
                    .copy_from_slice(&from[..t.bytes as usize]);
            }
        }
    }
    let ints = |from: &[i32]| Array::ints(from, Kind::ReadOnly);
    let (cu_q, state, stable) = (ints(&a.cu_q), ints(&a.state), ints(&a.stable));
    let (seq, blocks) = (ints(&a.seq), ints(&a.blocks));
    let second = (layer.lanes.len() == 2).then(|| layer.fresh(1));
    let args = [
        Some(&cu_q),
        Some(&state),
        Some(&stable),
        Some(&seq),
        (p.page > 0).then_some(&blocks),
        Some(&layer.pointers),
        Some(layer.fresh(0)),
        second,
        None,
        Some(&tiling),
    ];
    library.run("avsg_append", &args, &layer.chunks(), how)?;
    for (lane, expected) in layer.lanes.iter().zip(&expected) {
        for (chunk, expected) in lane.chunks.iter().zip(expected) {
            if chunk.as_bytes() != expected {
                return Err("the host pool differs".into());
            }
        }
    }
    Ok(())
}

#[test]
fn append_writes_the_rows_that_have_a_place_and_no_others() {
    for page in [0, 16] {
        let p = small(page);
        let name = format!("append_{page}");
        let Some(library) = Library::compile(&name, &text(&p, "avsg_append")) else { return };
        for (seed, requests) in [(1, 1), (2, 5), (3, 40), (4, 200), (5, 300), (6, 0)] {
            for cores in [1, 2, 20, 40] {
                for mode in EVERY_ORDER {
                    let how = How { cores, mode, seed };
                    let done = check_append(&p, &library, seed, requests, how);
                    assert!(
                        done.is_ok(),
                        "page {page}, {requests} requests, {cores} cores: {done:?}"
                    );
                }
            }
        }
    }
}

fn check_reset(p: &Params, library: &Library, states: usize, how: How) -> Result<(), String> {
    let words = table_words(p);
    let mut expected = vec![0x5A5A_5A5A; words * states];
    let tables = Array::ints(&expected, Kind::Device);
    for table in expected.chunks_exact_mut(words) {
        clear_state(p, table);
    }
    let layer = Layer::new(&mut Lot(1), &[(8, 8)], 1, 0, 1, 1);
    let segments = layer.segments();
    let tiling = layer.tiling(
        p,
        Launch { states: states as u32, k: p.k, ids_stride: p.k, ..launch(1, 1, &segments) },
    );
    library.run("avsg_reset", &[Some(&tables), None, Some(&tiling)], &[], how)?;
    if tables.to_ints() == expected { Ok(()) } else { Err("the tables differ".into()) }
}

#[test]
fn reset_writes_what_the_cpu_calls_an_empty_table() {
    let large = Params { spread: 2, retries: 7, ..Params::wide(2048, 1, 8192) };
    let least = Params::wide(16, 1, 64);
    for (i, p) in [least, small(0), large, Params::paper(64, 1, 256)].iter().enumerate() {
        let name = format!("reset_{i}");
        let Some(library) = Library::compile(&name, &text(p, "avsg_reset")) else { return };
        for (states, cores) in [(1, 1), (1, 40), (3, 2), (7, 20), (50, 40)] {
            for mode in EVERY_ORDER {
                let done = check_reset(p, &library, states, How { cores, mode, seed: 3 });
                assert!(done.is_ok(), "{states} states on {cores} cores: {done:?}");
            }
        }
    }
}

/// Every barrier and flag is needed: without it some run breaks a rule or gives other bytes.
#[test]
fn every_flag_is_needed() {
    let p = small(0);
    mutants::every_one_dies("transfer", &text(&p, "avsg_transfer"), |library| {
        let run = Transfer { p: &p, library };
        (0..12).any(|seed| {
            let mut lot = Lot(seed);
            let requests = if seed % 3 == 0 { 300 } else { 6 };
            let m = misses(&mut lot, &p, requests, 200, if seed % 3 == 0 { 3 } else { 90 });
            let slots = requests * p.slots as usize;
            let layer = Layer::new(&mut lot, &[(40, 41)], 200, 6, slots, 4 * requests);
            let cores = 1 + seed as u32 % 2;
            run.check(&layer, &m, cores, How { cores, mode: 1, seed }).is_err()
        })
    });
    let paged = small(16);
    mutants::every_one_dies("append", &text(&paged, "avsg_append"), |library| {
        (0..12).any(|seed| {
            let how = How { cores: 1 + seed as u32 % 2, mode: 1, seed };
            check_append(&paged, library, seed, 300, how).is_err()
        })
    });
    mutants::every_one_dies("reset", &text(&p, "avsg_reset"), |library| {
        (0..4).any(|seed| check_reset(&p, library, 3, How { cores: 1, mode: 1, seed }).is_err())
    });
}
