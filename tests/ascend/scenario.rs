//! Create, three steps on two layers, destroy: with every error noted and every call that failed
//! made again, as a runtime would that wants to go on.

use std::cell::Cell;
use std::path::PathBuf;

use avsg::ascend::{AscendOptions, RegisteredPool};
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

use super::stand;

/// Ids of a row.
const K: usize = 8;
/// Rows below it are in the pool from the beginning, with the layer as their version.
const OLD: usize = 100;
/// The version of rows that a step has made, less the layer.
const NEW: u32 = 50;
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

/// How it went.
pub struct Outcome {
    /// Every error, as text.
    pub errors: Vec<String>,
    /// Whether the engine was made.
    pub created: bool,
    /// Whether the engine did its three steps.
    pub finished: bool,
    /// Rows that were compared.
    pub rows: usize,
}

/// Runs it all, a step as one launch or as two. `patience` is how often a call is made again.
pub fn run(kernels: PathBuf, patience: usize, one_launch: bool) -> Outcome {
    let mut outcome = Outcome { errors: Vec::new(), created: false, finished: false, rows: 0 };
    let mut engine = match create(kernels, one_launch) {
        Ok(engine) => engine,
        Err(error) => {
            outcome.errors.push(error.to_string());
            return outcome;
        }
    };
    outcome.created = true;
    let mut left = patience;
    let plan = loop {
        match engine.new_plan(4, 2) {
            Ok(plan) => break Some(plan),
            Err(error) => outcome.errors.push(error.to_string()),
        }
        if left == 0 {
            break None;
        }
        left -= 1;
    };
    if let Some(mut plan) = plan {
        outcome.finished =
            (0..STEPS).all(|step| one_step(&mut engine, &mut plan, step, &mut left, &mut outcome));
    }
    if let Err(error) = engine.close() {
        outcome.errors.push(error.to_string());
    }
    outcome
}

fn create(kernels: PathBuf, one_launch: bool) -> Result<Engine> {
    let context = stand::context()?;
    // A chunk is a page: many registrations.
    let pool = PoolConfig {
        pages: Pages::Plain,
        chunk_bytes: 4096,
        ..PoolConfig::new(LAYERS, 256, format())
    };
    let pool = RegisteredPool::create(&context, &pool)?;
    fixture::fill(pool.pool(), OLD, |layer, row| (row as i32, layer as u32));
    let options = AscendOptions {
        timeout_ms: 20,
        one_launch: Some(one_launch),
        ..AscendOptions::new(context).with_kernels(kernels)
    };
    Engine::on_ascend(config(), pool, &options)
}

/// Makes a call until it succeeds. False when patience has run out.
fn insist(
    left: &mut usize,
    errors: &mut Vec<String>,
    mut call: impl FnMut() -> Result<()>,
) -> bool {
    loop {
        match call() {
            Ok(()) => return true,
            Err(error) => errors.push(error.to_string()),
        }
        if *left == 0 {
            return false;
        }
        *left -= 1;
    }
}

fn one_step(
    engine: &mut Engine,
    plan: &mut Plan,
    step: usize,
    left: &mut usize,
    outcome: &mut Outcome,
) -> bool {
    // Two requests of two tokens on the same rows; one selects a row of this very step.
    let stable = (OLD + 2 * step) as i32;
    let id = |i: usize| match i % K {
        0 => stable + (i / K % 2) as i32,
        1 => -1,
        2 if step > 0 => stable - 1,
        _ => ((i * 13 + step * 5) % OLD) as i32,
    };
    let ids = [0, 1, 2, 3].map(|row| (row * K..(row + 1) * K).map(id).collect::<Vec<_>>());
    let blocks = (0..16).chain(0..16).collect();
    let mut owned = OwnedBatch { blocks, block_stride: 16, ..OwnedBatch::new(K, 0) };
    owned.push([1, 7, stable, stable + 2], &ids[..2]);
    owned.push([0, 7, stable, stable + 2], &ids[2..]);
    let batch = owned.batch();
    let rows = [0, 1].map(|layer| {
        let mut rows = FreshRows::new(&format(), 4);
        (0..4).for_each(|at| rows.put(at, stable + at as i32 % 2, NEW + layer));
        rows
    });
    let parts = [0, 1].map(|l: usize| rows[l].segments());
    let fresh = [0, 1].map(|l: usize| Fresh { segments: &parts[l] });
    loop {
        let planned =
            insist(left, &mut outcome.errors, || engine.step(&batch, plan, 0, Some(&fresh[0])));
        if !planned {
            return false;
        }
        // A plan does not outlive a failure: then the step is made again.
        match engine.transfer(plan, 1, Some(&fresh[1])) {
            Ok(()) => break,
            Err(error) => outcome.errors.push(error.to_string()),
        }
        if *left == 0 {
            return false;
        }
        *left -= 1;
    }
    for layer in 0..LAYERS {
        if !verify(engine, plan, &owned, layer, left, outcome) {
            return false;
        }
    }
    (0..LAYERS).all(|layer| {
        insist(left, &mut outcome.errors, || engine.append(&batch, layer, &fresh[layer]))
    })
}

/// Every returned row is what the pool and this step say. False when patience has run out.
fn verify(
    engine: &mut Engine,
    plan: &Plan,
    owned: &OwnedBatch,
    layer: usize,
    left: &mut usize,
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
            let read = insist(left, &mut outcome.errors, || {
                engine.buffer().slot_bytes(state, layer, slot, bytes)
            });
            read_all.set(read);
            read
        },
        |_, id| (id, if id < OLD as i32 { 0 } else { NEW } + layer as u32),
        |seen| {
            if read_all.get() {
                outcome.rows += assert_exact(seen, layer);
            }
        },
    );
    read_all.get()
}
