//! The throughput of the engine's transfer, beside plain copy loops over rows of the same size.

use std::borrow::Cow;
use std::cell::RefCell;
use std::iter::Cycle;
use std::ptr;
use std::slice::ChunksExact;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use avsg::copy::Copier;
use avsg::cpu::worker_pool::{Stage, WorkerConfig, WorkerPool};
use avsg::device::stage_two::share_start;
use avsg::engine::{Batch, Engine};
use avsg::plan::Plan;

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

/// Batches in which every id misses, and the plan of the last one.
struct Cold<'a> {
    engine: &'a mut Engine,
    /// The ids of each batch: the pool's rows in random order.
    ids: Cycle<ChunksExact<'a, i32>>,
    batch: OwnedBatch,
    plan: Plan,
}

impl Cold<'_> {
    /// Plans the next batch, and waits. A new generation empties the tables. The states differ from the last
    /// batch's, because the slots of a model with many layers are not in the cache either.
    fn next(&mut self) -> Result<()> {
        let Self { engine, ids, batch, plan } = self;
        let (requests, ids) = (batch.state.len() as i32, ids.next().unwrap_or_default());
        batch.generation.iter_mut().for_each(|generation| *generation += 1);
        // The last state belongs to the plan that wakes the workers.
        let (states, next) = (engine.config().states as i32 - 1, batch.state[0] + requests);
        let first = if next + requests > states { 0 } else { next };
        batch.state = (first..first + requests).collect();
        engine.plan(&Batch { ids, ..batch.batch() }, plan)?;
        thread::sleep(PAUSE);
        Ok(())
    }

    /// Returns the addresses (source, destination) of every row that the plan copies.
    fn copies(&self) -> Result<Vec<(usize, usize)>> {
        let from = self.engine.pool().view(0, 0)?;
        let mut all = Vec::with_capacity(self.plan.total_misses());
        for (request, &state) in self.batch.state.iter().enumerate() {
            let to = self.engine.buffer().view(state as usize, 0, 0)?;
            let misses = self.plan.misses(request);
            let from = misses.row.iter().map(|&row| from.ptr(row as usize).expose_provenance());
            let to = misses.slot.iter().map(|&slot| to.ptr(slot as usize).expose_provenance());
            all.extend(from.zip(to));
        }
        Ok(all)
    }
}

/// Measures the transfers of `engine`, which needs at least two states. `order` contains the pool's
/// rows in random order, at least K of them. Returns the rows that a run copies, and the times of each copier with its
/// name: those of the loops, of which the first calls `memcpy` once per row, and then the engine's.
pub fn measure(
    engine: &mut Engine,
    order: &[i32],
    repeats: usize,
) -> Result<(usize, Vec<(String, Summary)>)> {
    let (config, bytes) = (engine.config().clone(), engine.pool().format().bytes());
    let (k, cores) = (config.params.k as usize, config.cores);
    let requests = REQUESTS.min(config.states - 1).min(order.len() / k);
    // A plan of one request on the last state, which no cold batch uses. Its transfer wakes the workers before a timed
    // transfer.
    let mut wake_up = engine.new_plan(1, 1)?;
    let mut one = OwnedBatch::uniform(k, 1, 1, order.len());
    (one.state[0], one.generation[0]) = (config.states as i32 - 1, -1);
    engine.plan(&Batch { ids: &order[..k], ..one.batch() }, &mut wake_up)?;
    let threads = engine.cpu().map_or(1, |cpu| cpu.threads);
    let own = engine.cpu().map_or_else(|| "device".into(), |cpu| cpu.copier.to_string());
    let workers = &WorkerPool::new(&WorkerConfig::new(threads))?;
    let cold = &RefCell::new(Cold {
        ids: order.chunks_exact(requests * k).cycle(),
        batch: OwnedBatch::uniform(k, requests, 1, order.len()),
        plan: engine.new_plan(requests, requests)?,
        engine,
    });
    // Each contender copies other rows, so that the last one's rows are not in its cache.
    let in_loop = |copier: Copier| {
        Contender::new(copier.to_string(), vec![""], move |_, us| {
            cold.borrow_mut().next()?;
            let copies = cold.borrow().copies()?;
            let wake = Stage { pieces: cores, run: &|_, _| () };
            workers.launch(u64::MAX, [None, Some(wake)], None)?;
            let start = Instant::now();
            let copy = |core, _| {
                let share = |core| share_start(copies.len(), core, cores);
                let share = &copies[share(core)..share(core + 1)];
                let from = |at: usize| ptr::with_exposed_provenance(share[at].0);
                let to = |at: usize| ptr::with_exposed_provenance_mut(share[at].1);
                // SAFETY: a plan contains rows of the engine's pool and distinct slots of its buffer, both of
                // `bytes` bytes (one segment); the shares of cores are disjoint, and no other transfer runs.
                unsafe { copier.copy_rows(share.len(), bytes, from, to) };
            };
            workers.launch(u64::MAX, [None, Some(Stage { pieces: cores, run: &copy })], None)?;
            us[0] = us_since(start);
            Ok(())
        })
    };
    let mut contenders: Vec<Contender<'_>> = LOOPS.into_iter().map(in_loop).collect();
    contenders.push(Contender::new(own, vec![""], |_, us| {
        let mut cold = cold.borrow_mut();
        cold.next()?;
        let Cold { engine, plan, .. } = &mut *cold;
        engine.transfer(&mut wake_up, &[0], None)?;
        let start = Instant::now();
        engine.transfer(plan, &[0], None)?;
        us[0] = us_since(start);
        Ok(())
    }));
    let turns = Turns { warm_up: 0, steps: repeats, turn: 1, settle: 0 };
    let times = turns.take(&mut contenders, |_| Cow::default(), |_| ())?.concat();
    let named = contenders.into_iter().map(|contender| contender.name).zip(times).collect();
    Ok((cold.borrow().plan.total_misses(), named))
}
