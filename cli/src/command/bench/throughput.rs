//! Stage Two through the engine beside plain loops over the same kind of rows.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use avsg::copy::Copier;
use avsg::cpu::worker_pool::WorkerPool;
use avsg::device::stage_two::cut;
use avsg::engine::{Batch, Engine};
use avsg::plan::Plan;
use serde::Serialize;

use super::stats::summary;

/// Requests of a batch: 16384 rows of K = 2048, several ms of copying.
pub const REQUESTS: usize = 8;
/// Loops that the engine is compared with, `memcpy` a row first.
const LOOPS: [Copier; 5] = [
    Copier::Plain,
    Copier::Prefetch { ahead: 1 },
    Copier::Prefetch { ahead: 4 },
    Copier::Stream { ahead: 1 },
    Copier::Stream { ahead: 4 },
];
/// Workers spin for a while after a launch: those of the other contender are to be asleep.
const REST: Duration = Duration::from_millis(1);

/// 10^9 bytes a second each, from the quiet tenth of the times.
#[derive(Serialize)]
pub struct Throughput {
    pub row_bytes: usize,
    /// Rows of one transfer.
    pub rows: usize,
    pub cores: usize,
    /// How the engine copies.
    pub copier: String,
    pub engine_gbs: f64,
    /// One `memcpy` after the other.
    pub memcpy_gbs: f64,
    /// The best of all loops, and which.
    pub best_loop_gbs: f64,
    pub best_loop: String,
    /// The engine's share of it, percent.
    pub percent_of_best: f64,
    /// Every loop.
    pub loops: Vec<Loop>,
}

/// A plain loop over (from, to).
#[derive(Serialize)]
pub struct Loop {
    pub copier: String,
    pub gbs: f64,
}

/// (from, to) of every row of a plan.
struct Moves(Vec<(*const u8, *mut u8)>);

// SAFETY: the addresses are only dereferenced in `copy`, whose contract covers threads.
unsafe impl Sync for Moves {}

impl Moves {
    /// Those of a plan whose first request has state `first`, the second the next, and so on.
    fn of(engine: &Engine, plan: &Plan, first: usize) -> Result<Self> {
        let rows = engine.pool().view(0, 0)?;
        let mut all = Vec::with_capacity(plan.total_misses());
        for request in 0..plan.requests() {
            let (misses, to) = (plan.misses(request), engine.buffer().view(first + request, 0, 0)?);
            let ends = misses.row.iter().zip(misses.slot);
            all.extend(ends.map(|(&row, &slot)| (rows.ptr(row as usize), to.ptr(slot as usize))));
        }
        Ok(Self(all))
    }

    /// One core's share.
    fn copy(&self, copier: Copier, bytes: usize, core: usize, cores: usize) {
        let mine = &self.0[cut(self.0.len(), core, cores)..cut(self.0.len(), core + 1, cores)];
        // SAFETY: a plan names rows of the engine's pool and distinct slots of its buffer, both of
        // `bytes` bytes (one segment); shares are disjoint, nobody else runs meanwhile.
        unsafe { copier.copy_rows(mine.len(), bytes, |i| mine[i].0, |i| mine[i].1) };
    }
}

/// Batches in which nothing is resident.
struct Cold {
    order: Vec<i32>,
    at: usize,
    generation: i32,
    k: usize,
    requests: usize,
    /// The batch's first state.
    first: usize,
}

impl Cold {
    /// Plans the next rows, a new generation forgets all that is in the table; and for other states
    /// than the last batch's, as slots of many layers are not in the cache either.
    fn plan(&mut self, engine: &mut Engine, plan: &mut Plan) -> Result<()> {
        let need = self.requests * self.k;
        if self.at + need > self.order.len() {
            self.at = 0;
        }
        let ids = &self.order[self.at..][..need];
        self.at += need;
        self.generation += 1;
        // The last one is `rouse`'s.
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
            },
            plan,
        )?;
        Ok(())
    }
}

/// A plan of one request, of a state that the others leave alone: its transfer, again and again,
/// wakes the workers before the clock starts.
fn rouse(engine: &mut Engine, ids: &[i32]) -> Result<Plan> {
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
    };
    engine.plan(&batch, &mut plan)?;
    Ok(plan)
}

/// Measures on an engine of two states or more; `order` are the pool's rows in random order. At least one batch of rows.
pub fn measure(engine: &mut Engine, order: &[i32], repeats: usize) -> Result<Throughput> {
    let (config, bytes) = (*engine.config(), engine.pool().format().bytes());
    let (k, cores) = (config.params.k as usize, config.cores);
    let requests = REQUESTS.min(config.states - 1).min(order.len() / k);
    let mut cold = Cold { order: order.to_vec(), at: 0, generation: 0, k, requests, first: 0 };
    let mut plan = engine.new_plan(requests, requests)?;
    let mut first = rouse(engine, &order[..k])?;
    let mut workers = WorkerPool::new(cores)?;
    let mut times = vec![Vec::with_capacity(repeats); LOOPS.len() + 1];
    for repeat in 0..repeats {
        for turn in 0..times.len() {
            let who = (repeat + turn) % times.len();
            // Other rows for each, so that none finds in the cache what the last one read.
            cold.plan(engine, &mut plan)?;
            thread::sleep(REST);
            let time = if who == LOOPS.len() {
                engine.transfer(&mut first, 0, None)?;
                let start = Instant::now();
                engine.transfer(&mut plan, 0, None)?;
                start.elapsed()
            } else {
                let moves = Moves::of(engine, &plan, cold.first)?;
                workers.launch(u64::MAX, None, Some(&|_, _| ()))?;
                let start = Instant::now();
                let copy = |core, _| moves.copy(LOOPS[who], bytes, core, cores);
                workers.launch(u64::MAX, None, Some(&copy))?;
                start.elapsed()
            };
            times[who].push(time.as_secs_f64() * 1e6);
        }
    }
    let rows = plan.total_misses();
    let rates: Vec<f64> =
        times.iter_mut().map(|t| (rows * bytes) as f64 / summary(t).quiet / 1e3).collect();
    let best = (0..LOOPS.len()).max_by(|&a, &b| rates[a].total_cmp(&rates[b])).unwrap_or(0);
    Ok(Throughput {
        row_bytes: bytes,
        rows,
        cores,
        copier: engine.copier().map_or_else(|| "device".into(), |c| c.to_string()),
        engine_gbs: rates[LOOPS.len()],
        memcpy_gbs: rates[0],
        best_loop_gbs: rates[best],
        best_loop: LOOPS[best].to_string(),
        percent_of_best: 100.0 * rates[LOOPS.len()] / rates[best],
        loops: (LOOPS.iter().zip(&rates))
            .map(|(copier, &gbs)| Loop { copier: copier.to_string(), gbs })
            .collect(),
    })
}
