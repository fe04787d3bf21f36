//! The setting `AVSG`: an engine over a pool in a file.

use std::time::Instant;

use crate::batch::OwnedBatch;
use crate::content::fill_row;
use crate::exact::for_each_id;
use anyhow::{Context, Result};
use avsg::device::memory::state_words;
use avsg::device::params::Params;
use avsg::disk::{DiskInfo, PoolFile};
use avsg::engine::{Batch, Config, Engine};
use avsg::plan::Plan;
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;

use super::rows::{Setting, Step};
use crate::stats::us_since;

/// Bytes of the queue of writes, which only fills the file here. They count as memory of the setting.
const QUEUE_BYTES: usize = 1 << 16;

/// An engine with one state, and the plan of its steps.
pub struct Operator {
    engine: Engine,
    plan: Plan,
    batch: OwnedBatch,
    memory_bytes: usize,
}

impl Operator {
    /// Fills a pool in a file below `folder` with `rows` rows of each layer, and makes an engine with `k` ids
    /// per step over it.
    pub fn new(file: PoolFile, shape: [usize; 3], k: usize, slots: u32) -> Result<Self> {
        let [layers, rows, row_bytes] = shape;
        let file = PoolFile { queue_bytes: QUEUE_BYTES, ..file };
        let format = RowFormat::single(row_bytes)?;
        let pool = PoolConfig { file: Some(file), ..PoolConfig::new(layers, rows, format) };
        let config = Config::new(Params::wide(u32::try_from(k).unwrap_or(u32::MAX), 1, slots), 1);
        let memory_bytes = memory_bytes(&config, &pool)?;
        let pool = HostPool::new(&pool)?;
        let mut row = vec![0; row_bytes];
        for id in 0..rows {
            for layer in 0..layers {
                fill_row(id as i32, layer as u32, &mut row);
                pool.write_row(layer, id, &row)?;
            }
        }
        pool.flush()?;
        let engine = Engine::new(config, pool)?;
        let plan = engine.new_plan(1, 1)?;
        Ok(Self { engine, plan, batch: OwnedBatch::uniform(k, 1, 1, rows), memory_bytes })
    }

    /// Returns the pool that has the rows.
    pub fn pool(&self) -> &HostPool {
        self.engine.pool()
    }

    /// Returns what the file of the pool is.
    pub fn info(&self) -> Result<DiskInfo> {
        self.engine.pool().disk_info().context("the pool has no file")
    }

    /// Plans the rows of `ids` with empty tables, and returns the microseconds in which the transfer of the first
    /// layer reads all of them.
    pub fn read_all(&mut self, ids: &[i32]) -> Result<f64> {
        self.batch.generation[0] += 1;
        self.engine.plan(&Batch { ids, ..self.batch.batch() }, &mut self.plan)?;
        let start = Instant::now();
        self.engine.transfer(&mut self.plan, 0, None)?;
        Ok(us_since(start))
    }
}

/// Returns the bytes of slots, tables, bounce buffers and the queue of writes. Working columns, which each core
/// needs for any number of rows, are left out, as the stacks and the code of the other settings are.
fn memory_bytes(config: &Config, pool: &PoolConfig) -> Result<usize> {
    let (slots, with_bounce) = Engine::bytes_needed(config, pool)?;
    let plan = Engine::plan_bytes(config, pool, 1, 1)?;
    let in_memory = PoolConfig { file: None, ..pool.clone() };
    let (_, without_bounce) = Engine::bytes_needed(config, &in_memory)?;
    let plan = plan - Engine::plan_bytes(config, &in_memory, 1, 1)?;
    let tables = 4 * state_words(&config.params);
    let bounce = with_bounce - without_bounce + plan;
    Ok(slots + tables + bounce + HostPool::plan_bytes(pool)?)
}

impl Setting for Operator {
    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn step(&mut self, ids: &[i32]) -> Result<Step> {
        let Self { engine, plan, batch, .. } = self;
        batch.ids.copy_from_slice(ids);
        let layers = engine.pool().layers();
        let before = engine.pool().disk_stats().unwrap_or_default();
        let start = Instant::now();
        engine.step(&batch.batch(), plan, 0, None)?;
        for layer in 1..layers {
            engine.transfer(plan, layer, None)?;
        }
        let us = us_since(start);
        let after = engine.pool().disk_stats().context("the pool has no file")?;
        let mut wrong_rows = 0;
        for layer in 0..layers {
            for_each_id(
                &self.batch.batch(),
                self.engine.pool().format().bytes(),
                |row| self.plan.slots(row),
                |state, slot, row| self.engine.buffer().slot_bytes(state, layer, slot, row).is_ok(),
                |_, id| (id, layer as u32),
                |seen| wrong_rows += usize::from(!seen.exact),
            );
        }
        let (reads, bytes) = (after.reads - before.reads, after.read_bytes - before.read_bytes);
        Ok(Step { us, reads: reads as usize, bytes: bytes as usize, wrong_rows })
    }
}
