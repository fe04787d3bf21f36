//! Cases that the tests of other offloading operators have (SGLang, vLLM and vLLM-Ascend), on the CPU
//! and on the simulated device. `docs/testing.md` lists the ones that this interface does not have.

use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::device::params::Params;
use avsg::device::state::header;
use avsg::engine::{Config, Engine};
use avsg::plan::Plan;
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg_sim::{Options, Session};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::fill_row;
use avsg_testkit::workload::{DEVICE_SHAPES, Shape};
use avsg_testkit::{exact, fixture};

const LAYERS: usize = 2;
const STATES: usize = 4;
/// Blocks of the pool.
const BLOCKS: usize = 64;

/// The geometry that other tests of the simulated device compile: K = 8, N_q = 2, S = 128, pages of
/// 16 rows.
fn small() -> Params {
    Shape::from(DEVICE_SHAPES[1]).params()
}

/// Runs a test on an engine of the CPU and on one of the simulated device, if a C++ compiler is there.
fn on_both(test: impl Fn(&mut Engine)) {
    let params = small();
    let rows = BLOCKS * params.page as usize;
    let config = Config { cores: 4, ..Config::new(params, STATES) };
    let pool = || {
        let pages = Pages::Plain;
        let pool =
            PoolConfig { pages, ..PoolConfig::new(LAYERS, rows, RowFormat::single(64).unwrap()) };
        let pool = HostPool::new(&pool).unwrap();
        fixture::fill(&pool, rows, |layer, row| (row as i32, layer as u32));
        pool
    };
    test(&mut Engine::new(config.clone(), pool()).unwrap());
    if avsg_sim::compiler::cpp().is_none() {
        println!("skipped: no C++ compiler, which the emitted kernels need here");
        return;
    }
    let session = Session::new(Options::default());
    let context = simulated::context().unwrap();
    let pool = RegisteredPool::new(&context, pool()).unwrap();
    let options = AscendOptions::new(context);
    let mut engine = Engine::on_ascend(config, pool, &options).unwrap();
    drop(options);
    test(&mut engine);
    engine.close().unwrap();
    assert_eq!(session.leaks(), Vec::<String>::new());
}

/// Returns the row of an id when a request's blocks are in reverse order from `first` on, with gaps.
fn row_of(first: usize, id: i32) -> i32 {
    let page = small().page as i32;
    ((first as i32 - 2 * (id / page)).rem_euclid(BLOCKS as i32)) * page + id % page
}

/// A batch of requests, each a state (-1: vacant) and its rows, with block tables of 32 used entries
/// that are padded to 37.
fn batch(generation: i32, requests: &[(i32, Vec<Vec<i32>>)]) -> OwnedBatch {
    let mut owned = OwnedBatch::new(small().k as usize, 3);
    owned.block_stride = 37;
    for (state, rows) in requests {
        owned.push([*state, generation, -1, 512], rows);
        let block = |at: i32| row_of(first_block(*state), at * small().page as i32);
        owned.blocks.extend((0..32).map(|at| block(at) / small().page as i32));
        owned.blocks.extend([-1; 5]);
    }
    owned
}

fn first_block(state: i32) -> usize {
    7 + 5 * state.max(0) as usize
}

/// K ids of a request: `first`, `first` + 3, and so on.
fn ids(first: i32) -> Vec<i32> {
    (0..small().k as i32).map(|i| (first + 3 * i) % 500).collect()
}

/// Checks every selected row of a plan in one layer.
fn check(engine: &Engine, plan: &Plan, owned: &OwnedBatch, layer: usize) -> usize {
    exact::check_step(engine, plan, owned, layer, |request, id| {
        (row_of(first_block(owned.state[request]), id), layer as u32)
    })
}

/// Steps all layers, checks every selected row, and returns the number of rows that were copied.
fn step(engine: &mut Engine, plan: &mut Plan, owned: &OwnedBatch) -> usize {
    engine.step(&owned.batch(), plan, 0, None).unwrap();
    engine.transfer(plan, 1, None).unwrap();
    (0..LAYERS)
        .for_each(|layer| assert!(check(engine, plan, owned, layer) > 0 || owned.rows() == 0));
    plan.total_misses()
}

/// Returns the ids in the slots of a state.
fn ids_in_slots(engine: &mut Engine, state: usize) -> Vec<i32> {
    engine.read_table(state).unwrap()[header::WORDS..][..small().slots as usize].to_vec()
}

#[test]
fn the_same_batch_twice_misses_nothing_and_keeps_every_slot() {
    on_both(|engine| {
        let (mut first, mut second) =
            (engine.new_plan(4, 2).unwrap(), engine.new_plan(4, 2).unwrap());
        let owned = batch(1, &[(2, vec![ids(5), ids(100)]), (0, vec![ids(7)])]);
        assert_eq!(step(engine, &mut first, &owned), 3 * small().k as usize);
        let held = ids_in_slots(engine, 2);
        assert_eq!(step(engine, &mut second, &owned), 0);
        assert!((0..3).all(|row| first.slots(row) == second.slots(row)));
        assert_eq!(held, ids_in_slots(engine, 2));
    });
}

#[test]
fn rolled_hits_stay_hits_and_a_shared_miss_is_copied_once() {
    on_both(|engine| {
        let mut plan = engine.new_plan(2, 1).unwrap();
        step(engine, &mut plan, &batch(1, &[(1, vec![ids(0), ids(200)])]));
        let mut rows = [ids(0), ids(200)];
        rows.iter_mut().for_each(|row| row.rotate_left(5));
        assert_eq!(step(engine, &mut plan, &batch(1, &[(1, rows.to_vec())])), 0);
        // Three misses of the first row, two of the second.
        rows[0][..3].copy_from_slice(&[301, 302, 303]);
        rows[1][6..].copy_from_slice(&[304, 305]);
        assert_eq!(step(engine, &mut plan, &batch(1, &[(1, rows.to_vec())])), 5);
        // The same four misses in both rows.
        rows.iter_mut().for_each(|row| row[2..6].copy_from_slice(&[401, 402, 403, 404]));
        assert_eq!(step(engine, &mut plan, &batch(1, &[(1, rows.to_vec())])), 4);
        assert_eq!(plan.token_misses(0, 1), 0);
    });
}

/// The sizes of the other operators' tests, on the CPU, whose geometries need no compiler.
fn large() -> (Engine, Plan) {
    let pool = fixture::pool(1, 1 << 14, RowFormat::single(16).unwrap());
    let engine = fixture::engine(Params::wide(2048, 4, 16_384), 1, 2, pool);
    let plan = engine.new_plan(4, 1).unwrap();
    (engine, plan)
}

fn step_large(engine: &mut Engine, plan: &mut Plan, generation: i32, rows: &[Vec<i32>]) -> usize {
    let mut owned = OwnedBatch::new(2048, 0);
    owned.push([0, generation, -1, 1 << 14], rows);
    engine.step(&owned.batch(), plan, 0, None).unwrap();
    assert_eq!(exact::check_step(engine, plan, &owned, 0, |_, id| (id, 0)), rows.len() * 2048);
    plan.total_misses()
}

#[test]
fn four_rows_of_2048_ids_with_782_unique_misses_and_196_shared_ones() {
    let (mut engine, mut plan) = large();
    let mut rows: Vec<Vec<i32>> = (0..4).map(|r| (r * 2048..(r + 1) * 2048).collect()).collect();
    assert_eq!(step_large(&mut engine, &mut plan, 1, &rows), 8192);
    rows.iter_mut().for_each(|row| row.rotate_left(137));
    let mut next = 8192..;
    for (row, misses) in rows.iter_mut().zip([196, 196, 195, 195]) {
        row[..misses].iter_mut().zip(&mut next).for_each(|(id, new)| *id = new);
    }
    assert_eq!(step_large(&mut engine, &mut plan, 1, &rows), 782);
    let shared: Vec<i32> = (10_000..10_196).collect();
    rows.iter_mut().for_each(|row| row[1000..1196].copy_from_slice(&shared));
    assert_eq!(step_large(&mut engine, &mut plan, 1, &rows), 196);
}

#[test]
fn miss_counts_around_multiples_of_k() {
    let (mut engine, mut plan) = large();
    for (generation, misses) in (1..).zip([2048, 2049, 4095, 4096, 4097, 8191, 8192]) {
        // Ids from `misses` on are replaced by ids of the first row, which are no further misses.
        let row = |r: i32| {
            let own = |at: i32| if r * 2048 + at < misses { r * 2048 + at } else { at };
            (0..2048).map(own).collect()
        };
        let rows: Vec<Vec<i32>> = (0..4).map(row).collect();
        let found = step_large(&mut engine, &mut plan, generation, &rows);
        assert_eq!(found, misses as usize);
    }
}

#[test]
fn ids_across_powers_of_two_hit_on_the_second_call() {
    on_both(|engine| {
        let page = small().page as i32;
        let big = [
            (1 << 17) - 1,
            1 << 17,
            (1 << 18) + 1,
            (1 << 20) - 1,
            1 << 20,
            1_048_648,
            (1 << 21) - 1,
            1 << 21,
        ];
        let mut owned = OwnedBatch::new(small().k as usize, 0);
        owned.push([3, 1, -1, (1 << 21) + 1], &[big.to_vec()]);
        owned.block_stride = ((1 << 21) / page + 1) as usize;
        owned.blocks = (0..owned.block_stride as i32).map(|at| at % BLOCKS as i32).collect();
        let mut plan = engine.new_plan(1, 1).unwrap();
        for misses in [big.len(), 0] {
            engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
            let rows = BLOCKS as i32 * page;
            let checked = exact::check_step(engine, &plan, &owned, 0, |_, id| (id % rows, 0));
            assert_eq!((checked, plan.total_misses()), (big.len(), misses));
        }
    });
}

#[test]
fn a_row_that_was_rewritten_is_loaded_again_and_no_other() {
    on_both(|engine| {
        let mut plan = engine.new_plan(2, 1).unwrap();
        let rows = vec![ids(10), ids(11)];
        step(engine, &mut plan, &batch(1, &[(0, rows.clone())]));
        // The request goes back to the length 32, which the last id of the second row is not below.
        let rewritten = 32;
        assert_eq!(rows.iter().flatten().filter(|&&id| id >= rewritten).count(), 1);
        let mut shorter = batch(1, &[(0, vec![])]);
        (shorter.stable[0], shorter.seq[0]) = (rewritten, rewritten);
        engine.plan(&shorter.batch(), &mut plan).unwrap();
        let mut bytes = vec![0; 64];
        let row = row_of(first_block(0), rewritten);
        fill_row(row, 9, &mut bytes);
        engine.pool().write_row(0, row as usize, &bytes).unwrap();
        let owned = batch(1, &[(0, rows)]);
        engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
        assert_eq!(plan.misses(0).id, [rewritten]);
        exact::check_step(engine, &plan, &owned, 0, |_, id| {
            (row_of(first_block(0), id), if id == rewritten { 9 } else { 0 })
        });
    });
}

#[test]
fn hits_are_read_from_the_buffer_when_the_host_rows_are_corrupted() {
    on_both(|engine| {
        let mut plan = engine.new_plan(2, 1).unwrap();
        let owned = batch(1, &[(1, vec![ids(50), ids(90)])]);
        step(engine, &mut plan, &owned);
        for row in 0..engine.pool().rows() {
            (0..LAYERS).for_each(|l| engine.pool().write_row(l, row, &[0xEE; 64]).unwrap());
        }
        assert_eq!(step(engine, &mut plan, &owned), 0);
    });
}
