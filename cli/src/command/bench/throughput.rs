//! The throughput of the engine's transfer, beside plain copy loops over rows of the same size.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use avsg::copy::Copier;
use avsg::cpu::worker_pool::{Stage, WorkerConfig, WorkerPool};
use avsg::device::stage_two::share_start;
use avsg::engine::{Batch, Engine};
use avsg::plan::Plan;
use serde::Serialize;

use super::stats::{Summary, summary};

/// Requests per batch. With K = 2048 these are 16384 rows, which take several milliseconds to copy.
pub const REQUESTS: usize = 8;
/// The copy loops that the engine is compared with; the first calls `memcpy` once per row.
const LOOPS: [Copier; 5] = [
    Copier::Plain,
    Copier::Prefetch { ahead: 1 },
    Copier::Prefetch { ahead: 4 },
    Copier::Stream { ahead: 1 },
    Copier::Stream { ahead: 4 },
];
/// The pause before a timed transfer. Workers spin for a while after a launch, and the pause lets the
/// workers of the other contender fall asleep.
const PAUSE: Duration = Duration::from_millis(1);

/// Throughputs in 10^9 bytes per second, at the first decile of the times.
#[derive(Serialize)]
pub struct Throughput {
    /// Bytes per row.
    pub row_bytes: usize,
    /// Rows of one transfer.
    pub rows: usize,
    /// Cores that copy.
    pub cores: usize,
    /// The copier that the engine uses.
    pub copier: String,
    /// Throughput of the engine's transfer.
    pub engine_gbs: f64,
    /// The ninth decile of the engine's times divided by their median.
    pub time_spread: f64,
    /// Throughput of the loop with one `memcpy` per row.
    pub memcpy_gbs: f64,
    /// Throughput of the fastest loop.
    pub best_loop_gbs: f64,
    /// The copier of the fastest loop.
    pub best_loop: String,
    /// The engine's throughput in percent of the fastest loop's.
    pub percent_of_best: f64,
    /// The loops that were timed, the engine's excluded.
    pub loops: Vec<Loop>,
}

/// The throughput of one copy loop.
#[derive(Serialize)]
pub struct Loop {
    /// The copier of the loop.
    pub copier: String,
    /// Throughput in 10^9 bytes per second.
    pub gbs: f64,
}

/// (source, destination) of every row that a plan copies.
struct Copies(Vec<(*const u8, *mut u8)>);

// SAFETY: the addresses are only dereferenced in `copy`, where each core uses other rows and slots.
unsafe impl Sync for Copies {}

impl Copies {
    /// Lists the rows of a plan whose requests have the states `first`, `first` + 1, and so on.
    fn new(engine: &Engine, plan: &Plan, first: usize) -> Result<Self> {
        let rows = engine.pool().view(0, 0)?;
        let mut all = Vec::with_capacity(plan.total_misses());
        for request in 0..plan.requests() {
            let (misses, to) = (plan.misses(request), engine.buffer().view(first + request, 0, 0)?);
            let ends = misses.row.iter().zip(misses.slot);
            all.extend(ends.map(|(&row, &slot)| (rows.ptr(row as usize), to.ptr(slot as usize))));
        }
        Ok(Self(all))
    }

    /// Copies the share of one core.
    fn copy(&self, copier: Copier, bytes: usize, core: usize, cores: usize) {
        let share = &self.0
            [share_start(self.0.len(), core, cores)..share_start(self.0.len(), core + 1, cores)];
        // SAFETY: a plan contains rows of the engine's pool and distinct slots of its buffer, both of
        // `bytes` bytes (one segment); the shares of cores are disjoint, and no other transfer runs.
        unsafe { copier.copy_rows(share.len(), bytes, |i| share[i].0, |i| share[i].1) };
    }
}

/// A source of batches in which every id misses.
struct ColdBatches {
    /// The pool's rows in random order.
    order: Vec<i32>,
    /// Position in `order` of the next batch.
    position: usize,
    generation: i32,
    k: usize,
    requests: usize,
    /// The batch's first state.
    first: usize,
}

impl ColdBatches {
    /// Plans the next rows. A new generation empties the tables. The states differ from the last
    /// batch's, because the slots of a model with many layers are not in the cache either.
    fn plan(&mut self, engine: &mut Engine, plan: &mut Plan) -> Result<()> {
        let need = self.requests * self.k;
        if self.position + need > self.order.len() {
            self.position = 0;
        }
        let ids = &self.order[self.position..][..need];
        self.position += need;
        self.generation += 1;
        // The last state belongs to the plan that wakes the workers.
        let states = engine.config().states - 1;
        self.first =
            if self.first + 2 * self.requests > states { 0 } else { self.first + self.requests };
        let (n, first) = (self.requests as i32, self.first as i32);
        engine.plan(
            &Batch {
                ids,
                ids_stride: self.k,
                k: self.k,
                cu_q: &(0..=n).collect::<Vec<_>>(),
                state: &(first..first + n).collect::<Vec<_>>(),
                generation: &vec![self.generation; self.requests],
                stable_len: &vec![-1; self.requests],
                seq_len: &vec![self.order.len() as i32; self.requests],
                block_table: &[],
                block_stride: 0,
                indexer: 0,
            },
            plan,
        )?;
        Ok(())
    }
}

/// Plans one request on the last state, which no cold batch uses. The transfer of this plan wakes the
/// workers before a timed transfer.
fn plan_wake_up(engine: &mut Engine, ids: &[i32]) -> Result<Plan> {
    let mut plan = engine.new_plan(1, 1)?;
    let batch = Batch {
        ids,
        ids_stride: ids.len(),
        k: ids.len(),
        cu_q: &[0, 1],
        state: &[engine.config().states as i32 - 1],
        generation: &[-1],
        stable_len: &[-1],
        seq_len: &[engine.pool().rows() as i32],
        block_table: &[],
        block_stride: 0,
        indexer: 0,
    };
    engine.plan(&batch, &mut plan)?;
    Ok(plan)
}

/// Measures the transfers of `engine`, which needs at least two states. `order` contains the pool's
/// rows in random order, at least K of them.
pub fn measure(engine: &mut Engine, order: &[i32], repeats: usize) -> Result<Throughput> {
    let (config, bytes) = (engine.config().clone(), engine.pool().format().bytes());
    let (k, cores) = (config.params.k as usize, config.cores);
    let requests = REQUESTS.min(config.states - 1).min(order.len() / k);
    let order_of_batches = order.to_vec();
    let mut batches =
        ColdBatches { order: order_of_batches, position: 0, generation: 0, k, requests, first: 0 };
    let mut plan = engine.new_plan(requests, requests)?;
    let mut wake_up = plan_wake_up(engine, &order[..k])?;
    let threads = engine.threads().unwrap_or(1);
    let workers = WorkerPool::new(&WorkerConfig::new(threads))?;
    let mut times = vec![Vec::with_capacity(repeats); LOOPS.len() + 1];
    for repeat in 0..repeats {
        for turn in 0..times.len() {
            let contender = (repeat + turn) % times.len();
            // Each contender copies other rows, so that the last one's rows are not in its cache.
            batches.plan(engine, &mut plan)?;
            thread::sleep(PAUSE);
            let time = if contender == LOOPS.len() {
                engine.transfer(&mut wake_up, 0, None)?;
                let start = Instant::now();
                engine.transfer(&mut plan, 0, None)?;
                start.elapsed()
            } else {
                let copies = Copies::new(engine, &plan, batches.first)?;
                let wake = Stage { pieces: cores, run: &|_, _| () };
                workers.launch(u64::MAX, None, Some(wake))?;
                let start = Instant::now();
                let copy = |core, _| copies.copy(LOOPS[contender], bytes, core, cores);
                workers.launch(u64::MAX, None, Some(Stage { pieces: cores, run: &copy }))?;
                start.elapsed()
            };
            times[contender].push(time.as_secs_f64() * 1e6);
        }
    }
    let rows = plan.total_misses();
    let summaries: Vec<_> = times.iter_mut().map(|t| summary(t)).collect();
    let rate = |summary: &Summary| (rows * bytes) as f64 / summary.first_decile / 1e3;
    let rates: Vec<f64> = summaries.iter().map(rate).collect();
    let best = (0..LOOPS.len()).max_by(|&a, &b| rates[a].total_cmp(&rates[b])).unwrap_or(0);
    Ok(Throughput {
        row_bytes: bytes,
        rows,
        cores,
        copier: engine.copier().map_or_else(|| "device".into(), |c| c.to_string()),
        engine_gbs: rates[LOOPS.len()],
        time_spread: summaries[LOOPS.len()].spread,
        memcpy_gbs: rates[0],
        best_loop_gbs: rates[best],
        best_loop: LOOPS[best].to_string(),
        percent_of_best: 100.0 * rates[LOOPS.len()] / rates[best],
        loops: (LOOPS.iter().zip(&rates))
            .map(|(copier, &gbs)| Loop { copier: copier.to_string(), gbs })
            .collect(),
    })
}
