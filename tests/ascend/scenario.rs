//! A scenario for injected faults: create an engine, run three steps on two layers, and close it.
//! All errors are recorded, and failed calls are retried as a serving runtime would do.

use std::cell::Cell;
use std::path::PathBuf;

use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::device::params::{Lifetime, Params};
use avsg::engine::{Config, Engine, Fresh};
use avsg::plan::Plan;
use avsg::pool::{Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg::{Result, geometry};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::exact::{assert_exact, for_each_id};
use avsg_testkit::fixture;
use avsg_testkit::fresh::FreshRows;

/// Ids per row.
const K: usize = 8;
/// Rows that the pool holds before the first step, with the layer as their version.
const INITIAL_ROWS: usize = 100;
/// Version of the rows that a step writes, without the layer, which is added.
const STEP_VERSION: u32 = 50;
const LAYERS: usize = 2;
pub const STEPS: usize = 3;

pub fn config() -> Config {
    let lifetime = geometry::frequency(0.9).unwrap();
    assert!(matches!(lifetime, Lifetime::Frequency(_)));
    let params = Params { lifetime, page: 16, ..Params::wide(K as u32, 2, 64) };
    Config { cores: 4, ..Config::new(params, 2) }
}

fn format() -> RowFormat {
    RowFormat::segments(&[32, 8]).unwrap()
}

/// Result of a run of the scenario.
pub struct Outcome {
    /// The text of every error.
    pub errors: Vec<String>,
    /// Whether the engine was created.
    pub created: bool,
    /// Whether all three steps were done.
    pub finished: bool,
    /// Number of rows that were compared.
    pub rows: usize,
}

/// Runs the scenario with one or two launches per step. `retries` limits the number of repeated
/// calls.
pub fn run(kernels: PathBuf, retries: usize, one_launch: bool) -> Outcome {
    let mut outcome = Outcome { errors: Vec::new(), created: false, finished: false, rows: 0 };
    let mut engine = match create(kernels, one_launch) {
        Ok(engine) => engine,
        Err(error) => {
            outcome.errors.push(error.to_string());
            return outcome;
        }
    };
    outcome.created = true;
    let mut retries_left = retries;
    let plan = loop {
        match engine.new_plan(4, 2) {
            Ok(plan) => break Some(plan),
            Err(error) => outcome.errors.push(error.to_string()),
        }
        if retries_left == 0 {
            break None;
        }
        retries_left -= 1;
    };
    if let Some(mut plan) = plan {
        outcome.finished = (0..STEPS)
            .all(|step| run_step(&mut engine, &mut plan, step, &mut retries_left, &mut outcome));
    }
    if let Err(error) = engine.close() {
        outcome.errors.push(error.to_string());
    }
    outcome
}

fn create(kernels: PathBuf, one_launch: bool) -> Result<Engine> {
    let context = simulated::context()?;
    // Each chunk is one page, so the pool needs many registrations.
    let pool = PoolConfig {
        pages: Pages::Plain,
        chunk_bytes: 4096,
        ..PoolConfig::new(LAYERS, 256, format())
    };
    let pool = RegisteredPool::create(&context, &pool)?;
    fixture::fill(pool.pool(), INITIAL_ROWS, |layer, row| (row as i32, layer as u32));
    let options = AscendOptions {
        timeout_ms: 20,
        one_launch: Some(one_launch),
        ..AscendOptions::new(context).with_kernels(kernels)
    };
    Engine::on_ascend(config(), pool, &options)
}

/// Repeats a call until it succeeds. Returns false if no retries are left.
fn retry(
    retries_left: &mut usize,
    errors: &mut Vec<String>,
    mut call: impl FnMut() -> Result<()>,
) -> bool {
    loop {
        match call() {
            Ok(()) => return true,
            Err(error) => errors.push(error.to_string()),
        }
        if *retries_left == 0 {
            return false;
        }
        *retries_left -= 1;
    }
}

/// Runs and verifies one step. Returns false if no retries are left.
fn run_step(
    engine: &mut Engine,
    plan: &mut Plan,
    step: usize,
    retries_left: &mut usize,
    outcome: &mut Outcome,
) -> bool {
    // Two requests of two tokens select the same pool rows, among them a fresh row of this step.
    let stable = (INITIAL_ROWS + 2 * step) as i32;
    let id = |i: usize| match i % K {
        0 => stable + (i / K % 2) as i32,
        1 => -1,
        2 if step > 0 => stable - 1,
        _ => ((i * 13 + step * 5) % INITIAL_ROWS) as i32,
    };
    let ids = [0, 1, 2, 3].map(|row| (row * K..(row + 1) * K).map(id).collect::<Vec<_>>());
    let blocks = (0..16).chain(0..16).collect();
    let mut owned = OwnedBatch { blocks, block_stride: 16, ..OwnedBatch::new(K, 0) };
    owned.push([1, 7, stable, stable + 2], &ids[..2]);
    owned.push([0, 7, stable, stable + 2], &ids[2..]);
    let batch = owned.batch();
    let rows = [0, 1].map(|layer| {
        let mut rows = FreshRows::new(&format(), 4);
        (0..4).for_each(|at| rows.put(at, stable + at as i32 % 2, STEP_VERSION + layer));
        rows
    });
    let parts = [0, 1].map(|l: usize| rows[l].segments());
    let fresh = [0, 1].map(|l: usize| Fresh { segments: &parts[l] });
    loop {
        let stepped = retry(retries_left, &mut outcome.errors, || {
            engine.step(&batch, plan, 0, Some(&fresh[0]))
        });
        if !stepped {
            return false;
        }
        // A failure makes the plan stale, so the step is repeated.
        match engine.transfer(plan, 1, Some(&fresh[1])) {
            Ok(()) => break,
            Err(error) => outcome.errors.push(error.to_string()),
        }
        if *retries_left == 0 {
            return false;
        }
        *retries_left -= 1;
    }
    for layer in 0..LAYERS {
        if !verify(engine, plan, &owned, layer, retries_left, outcome) {
            return false;
        }
    }
    (0..LAYERS).all(|layer| {
        retry(retries_left, &mut outcome.errors, || engine.append(&batch, layer, &fresh[layer]))
    })
}

/// Checks every returned row. Returns false if no retries are left.
fn verify(
    engine: &mut Engine,
    plan: &Plan,
    owned: &OwnedBatch,
    layer: usize,
    retries_left: &mut usize,
    outcome: &mut Outcome,
) -> bool {
    let read_all = Cell::new(true);
    for_each_id(
        &owned.batch(),
        40,
        |row| plan.slots(row),
        |state, slot, bytes| {
            if !read_all.get() {
                return false;
            }
            let read = retry(retries_left, &mut outcome.errors, || {
                engine.buffer().slot_bytes(state, layer, slot, bytes)
            });
            read_all.set(read);
            read
        },
        |_, id| (id, if id < INITIAL_ROWS as i32 { 0 } else { STEP_VERSION } + layer as u32),
        |selected| {
            if read_all.get() {
                outcome.rows += assert_exact(selected, layer);
            }
        },
    );
    read_all.get()
}
