//! The emitted Stage Two, executed by the shim and compared with plain copies.

use super::mutants::{self, CALLS};
use super::pool::{Layer, Lot, tiling, with_chunks};
use super::shim::{Failure, Mode, gxx};
use super::stand::{EVERY_ORDER, How, differs, kernel, launch, run, small};
use super::together::Compiled;
use avsg_device::params::Params;

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

/// Runs Stage Two and compares every byte of the device buffer.
fn check_transfer(
    p: &Params,
    kernels: &Compiled,
    layer: &mut Layer,
    m: &Misses,
    copy_cores: u32,
    how: How,
) -> Result<u32, Failure> {
    let mut expected: Vec<_> = layer.lanes.iter().map(|lane| lane.kv.clone()).collect();
    for &(state, slot, source) in &m.moves {
        for (s, lane) in layer.lanes.iter().enumerate() {
            let n = lane.segment.bytes as usize;
            let to = (state * p.slots as usize + slot) * lane.segment.kv_stride as usize;
            let from = match source {
                Ok(row) => layer.host(s, row),
                Err(row) => &lane.fresh[row * lane.segment.fresh_stride as usize..][..n],
            };
            expected[s][to..to + n].copy_from_slice(from);
        }
    }
    let segments = layer.segments();
    let scalars = tiling(p, launch(m.state.len(), copy_cores, &segments));
    let run = run("avsg_transfer", how).input(&m.cu_q).input(&m.state).input(&m.slot);
    let mut run = run.input(&m.row).input(&m.record).input(&layer.pointers);
    let null = std::ptr::null_mut();
    let lanes = layer.lanes.len();
    let (mut fresh, mut chunks) = (vec![], vec![]);
    for lane in &mut layer.lanes {
        run = run.device(&mut lane.kv);
        fresh.push(&lane.fresh);
        chunks.extend(&mut lane.chunks);
    }
    // A second segment that is not there is null.
    run = if lanes == 1 { run.raw(null) } else { run };
    run = fresh.into_iter().fold(run, |run, fresh| run.input(fresh));
    run = if lanes == 1 { run.raw(null) } else { run };
    let peak =
        with_chunks(run.raw(null).input(&scalars), chunks.into_iter()).run(&kernels.kernels)?;
    let same = layer.lanes.iter().zip(&expected).all(|(lane, expected)| lane.kv == *expected);
    if same { Ok(peak) } else { Err(differs("the device buffer")) }
}

#[test]
fn transfer_copies_every_miss_and_nothing_else() {
    let p = small(0);
    if !gxx() {
        return;
    }
    let kernels = Compiled::alone(&kernel(&p, "avsg_transfer").text);
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
                let mut layer = Layer::new(&mut lot, format, rows, 7, slots, 4 * requests);
                let how = How { cores, mode, seed: lot.below(1 << 20) as u64 };
                let done = check_transfer(&p, &kernels, &mut layer, &m, cores, how);
                assert!(done.is_ok(), "{format:?} on {cores} cores, {mode:?}: {done:?}");
            }
        }
    }
}

#[test]
fn transfer_takes_more_requests_than_one_window_and_fewer_copying_cores() {
    let p = small(0);
    if !gxx() {
        return;
    }
    let kernels = Compiled::alone(&kernel(&p, "avsg_transfer").text);
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
        for mode in EVERY_ORDER {
            let mut layer = Layer::new(&mut lot, &[(40, 41)], 500, 6, slots, 4 * requests);
            let done = check_transfer(
                &p,
                &kernels,
                &mut layer,
                &m,
                copy_cores,
                How { cores, mode, seed: 5 },
            );
            assert!(done.is_ok(), "{requests} requests: {done:?}");
        }
    }
}

#[test]
fn a_million_rows_and_rows_as_large_as_a_half() {
    let p = small(0);
    if !gxx() {
        return;
    }
    let kernels = Compiled::alone(&kernel(&p, "avsg_transfer").text);
    let mut lot = Lot(9);
    let m = misses(&mut lot, &p, 2, 1 << 20, 80);
    let mut layer = Layer::new(&mut lot, &[(7, 7)], 1 << 20, 17, 512, 8);
    check_transfer(
        &p,
        &kernels,
        &mut layer,
        &m,
        2,
        How { cores: 2, mode: Mode::Adversarial, seed: 1 },
    )
    .expect("a million rows");
    let m = misses(&mut lot, &p, 1, 40, 30);
    let mut layer = Layer::new(&mut lot, &[(57_712, 57_728), (7_808, 7_808)], 40, 3, 256, 4);
    let peak = check_transfer(
        &p,
        &kernels,
        &mut layer,
        &m,
        1,
        How { cores: 1, mode: Mode::Adversarial, seed: 1 },
    )
    .expect("large rows");
    let plan = kernel(&p, "avsg_transfer").ub_bytes;
    assert_eq!(peak, plan, "rows as large as a half touch all that is planned");
}

/// Every barrier and flag is needed: without it some run breaks a rule or gives other bytes.
#[test]
fn every_flag_is_needed() {
    if !gxx() {
        return;
    }
    let p = small(0);
    mutants::every_one_dies(
        &kernel(&p, "avsg_transfer").text,
        "// ---- copies",
        &CALLS,
        |kernels| {
            (0..12).any(|seed| {
                let mut lot = Lot(seed);
                let (requests, share) = [(300, 3), (6, 90)][seed as usize % 2];
                let m = misses(&mut lot, &p, requests, 200, share);
                let slots = requests * p.slots as usize;
                let mut layer = Layer::new(&mut lot, &[(40, 41)], 200, 6, slots, 4 * requests);
                let how = How { cores: 1 + seed as u32 / 2 % 2, mode: Mode::Adversarial, seed };
                check_transfer(&p, kernels, &mut layer, &m, how.cores, how).is_err()
            })
        },
    );
}
