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
#[derive(Default)]
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
    let mut m = Misses { cu_q: vec![0], ..Misses::default() };
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

/// A batch of random misses, and how it is copied.
#[derive(Clone, Copy, Debug)]
struct Case {
    p: Params,
    /// Bytes and stride of each segment.
    format: &'static [(usize, usize)],
    /// Rows of the pool, of which `1 << shift` are in a chunk.
    rows: usize,
    shift: u32,
    requests: usize,
    /// Percent of the selected ids that miss.
    share: usize,
    /// Whether slots are in the blocks of a table.
    table: bool,
    copy_cores: u32,
    options: RunOptions,
}

/// Runs Stage Two and compares every byte of the device buffer.
fn check_transfer(kernels: &Compiled, case: &Case) -> Result<u32, Failure> {
    let Case { p, requests, rows, .. } = *case;
    let mut random = SplitMix64(case.options.seed);
    let m = random_misses(&mut random, &p, requests, rows, case.share);
    let places = match case.table {
        true => Places::random(&mut random, &p, requests, 9),
        false => Places::default(),
    };
    let slots = places.slots(&p, requests.max(1));
    let mut layer =
        LayerMemory::new(&mut random, case.format, rows, case.shift, slots, 4 * requests);
    let mut expected: Vec<_> = layer.segments.iter().map(|segment| segment.kv.clone()).collect();
    for &(state, slot, source) in &m.copies {
        let Some(index) = places.index(&p, state, slot) else { continue };
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
    let scalars = tiling(&p, places.scalars(launch(requests, case.copy_cores, &segments)));
    let name = kernels.name("avsg_transfer");
    let run = shim_launch(&name, case.options).input(&m.cu_q).input(&m.state).input(&m.slot);
    let run = layer.pass(run.input(&m.row).input(&m.record), &places);
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

/// Returns a case on cores that all copy.
fn case(p: Params, format: &'static [(usize, usize)], rows: usize, cores: u32) -> Case {
    let options = RunOptions { cores, mode: Mode::Adversarial, seed: 1 };
    let (shift, requests, share, table, copy_cores) = (6, 1, 30, false, cores);
    Case { p, format, rows, shift, requests, share, table, copy_cores, options }
}

/// Rows of many lengths; more requests than a window; any number of copying cores; a pool of a million rows; and blocks of
/// eight slots in any order: 32 per state, so that a list has room for the entries of 16 runs, and 512, which leave room
/// for one run. Rows whose block is not in the buffer are left out. Rows of half the buffer use all planned bytes.
#[test]
fn transfer_copies_exactly_the_missed_rows() {
    let [p, many_blocks] = geometries();
    let formats: [&[(usize, usize)]; 6] = [
        &[(656, 656)],
        &[(1152, 1152)],
        &[(1024, 1024), (128, 128)],
        &[(584, 640)],
        &[(7, 7)],
        &[(33, 50), (7, 9)],
    ];
    let mut cases = vec![];
    for (i, format) in formats.into_iter().enumerate() {
        for (j, cores) in [1, 2, 20, 40].into_iter().enumerate() {
            let (requests, share) = ([1, 3, 9, 17][(i + j) % 4], [100, 10, 3, 50][i % 4]);
            cases.push(Case { requests, share, ..case(p, format, 700, cores) });
        }
    }
    for (requests, share, cores, copy_cores) in [
        (300, 4, 3, 3),
        (129, 1, 20, 7),
        (300, 60, 40, 40),
        (128, 0, 5, 5),
        (0, 0, 2, 2),
        (40, 9, 4, 64),
    ] {
        cases.push(Case { requests, share, copy_cores, ..case(p, &[(40, 41)], 500, cores) });
    }
    for p in [p, many_blocks] {
        for (requests, share, cores) in [(130, 2, 1), (5, 60, 3), (40, 9, 40)] {
            let of = case(p, &[(24, 24), (5, 8)], 300, cores);
            cases.push(Case { requests, share, table: true, ..of });
        }
    }
    let million = case(p, &[(7, 7)], 1 << 20, 2);
    cases.push(Case { requests: 2, share: 80, shift: 17, ..million });
    cases.push(Case { shift: 3, ..case(p, &[(57_712, 57_728), (7_808, 7_808)], 40, 1) });
    let mut most = 0;
    for (n, case) in cases.iter().enumerate() {
        let Some(kernels) = compiled(&kernel(&case.p, "avsg_transfer").text) else { return };
        for mode in if case.rows > 1000 { &EVERY_ORDER[1..2] } else { &EVERY_ORDER } {
            let options = RunOptions { mode: *mode, seed: n as u64, ..case.options };
            let case = Case { options, ..*case };
            let peak = check_transfer(kernels, &case);
            most = most.max(peak.unwrap_or_else(|e| panic!("{case:?}: {e:?}")));
        }
    }
    assert_eq!(most, kernel(&p, "avsg_transfer").ub_bytes, "all planned bytes are used");
}

/// Without any single barrier or flag, some run breaks a rule or gives other bytes.
#[test]
fn every_barrier_and_flag_is_needed() {
    let p = small_geometry(0);
    let mutants = mutants();
    let Some(kernels) = compiled(&mutants.text) else { return };
    mutants.assert_each_fails(kernels, |kernels| {
        (0..12).any(|seed| {
            let (requests, share) = [(300, 3), (6, 90)][seed as usize % 2];
            let of = case(p, &[(40, 41)], 200, 1 + seed as u32 / 2 % 2);
            let options = RunOptions { seed, ..of.options };
            let case = Case { requests, share, table: seed % 4 > 1, options, ..of };
            check_transfer(kernels, &case).is_err()
        })
    });
}
