//! The planners that `avsg bench match --requests B` races, and the steps that they plan.

use anyhow::Result;
use avsg::device::params::Params;
use avsg::engine::{Batch, Config, Engine, MachineChoice};
use avsg::plan::Plan;
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::RowFormat;

use crate::baseline::ResidentLru;
use crate::baseline::resident_lru::Selection;
use crate::trace::Trace;

/// Bytes of a pool's row. No planner copies rows, so the shortest row serves.
const ROW_BYTES: usize = 8;

/// The sizes of a race.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// B, the number of requests.
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

/// This operator's Stage One, as a serving engine calls it.
pub struct EnginePlanner {
    engine: Engine,
    plan: Plan,
    k: usize,
    cu_q: Vec<i32>,
    state: Vec<i32>,
    generation: Vec<i32>,
    stable_len: Vec<i32>,
    seq_len: Vec<i32>,
}

impl EnginePlanner {
    /// Creates an engine with one table for each request of `params.tokens` tokens. A race with one
    /// table for each token passes parameters of one token.
    pub fn new(sizes: &Sizes, params: Params, machine: MachineChoice) -> Result<Self> {
        let tokens = params.tokens as usize;
        let (rows, requests) =
            (sizes.requests * sizes.tokens, sizes.requests * sizes.tokens / tokens);
        let pool = PoolConfig {
            pages: Pages::Plain,
            ..PoolConfig::new(1, sizes.ids, RowFormat::single(ROW_BYTES)?)
        };
        let config = Config { cores: sizes.threads, machine, ..Config::new(params, requests) };
        let engine = Engine::new(config, HostPool::new(&pool)?)?;
        Ok(Self {
            plan: engine.new_plan(rows, requests)?,
            engine,
            k: params.k as usize,
            cu_q: (0..=requests).map(|request| (request * tokens) as i32).collect(),
            state: (0..requests as i32).collect(),
            generation: vec![1; requests],
            stable_len: vec![-1; requests],
            seq_len: vec![sizes.ids as i32; requests],
        })
    }

    /// Returns the name of the vector machine that runs the kernels.
    pub fn machine(&self) -> &'static str {
        self.engine.machine().unwrap_or("none")
    }
}

impl Planner for EnginePlanner {
    fn plan(&mut self, ids: &[i32]) -> Result<()> {
        let batch = Batch {
            ids,
            ids_stride: self.k,
            k: self.k,
            cu_q: &self.cu_q,
            state: &self.state,
            generation: &self.generation,
            stable_len: &self.stable_len,
            seq_len: &self.seq_len,
            block_table: &[],
            block_stride: 0,
            indexer: 0,
        };
        Ok(self.engine.plan(&batch, &mut self.plan)?)
    }

    fn misses(&mut self) -> usize {
        self.plan.total_misses()
    }
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
