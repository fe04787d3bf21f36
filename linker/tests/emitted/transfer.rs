//! The emitted Stage Two, run on the shim and compared with plain copies.

use super::{
    Compiled, EVERY_ORDER, Mode, Mutants, Places, RunFailure, RunOptions, SYNC_CALLS, SplitMix64,
    TestEngine, compile_all, differs, kernel, small_geometry,
};
use avsg_device::params::Params;

/// Random batches, and how their misses are copied.
#[derive(Clone, Copy, Debug)]
struct Case {
    p: Params,
    /// Bytes and stride of each segment.
    format: &'static [(usize, usize)],
    /// Rows of the pool, of which `1 << shift` are in a chunk.
    rows: usize,
    shift: u32,
    requests: usize,
    /// Percent of the ids that are not replaced by padding.
    share: usize,
    /// Whether slots are in the blocks of a table.
    table: bool,
    copy_cores: u32,
    options: RunOptions,
}

/// Runs steps of two batches in Rust, and Stage Two of each as it is emitted, and compares every byte of the device buffer.
fn check_transfer(kernels: &Compiled, case: &Case) -> Result<u32, RunFailure> {
    let Case { p, requests, rows, .. } = *case;
    let (mut random, states) = (SplitMix64::new(case.options.seed), requests.max(1));
    let places = Places::random(&mut random, &p, states, case.table.then_some(9));
    let sizes = (states, rows, 4 * requests);
    let mut engine = TestEngine::new(&mut random, &p, places, sizes, case.format, case.shift);
    let mut most = 0;
    for _ in 0..2 {
        let mut b = engine.random_batch(&mut random, requests);
        b.ids.iter_mut().filter(|_| random.below(100) >= case.share).for_each(|id| *id = -1);
        let before = engine.contents();
        let out = engine.step_on_cpu(&b);
        let after = engine.contents();
        engine.restore(&before);
        let mut scalars = engine.scalars(&b, case.options.cores);
        scalars[6] = case.copy_cores as i32;
        most = most.max(engine.transfer(&b, &out, kernels, &scalars, case.options)?);
        if engine.contents().1 != after.1 {
            return Err(differs("the device buffer"));
        }
        engine.restore(&after);
    }
    Ok(most)
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
fn copies_exactly_the_missed_rows([p, many_blocks]: [Params; 2], compiled: &[Compiled]) {
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
        let kernels = &compiled[usize::from(case.p == many_blocks)];
        for mode in if case.rows > 1000 { &EVERY_ORDER[1..2] } else { &EVERY_ORDER } {
            let options = RunOptions { mode: *mode, seed: n as u64, ..case.options };
            let case = Case { options, ..*case };
            let peak = check_transfer(kernels, &case);
            most = most.max(peak.unwrap_or_else(|e| panic!("{case:?}: {e:?}")));
        }
    }
    assert_eq!(most, kernel(&p, "avsg_transfer").ub_bytes, "all planned bytes are used");
}

/// The rows are copied and no others, and without any single barrier or flag, some run breaks a rule or gives other bytes.
#[test]
fn transfer_copies_exactly_the_missed_rows_and_needs_every_barrier_and_flag() {
    // Geometries with different lists of blocks.
    let geometries = [256, 4096].map(|slots| Params { slots, ..small_geometry(0) });
    let texts = geometries.map(|p| kernel(&p, "avsg_transfer").text);
    let mutants = Mutants::new(&texts[0], "// ---- copies", &SYNC_CALLS);
    // Without a number, no statement is left out.
    let Some(compiled) = compile_all(&[mutants.text.clone(), texts[1].clone()]) else { return };
    copies_exactly_the_missed_rows(geometries, &compiled);
    mutants.assert_each_fails(&compiled[0], |kernels| {
        (0..12).any(|seed| {
            let (requests, share) = [(300, 3), (6, 90)][seed as usize % 2];
            let of = case(geometries[0], &[(40, 41)], 200, 1 + seed as u32 / 2 % 2);
            let options = RunOptions { seed, ..of.options };
            let case = Case { requests, share, table: seed % 4 > 1, options, ..of };
            check_transfer(kernels, &case).is_err()
        })
    });
}
