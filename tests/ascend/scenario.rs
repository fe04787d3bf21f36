//! Create, three steps on two layers, destroy: with every error noted and every call that failed
//! made again, as a runtime would that wants to go on.

use std::path::PathBuf;

use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::device::params::{Lifetime, Params};
use avsg::engine::{Batch, Config, Engine, Fresh};
use avsg::plan::Plan;
use avsg::pool::{Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg::{Result, geometry};
use avsg_testkit::content::{check_row, fill_row};

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
    let format = RowFormat::segments(&[32, 8])?;
    // A chunk is a page: many registrations.
    let pool = PoolConfig {
        pages: Pages::Plain,
        chunk_bytes: 4096,
        ..PoolConfig::new(LAYERS, 256, format)
    };
    let pool = RegisteredPool::create(&context, &pool)?;
    let mut bytes = [0; 40];
    for (layer, row) in (0..LAYERS).flat_map(|layer| (0..OLD).map(move |row| (layer, row))) {
        fill_row(row as i32, layer as u32, &mut bytes);
        pool.pool().write_row(layer, row, &bytes)?;
    }
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
    let ids: Vec<i32> = (0..4 * K)
        .map(|i| match i % K {
            0 => stable + (i / K % 2) as i32,
            1 => -1,
            2 if step > 0 => stable - 1,
            _ => ((i * 13 + step * 5) % OLD) as i32,
        })
        .collect();
    let blocks: Vec<i32> = (0..16).chain(0..16).collect();
    let batch = Batch {
        ids: &ids,
        ids_stride: K,
        k: K,
        cu_q: &[0, 2, 4],
        state: &[1, 0],
        generation: &[7, 7],
        stable_len: &[stable; 2],
        seq_len: &[stable + 2; 2],
        block_table: &blocks,
        block_stride: 16,
    };
    let rows = [0, 1].map(|layer| fresh_rows(stable, layer));
    let parts = [0, 1].map(|l: usize| [&rows[l].0[..], &rows[l].1[..]]);
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
        if !verify(engine, plan, &ids, layer, left, outcome) {
            return false;
        }
    }
    (0..LAYERS).all(|layer| {
        insist(left, &mut outcome.errors, || engine.append(&batch, layer, &fresh[layer]))
    })
}

/// The four rows of a step, segment by segment.
fn fresh_rows(stable: i32, layer: usize) -> (Vec<u8>, Vec<u8>) {
    let (mut first, mut second, mut row) = (Vec::new(), Vec::new(), [0; 40]);
    for at in 0..4 {
        fill_row(stable + at % 2, NEW + layer as u32, &mut row);
        first.extend(&row[..32]);
        second.extend(&row[32..]);
    }
    (first, second)
}

/// Every returned row is what the pool and this step say.
fn verify(
    engine: &mut Engine,
    plan: &Plan,
    ids: &[i32],
    layer: usize,
    left: &mut usize,
    outcome: &mut Outcome,
) -> bool {
    let mut got = [0; 40];
    for (at, &id) in ids.iter().enumerate() {
        let (row, state) = (at / K, 1 - at / K / 2);
        let slot = plan.slots(row)[at % K];
        let Ok(slot) = usize::try_from(slot) else {
            assert_eq!(id, -1, "row {row}: only padding has no slot");
            continue;
        };
        let read = insist(left, &mut outcome.errors, || {
            engine.buffer().slot_bytes(state, layer, slot, &mut got)
        });
        if !read {
            return false;
        }
        let version = if id < OLD as i32 { 0 } else { NEW } + layer as u32;
        assert!(check_row(id, version, &got), "layer {layer}, row {row}, id {id}, slot {slot}");
        outcome.rows += 1;
    }
    true
}
