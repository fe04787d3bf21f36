//! The emitted Stage Two, run on the shim and compared with plain copies.

use std::ptr::null_mut;

use super::compiled::{AllTexts, Compiled};
use super::harness::{
    EVERY_ORDER, RunOptions, differs, kernel, launch, shim_launch, small_geometry,
};
use super::layer_memory::{LayerMemory, Places, SplitMix64, kv_offset, tiling};
use super::mutants::{Mutants, SYNC_CALLS};
use super::shim::{Failure, Mode};
use avsg_device::params::Params;

/// Miss lists of a batch as Stage One writes them, and the copies that they stand for.
struct Misses {
    cu_q: Vec<i32>,
    state: Vec<i32>,
    slot: Vec<i32>,
    row: Vec<i32>,
    record: Vec<i32>,
    /// State, slot, and host row (`Ok`) or fresh row of the batch (`Err`) of each copy.
    copies: Vec<(usize, usize, Result<usize, usize>)>,
}

/// Returns random miss lists, with `share` percent of the selected ids.
fn random_misses(
    random: &mut SplitMix64,
    p: &Params,
    requests: usize,
    pool_rows: usize,
    share: usize,
) -> Misses {
    let (k, slots) = (p.k as usize, p.slots as usize);
    let mut m = Misses {
        cu_q: vec![0],
        state: vec![],
        slot: vec![],
        row: vec![],
        record: vec![],
        copies: vec![],
    };
    for request in 0..requests {
        let (first, tokens) = (m.cu_q[request] as usize, random.below(p.tokens as usize + 1));
        let padded = random.below(5) == 0;
        m.cu_q.push((first + tokens) as i32);
        // The states are permuted, so that a copy to the state of another request is noticed.
        m.state.push(if padded { -1 } else { (requests - 1 - request) as i32 });
        let mut free: Vec<_> = (0..slots).collect();
        let n =
            if padded { 0 } else { (0..tokens * k).filter(|_| random.below(100) < share).count() };
        for i in 0..tokens * k {
            let slot = free.swap_remove(random.below(free.len()));
            let fresh = random.below(8) == 0;
            let (row, source) = if fresh {
                let g = random.below(tokens);
                (-1 - g as i32, Err(first + g))
            } else {
                let row = random.below(pool_rows);
                (row as i32, Ok(row))
            };
            if i < n {
                m.copies.push((requests - 1 - request, slot, source));
            }
            // The entries after the list are invalid and must not be copied.
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
    layer: &mut LayerMemory,
    (m, places): (&Misses, &Places),
    copy_cores: u32,
    options: RunOptions,
) -> Result<u32, Failure> {
    let mut expected: Vec<_> = layer.segments.iter().map(|segment| segment.kv.clone()).collect();
    for &(state, slot, source) in &m.copies {
        let Some(index) = places.index(p, state, slot) else { continue };
        for (s, segment) in layer.segments.iter().enumerate() {
            let n = segment.layout.bytes as usize;
            let to = kv_offset(index, segment.layout.kv_stride);
            let from = match source {
                Ok(row) => layer.host_row(s, row),
                Err(row) => &segment.fresh[row * segment.layout.fresh_stride as usize..][..n],
            };
            expected[s][to..to + n].copy_from_slice(from);
        }
    }
    let segments = layer.layouts();
    let scalars = tiling(p, places.scalars(launch(m.state.len(), copy_cores, &segments)));
    let name = kernels.name("avsg_transfer");
    let run = shim_launch(&name, options).input(&m.cu_q).input(&m.state).input(&m.slot);
    let run = layer.pass(run.input(&m.row).input(&m.record), places);
    let peak = run.raw(null_mut()).input(&scalars).run(&kernels.kernels)?;
    let same =
        layer.segments.iter().zip(&expected).all(|(segment, expected)| segment.kv == *expected);
    if same { Ok(peak) } else { Err(differs("the device buffer")) }
}

/// Geometries with different lists of blocks.
fn geometries() -> [Params; 2] {
    [256, 4096].map(|slots| Params { slots, ..small_geometry(0) })
}

fn mutants() -> Mutants {
    let text = kernel(&small_geometry(0), "avsg_transfer").text;
    Mutants::new(&text, "// ---- copies", &SYNC_CALLS)
}

/// Returns the compiled kernels of a text of this file.
fn compiled(text: &str) -> Option<&'static Compiled> {
    static ALL: AllTexts = AllTexts::new();
    ALL.compiled(text, || {
        let texts = geometries().map(|p| kernel(&p, "avsg_transfer").text);
        [&texts[..], &[mutants().text]].concat()
    })
}

#[test]
fn transfer_copies_exactly_the_missed_rows() {
    let p = small_geometry(0);
    let Some(kernels) = compiled(&kernel(&p, "avsg_transfer").text) else { return };
    let in_a_row = Places::default();
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
            let mut random = SplitMix64((i * 4 + j) as u64);
            let (requests, rows) = ([1, 3, 9, 17][(i + j) % 4], 700);
            let m = random_misses(&mut random, &p, requests, rows, [100, 10, 3, 50][i % 4]);
            let slots = requests * p.slots as usize;
            for mode in EVERY_ORDER {
                let mut layer = LayerMemory::new(&mut random, format, rows, 7, slots, 4 * requests);
                let options = RunOptions { cores, mode, seed: random.below(1 << 20) as u64 };
                let result =
                    check_transfer(&p, kernels, &mut layer, (&m, &in_a_row), cores, options);
                assert!(result.is_ok(), "{format:?} on {cores} cores, {mode:?}: {result:?}");
            }
        }
    }
}

#[test]
fn transfer_handles_more_requests_than_a_window_and_any_number_of_copying_cores() {
    let p = small_geometry(0);
    let Some(kernels) = compiled(&kernel(&p, "avsg_transfer").text) else { return };
    let in_a_row = Places::default();
    for (requests, share, cores, copy_cores) in [
        (300, 4, 3, 3),
        (129, 1, 20, 7),
        (300, 60, 40, 40),
        (128, 0, 5, 5),
        (0, 0, 2, 2),
        (40, 9, 4, 64),
    ] {
        let mut random = SplitMix64(requests as u64);
        let m = random_misses(&mut random, &p, requests, 500, share);
        let slots = requests.max(1) * p.slots as usize;
        for mode in EVERY_ORDER {
            let mut layer = LayerMemory::new(&mut random, &[(40, 41)], 500, 6, slots, 4 * requests);
            let result = check_transfer(
                &p,
                kernels,
                &mut layer,
                (&m, &in_a_row),
                copy_cores,
                RunOptions { cores, mode, seed: 5 },
            );
            assert!(result.is_ok(), "{requests} requests: {result:?}");
        }
    }
}

#[test]
fn a_million_rows_and_rows_of_half_the_buffer_are_copied() {
    let p = small_geometry(0);
    let Some(kernels) = compiled(&kernel(&p, "avsg_transfer").text) else { return };
    let in_a_row = Places::default();
    let mut random = SplitMix64(9);
    let m = random_misses(&mut random, &p, 2, 1 << 20, 80);
    let mut layer = LayerMemory::new(&mut random, &[(7, 7)], 1 << 20, 17, 512, 8);
    check_transfer(
        &p,
        kernels,
        &mut layer,
        (&m, &in_a_row),
        2,
        RunOptions { cores: 2, mode: Mode::Adversarial, seed: 1 },
    )
    .expect("a million rows");
    let m = random_misses(&mut random, &p, 1, 40, 30);
    let mut layer =
        LayerMemory::new(&mut random, &[(57_712, 57_728), (7_808, 7_808)], 40, 3, 256, 4);
    let peak = check_transfer(
        &p,
        kernels,
        &mut layer,
        (&m, &in_a_row),
        1,
        RunOptions { cores: 1, mode: Mode::Adversarial, seed: 1 },
    )
    .expect("large rows");
    let plan = kernel(&p, "avsg_transfer").ub_bytes;
    assert_eq!(peak, plan, "rows of half the buffer must use all planned bytes");
}

/// Blocks of eight slots in any order: 32 per state, so that a list has room for the entries of 16
/// runs, and 512, which leave room for one run. Rows whose block is not in the buffer are left out.
#[test]
fn rows_are_copied_to_the_blocks_of_a_table() {
    for (i, p) in geometries().into_iter().enumerate() {
        let Some(kernels) = compiled(&kernel(&p, "avsg_transfer").text) else { return };
        for (j, cores) in [1, 3, 40].into_iter().enumerate() {
            let mut random = SplitMix64((i * 3 + j) as u64);
            let (requests, share) = ([130, 5, 40][j], [2, 60, 9][j]);
            let m = random_misses(&mut random, &p, requests, 300, share);
            let places = Places::random(&mut random, &p, requests, 9);
            assert!(m.copies.iter().any(|&(t, s, _)| places.index(&p, t, s).is_none()));
            let room = places.slots(&p, requests);
            for mode in EVERY_ORDER {
                let format = [(24, 24), (5, 8)];
                let mut layer = LayerMemory::new(&mut random, &format, 300, 6, room, 4 * requests);
                let options = RunOptions { cores, mode, seed: 8 };
                let result = check_transfer(&p, kernels, &mut layer, (&m, &places), cores, options);
                assert!(result.is_ok(), "{p} on {cores} cores, {mode:?}: {result:?}");
            }
        }
    }
}

/// Without any single barrier or flag, some run breaks a rule or gives other bytes.
#[test]
fn every_barrier_and_flag_is_needed() {
    let p = small_geometry(0);
    let mutants = mutants();
    let Some(kernels) = compiled(&mutants.text) else { return };
    mutants.assert_each_fails(kernels, |kernels| {
        (0..12).any(|seed| {
            let mut random = SplitMix64(seed);
            let (requests, share) = [(300, 3), (6, 90)][seed as usize % 2];
            let m = random_misses(&mut random, &p, requests, 200, share);
            let places = match seed % 4 {
                0 | 1 => Places::default(),
                _ => Places::random(&mut random, &p, requests, 3),
            };
            let slots = places.slots(&p, requests);
            let mut layer = LayerMemory::new(&mut random, &[(40, 41)], 200, 6, slots, 4 * requests);
            let options =
                RunOptions { cores: 1 + seed as u32 / 2 % 2, mode: Mode::Adversarial, seed };
            let batch = (&m, &places);
            check_transfer(&p, kernels, &mut layer, batch, options.cores, options).is_err()
        })
    });
}
