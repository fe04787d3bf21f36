//! Rows of a prefill chunk, on the CPU and on the simulated device: many rows of one request, each with its
//! own ids, in calls of N_q rows.

use std::ops::Range;

use avsg::device::params::Params;
use avsg::engine::{Config, Engine, Fresh, MachineChoice};
use avsg::plan::Plan;
use avsg::rows::RowFormat;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::workload::{DEVICE_SHAPES, Shape};
use avsg_testkit::{exact, fixture};

use crate::harness;

const LAYERS: usize = 2;
/// Blocks of the pool.
const BLOCKS: usize = 64;

/// A geometry with 16 tokens. Random workloads run its emitted kernels.
fn sixteen() -> Params {
    let params = Shape::from(DEVICE_SHAPES[2]).params();
    assert_eq!(params.tokens, 16);
    params
}

fn on_both(test: impl Fn(&mut Engine)) {
    let (params, machine) = (sixteen(), MachineChoice::Emu);
    let config = Config { cores: 4, machine, ..Config::new(params, 4) };
    let rows = BLOCKS * params.page as usize;
    let pool = || fixture::pool(LAYERS, rows, RowFormat::single(64).unwrap());
    harness::on_both_devices(&config, pool, test);
}

/// The row of an id: the blocks of the only request are every second one of the pool.
fn row_of(id: i32) -> i32 {
    let page = sixteen().page as i32;
    2 * (id / page) * page + id % page
}

/// A batch of rows of one request. Each selects the token at its position and others at growing distances before it.
/// The table of the request has as many blocks as its ids need.
fn batch(positions: Range<i32>, stable: i32) -> OwnedBatch {
    let k = sixteen().k as i32;
    let id = |at: i32, lane: i32| (at - lane * (lane + at % 3)).max(-1);
    let row = |at: i32| (0..k).map(|lane| id(at, lane)).collect();
    let rows: Vec<Vec<i32>> = positions.clone().map(row).collect();
    let mut owned = OwnedBatch::new(k as usize, 1);
    owned.push([1, 1, stable, positions.end], &rows);
    owned.block_stride = BLOCKS / 2;
    owned.blocks = (0..BLOCKS as i32 / 2).map(|at| 2 * at).collect();
    owned
}

/// The version of a row that a chunk wrote in layer 0.
const WRITTEN: u32 = 70;

/// Returns the rows that the model makes in a layer for the tokens at some positions.
fn rows_of(positions: Range<i32>, layer: usize) -> FreshRows {
    let mut rows = FreshRows::new(&RowFormat::single(64).unwrap(), positions.len());
    positions.enumerate().for_each(|(at, id)| rows.put(at, row_of(id), WRITTEN + layer as u32));
    rows
}

/// Transfers a plan to a layer, and plans its batch before the first one.
fn serve(
    engine: &mut Engine,
    plan: &mut Plan,
    owned: &OwnedBatch,
    layer: usize,
    fresh: Option<&Fresh<'_>>,
) {
    match layer {
        0 => engine.step(&owned.batch(), plan, layer, fresh).unwrap(),
        _ => engine.transfer(plan, layer, fresh).unwrap(),
    }
}

/// Compares every selected row in a layer. Ids of `written` were rewritten, and others have the pool's first
/// rows.
fn check(engine: &Engine, plan: &Plan, owned: &OwnedBatch, layer: usize, written: &Range<i32>) {
    let first = |id: i32| if written.contains(&id) { WRITTEN } else { 0 };
    let content = |_, id: i32| (row_of(id), first(id) + layer as u32);
    let checked = exact::check_step(engine, plan, owned, layer, content);
    assert_eq!(checked, plan.valid().iter().map(|&n| n as usize).sum());
    assert_eq!(plan.row_misses().iter().sum::<i32>() as usize, plan.total_misses());
}

/// Calls of at most 16 rows, the positions of each.
fn calls(chunk: Range<i32>) -> Vec<Range<i32>> {
    chunk.clone().step_by(16).map(|at| at..chunk.end.min(at + 16)).collect()
}

/// Layer by layer: the rows of the whole chunk reach the pool in one call, and each call of 16 rows is planned
/// once and transferred to the layers when they come to it.
#[test]
fn a_chunk_that_was_appended_passes_in_calls_of_sixteen_rows() {
    on_both(|engine| {
        let chunk = 20..64;
        let calls = calls(chunk.clone());
        let batches: Vec<_> = calls.iter().map(|call| batch(call.clone(), -1)).collect();
        let mut plans: Vec<_> = calls.iter().map(|_| engine.new_plan(16, 1).unwrap()).collect();
        let whole = OwnedBatch { ids: Vec::new(), ..batch(chunk.clone(), chunk.start) };
        for layer in 0..LAYERS {
            let rows = rows_of(chunk.clone(), layer);
            engine.append(&whole.batch(), layer, &Fresh { segments: &rows.segments() }).unwrap();
            for (owned, plan) in batches.iter().zip(&mut plans) {
                serve(engine, plan, owned, layer, None);
                check(engine, plan, owned, layer, &chunk);
            }
        }
        // The first call has all 16 rows in two halves of the record's words.
        assert!(plans[0].row_misses()[8..].iter().any(|&n| n > 0));
    });
}

/// The rows of each call are fresh rows of that call, and reach the pool after it. Rejected drafts, which an
/// earlier step took for the chunk's first tokens, are dropped by `stable_len`.
#[test]
fn a_chunk_of_fresh_rows_passes_in_calls_of_sixteen_rows() {
    on_both(|engine| {
        let mut plan = engine.new_plan(16, 1).unwrap();
        let drafts = batch(20..23, -1);
        (0..LAYERS).for_each(|layer| serve(engine, &mut plan, &drafts, layer, None));
        let chunk = 20..64;
        for call in calls(chunk.clone()) {
            let owned = batch(call.clone(), call.start);
            let written = chunk.start..call.end;
            for layer in 0..LAYERS {
                let rows = rows_of(call.clone(), layer);
                let fresh = Fresh { segments: &rows.segments() };
                serve(engine, &mut plan, &owned, layer, Some(&fresh));
                check(engine, &plan, &owned, layer, &written);
                engine.append(&owned.batch(), layer, &fresh).unwrap();
            }
        }
        // A copy of the state and the state itself hit what the last call selected.
        engine.fork_to(1, 1, &[2], &[5]).unwrap();
        let mut last = batch(48..64, -1);
        for (state, generation) in [(2, 5), (1, 1)] {
            (last.state[0], last.generation[0]) = (state, generation);
            (0..LAYERS).for_each(|layer| serve(engine, &mut plan, &last, layer, None));
            assert_eq!(plan.row_misses(), [0; 16]);
            (0..LAYERS).for_each(|layer| check(engine, &plan, &last, layer, &chunk));
        }
        // Ids that are invalidated are missed once, by the row that selects them first.
        assert_eq!(engine.invalidate(1, 60..64).unwrap(), 4);
        engine.step(&last.batch(), &mut plan, 0, None).unwrap();
        assert_eq!(plan.row_misses(), [[0; 12].as_slice(), &[1; 4]].concat());
        check(engine, &plan, &last, 0, &chunk);
    });
}
