//! The throughput of the engine's transfer, beside plain copy loops over rows of the same size.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::iter::Cycle;
use std::slice::ChunksExact;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use avsg::copy::Copier;
use avsg::cpu::worker_pool::{Stage, WorkerConfig, WorkerPool};
use avsg::device::stage_two::share_start;
use avsg::engine::{Batch, Engine};
use avsg::plan::Plan;
use serde::Serialize;

use crate::batch::OwnedBatch;
use crate::stats::{Summary, us_since};
use crate::turns::{Contender, Turns};

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
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Rows that a run copies.
    pub rows: usize,
    /// The cores that copy.
    pub cores: usize,
    /// The copier that the engine uses.
    pub copier: String,
    /// Throughput of the engine.
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
    /// The throughput of each loop that was timed, the engine's excluded, by its copier.
    pub loops: BTreeMap<String, f64>,
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
struct ColdBatches<'a> {
    /// The ids of each batch: the pool's rows in random order.
    ids: Cycle<ChunksExact<'a, i32>>,
    batch: OwnedBatch,
}

impl ColdBatches<'_> {
    /// Plans the next rows. A new generation empties the tables. The states differ from the last
    /// batch's, because the slots of a model with many layers are not in the cache either.
    fn plan(&mut self, engine: &mut Engine, plan: &mut Plan) -> Result<()> {
        let requests = self.batch.state.len();
        let ids = self.ids.next().unwrap_or_default();
        self.batch.generation.iter_mut().for_each(|generation| *generation += 1);
        // The last state belongs to the plan that wakes the workers.
        let states = engine.config().states - 1;
        let next = self.first() + requests;
        let first = if next + requests > states { 0 } else { next };
        (first as i32..).zip(&mut self.batch.state).for_each(|(state, out)| *out = state);
        Ok(engine.plan(&Batch { ids, ..self.batch.batch() }, plan)?)
    }

    fn first(&self) -> usize {
        self.batch.state[0] as usize
    }
}

/// Plans one request on the last state, which no cold batch uses. The transfer of this plan wakes the
/// workers before a timed transfer.
fn plan_wake_up(engine: &mut Engine, ids: &[i32]) -> Result<Plan> {
    let mut plan = engine.new_plan(1, 1)?;
    let mut batch = OwnedBatch::uniform(ids.len(), 1, 1, engine.pool().rows());
    (batch.state[0], batch.generation[0]) = (engine.config().states as i32 - 1, -1);
    engine.plan(&Batch { ids, ..batch.batch() }, &mut plan)?;
    Ok(plan)
}

/// Measures the transfers of `engine`, which needs at least two states. `order` contains the pool's
/// rows in random order, at least K of them.
pub fn measure(engine: &mut Engine, order: &[i32], repeats: usize) -> Result<Throughput> {
    let (config, bytes) = (engine.config().clone(), engine.pool().format().bytes());
    let (k, cores) = (config.params.k as usize, config.cores);
    let requests = REQUESTS.min(config.states - 1).min(order.len() / k);
    let batch = OwnedBatch::uniform(k, requests, 1, order.len());
    let mut batches = ColdBatches { ids: order.chunks_exact(requests * k).cycle(), batch };
    let mut plan = engine.new_plan(requests, requests)?;
    let mut wake_up = plan_wake_up(engine, &order[..k])?;
    let threads = engine.cpu().map_or(1, |cpu| cpu.threads);
    let workers = WorkerPool::new(&WorkerConfig::new(threads))?;
    let cold = RefCell::new((engine, &mut batches, &mut plan));
    // Each contender copies other rows, so that the last one's rows are not in its cache.
    let next = || -> Result<_> {
        let mut cold = cold.borrow_mut();
        let (engine, batches, plan) = &mut *cold;
        batches.plan(engine, plan)?;
        thread::sleep(PAUSE);
        Ok(cold)
    };
    let (next, workers) = (&next, &workers);
    let in_loop = |copier: Copier| {
        Contender::new("", move |_, us| {
            let cold = next()?;
            let (engine, batches, plan) = &*cold;
            let copies = Copies::new(engine, plan, batches.first())?;
            let wake = Stage { pieces: cores, run: &|_, _| () };
            workers.launch(u64::MAX, [None, Some(wake)], None)?;
            let start = Instant::now();
            let copy = |core, _| copies.copy(copier, bytes, core, cores);
            workers.launch(u64::MAX, [None, Some(Stage { pieces: cores, run: &copy })], None)?;
            us[0] = us_since(start);
            Ok(())
        })
    };
    let mut contenders: Vec<Contender<'_>> = LOOPS.into_iter().map(in_loop).collect();
    contenders.push(Contender::new("", |_, us| {
        let mut cold = next()?;
        let (engine, _, plan) = &mut *cold;
        engine.transfer(&mut wake_up, &[0], None)?;
        let start = Instant::now();
        engine.transfer(plan, &[0], None)?;
        us[0] = us_since(start);
        Ok(())
    }));
    let turns = Turns { warm_up: 0, steps: repeats, turn: 1, settle: 0 };
    let summaries = turns.take(&mut contenders, |_| Cow::default(), |_| ())?.concat();
    drop(contenders);
    let (engine, _, plan) = cold.into_inner();
    let rows = plan.total_misses();
    let rate = |summary: &Summary| (rows * bytes) as f64 / summary.p10 / 1e3;
    let rates: Vec<f64> = summaries.iter().map(rate).collect();
    let best = (0..LOOPS.len()).max_by(|&a, &b| rates[a].total_cmp(&rates[b])).unwrap_or(0);
    Ok(Throughput {
        row_bytes: bytes,
        rows,
        cores,
        copier: engine.cpu().map_or_else(|| "device".into(), |cpu| cpu.copier.to_string()),
        engine_gbs: rates[LOOPS.len()],
        time_spread: summaries[LOOPS.len()].spread(),
        memcpy_gbs: rates[0],
        best_loop_gbs: rates[best],
        best_loop: LOOPS[best].to_string(),
        percent_of_best: 100.0 * rates[LOOPS.len()] / rates[best],
        loops: LOOPS.iter().map(Copier::to_string).zip(rates).collect(),
    })
}
