//! The planners that `avsg bench match --requests B` races and `avsg bench busy` times, and their steps.

use anyhow::Result;
use avsg::device::params::Params;
use avsg::engine::{Batch, Config, Engine, MachineChoice};
use avsg::plan::Plan;
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::RowFormat;

use crate::baseline::ResidentLru;
use crate::baseline::resident_lru::Selection;
use crate::trace::Trace;
use avsg_testkit::batch::OwnedBatch;

/// Bytes of a pool's row. No planner copies rows, so the shortest row serves.
const ROW_BYTES: usize = 8;

/// The sizes of a race.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub requests: usize,
    /// N_q, the tokens of a request in one step.
    pub tokens: usize,
    /// The threads of each planner, the caller's included.
    pub threads: usize,
    /// The number of ids, which are below it.
    pub ids: usize,
}

/// A planner of whole batches that is timed.
pub trait Planner {
    /// Gives every id of a batch `[B, N_q, K]` its slot and lists the misses of each request.
    fn plan(&mut self, ids: &[i32]) -> Result<()>;

    /// Returns the number of misses that the last plan lists.
    fn misses(&mut self) -> usize;
}

/// vLLM-Ascend's planner: every token has a buffer of its own.
pub struct PerTokenLru {
    lru: ResidentLru,
    requests: Vec<i64>,
    stable: Vec<i32>,
}

impl PerTokenLru {
    /// Creates the buffers of all tokens with `slots` slots each.
    pub fn new(sizes: &Sizes, k: usize, slots: usize) -> Result<Self> {
        let rows = sizes.requests * sizes.tokens;
        Ok(Self {
            lru: ResidentLru::new(rows, k, slots, sizes.ids, sizes.threads)?,
            requests: (0..rows).map(|row| (row / sizes.tokens) as i64).collect(),
            stable: vec![i32::MAX; rows],
        })
    }
}

impl Planner for PerTokenLru {
    fn plan(&mut self, ids: &[i32]) -> Result<()> {
        let (requests, stable) = (&self.requests, &self.stable);
        Ok(self.lru.step(&Selection { ids, requests, stable })?)
    }

    fn misses(&mut self) -> usize {
        (0..self.requests.len()).map(|row| self.lru.row(row).misses).sum()
    }
}

/// This operator's engine with one table for each request, as a serving engine calls it.
pub struct EnginePlanner {
    engine: Engine,
    plan: Plan,
    /// The batch of every step but its ids.
    batch: OwnedBatch,
}

impl EnginePlanner {
    /// Creates an engine whose requests have `config.params.tokens` tokens each.
    pub fn new(config: Config, pool: &PoolConfig) -> Result<Self> {
        let (p, requests) = (config.params, config.states);
        let batch = OwnedBatch::uniform(p.k as usize, requests, p.tokens as usize, pool.rows);
        let engine = Engine::new(config, HostPool::new(pool)?)?;
        Ok(Self { plan: engine.new_plan(batch.rows(), requests)?, engine, batch })
    }

    /// Returns the name of the vector machine that runs the kernels.
    pub fn machine(&self) -> &'static str {
        self.engine.machine().unwrap_or("none")
    }

    /// Plans a step and copies the missing rows.
    pub fn step(&mut self, ids: &[i32]) -> Result<()> {
        let batch = Batch { ids, ..self.batch.batch() };
        Ok(self.engine.step(&batch, &mut self.plan, 0, None)?)
    }
}

impl Planner for EnginePlanner {
    fn plan(&mut self, ids: &[i32]) -> Result<()> {
        Ok(self.engine.plan(&Batch { ids, ..self.batch.batch() }, &mut self.plan)?)
    }

    fn misses(&mut self) -> usize {
        self.plan.total_misses()
    }
}

impl Sizes {
    /// Creates an engine with one table for every `params.tokens` tokens of a request.
    pub fn planner(&self, params: Params, machine: MachineChoice) -> Result<EnginePlanner> {
        let tables = self.requests * self.tokens / params.tokens as usize;
        let format = RowFormat::single(ROW_BYTES)?;
        let pool = PoolConfig { pages: Pages::Plain, ..PoolConfig::new(1, self.ids, format) };
        let config = Config { cores: self.threads, machine, ..Config::new(params, tables) };
        EnginePlanner::new(config, &pool)
    }
}

/// Returns the number of rows that a pool needs for every id of these traces.
pub fn rows_of(traces: &[Trace]) -> usize {
    traces.iter().filter_map(Trace::largest_id).max().map_or(1, |id| id as usize + 1)
}

/// Fills `ids` with a step's batch `[B, N_q, K]`. Request b reads its own trace, of which N_q rows in
/// a row are the tokens of one step.
pub fn fill_batch(traces: &[Trace], tokens: usize, step: usize, ids: &mut Vec<i32>) {
    ids.clear();
    for trace in traces {
        for token in 0..tokens {
            ids.extend_from_slice(trace.row(step * tokens + token, 0));
        }
    }
}
