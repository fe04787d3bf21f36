//! A scenario for injected faults: create an engine, run three steps on two layers, and close it.
//! All errors are recorded, and failed calls are retried as a serving runtime would do.

use std::cell::RefCell;
use std::path::PathBuf;

use avsg::Result;
use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::device::params::{Lifetime, Params};
use avsg::engine::{Config, Engine, Fresh};
use avsg::plan::Plan;
use avsg::pool::{Pages, PoolConfig};
use avsg::rows::RowFormat;
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
const STEPS: usize = 3;

pub fn config() -> Config {
    let params = Params { lifetime: Lifetime::Learned, page: 16, ..Params::wide(K as u32, 2, 64) };
    Config { cores: 4, ..Config::new(params, 2) }
}

fn format() -> RowFormat {
    RowFormat::segments(&[32, 8]).unwrap()
}

/// Result of a run of the scenario.
#[derive(Default)]
pub struct Outcome {
    /// The text of every error.
    pub errors: Vec<String>,
    /// Whether the engine was created.
    pub created: bool,
    /// Whether all three steps were done.
    pub finished: bool,
    /// Number of rows that were compared.
    pub rows: usize,
    retries_left: usize,
}

impl Outcome {
    /// Repeats a call until it succeeds. Returns none if no retries are left.
    fn retry<T>(&mut self, mut call: impl FnMut() -> Result<T>) -> Option<T> {
        loop {
            match call() {
                Ok(value) => return Some(value),
                Err(error) => self.errors.push(error.to_string()),
            }
            self.retries_left = self.retries_left.checked_sub(1)?;
        }
    }
}

/// Runs the scenario with one or two launches per step. `retries` limits the number of repeated
/// calls.
pub fn run(kernels: PathBuf, retries: usize, one_launch: bool) -> Outcome {
    let mut outcome = Outcome { retries_left: retries, ..Outcome::default() };
    let closed = create(kernels, one_launch).and_then(|mut engine| {
        outcome.created = true;
        outcome.finished = run_steps(&mut engine, &mut outcome).is_some();
        engine.close()
    });
    if let Err(error) = closed {
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

/// Runs all steps. Returns none if no retries are left.
fn run_steps(engine: &mut Engine, outcome: &mut Outcome) -> Option<()> {
    let mut plan = outcome.retry(|| engine.new_plan(4, 2))?;
    (0..STEPS).try_for_each(|step| run_step(engine, &mut plan, step, outcome))
}

/// Runs and verifies one step. Returns none if no retries are left.
fn run_step(
    engine: &mut Engine,
    plan: &mut Plan,
    step: usize,
    outcome: &mut Outcome,
) -> Option<()> {
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
    // A failure makes the plan stale, so the whole step is repeated.
    outcome.retry(|| {
        engine.step(&batch, plan, 0, Some(&fresh[0]))?;
        engine.transfer(plan, 1, Some(&fresh[1]))
    })?;
    for layer in 0..LAYERS {
        outcome.rows += outcome.retry(|| verify(engine, plan, &owned, layer))?;
    }
    (0..LAYERS).try_for_each(|layer| outcome.retry(|| engine.append(&batch, layer, &fresh[layer])))
}

/// Checks every returned row and returns their number.
///
/// # Errors
/// If a row cannot be read.
fn verify(engine: &Engine, plan: &Plan, owned: &OwnedBatch, layer: usize) -> Result<usize> {
    let (failure, mut rows) = (RefCell::new(None), 0);
    for_each_id(
        &owned.batch(),
        40,
        |row| plan.slots(row),
        |state, slot, bytes| {
            let read = engine.buffer().slot_bytes(state, layer, slot, bytes);
            read.map_err(|error| *failure.borrow_mut() = Some(error)).is_ok()
        },
        |_, id| (id, if id < INITIAL_ROWS as i32 { 0 } else { STEP_VERSION } + layer as u32),
        |selected| {
            if failure.borrow().is_none() {
                rows += assert_exact(selected, layer);
            }
        },
    );
    failure.into_inner().map_or(Ok(rows), Err)
}
