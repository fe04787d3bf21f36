//! The strategies S1, S2 and S3, measured on this machine's cores.

use std::time::Instant;

use anyhow::{Context, Result};
use avsg::cpu::worker_pool::{Stage, WorkerPool};
use avsg::device::stage_two::{RequestMisses, Strategy, for_each_range};
use avsg::engine::Engine;
use avsg_testkit::splitmix::SplitMix64;
use serde::Serialize;

use super::stats::{in_turns, us_since};

/// The strategies in the order of the columns, with their names.
pub const STRATEGIES: [(&str, Strategy); 3] = [
    ("S1 (requests)", Strategy::Request),
    ("S2 (positions)", Strategy::Position),
    ("S3 (misses)", Strategy::Balanced),
];

/// One row of the table; arrays of three are S1, S2, S3.
#[derive(Serialize)]
pub struct Row {
    pub requests: usize,
    pub reuse: u32,
    /// The layout of the hits among a request's ids: contiguous or scattered.
    pub hits: &'static str,
    pub rows: usize,
    /// Microseconds of a transfer, the first decile.
    pub measured_us: [f64; 3],
    /// 10^9 bytes per second at `measured_us`.
    pub measured_gbs: [f64; 3],
}

/// The engine and the settings that all cells share.
pub struct Bench<'a> {
    pub engine: &'a Engine,
    pub workers: WorkerPool,
    /// The pool's rows in random order.
    pub order: &'a [i32],
    pub repeats: usize,
}

impl Bench<'_> {
    /// Measures one cell: all three strategies over the same misses, in turns.
    pub fn cell(&mut self, requests: usize, reuse: u32, scattered: bool) -> Result<Row> {
        let k = self.engine.config().params.k as usize;
        let lists = miss_lists(k, requests, reuse, scattered);
        let rows = lists.iter().map(Vec::len).sum();
        let mut transfers = 0;
        let summaries = in_turns(self.repeats, 3, |_, index, times| {
            times.push(self.transfer(STRATEGIES[index].1, &lists, k, transfers)?);
            transfers += 1;
            Ok(())
        })?;
        let measured_us = std::array::from_fn(|index| summaries[index].first_decile);
        let bytes = self.engine.pool().format().bytes();
        Ok(Row {
            requests,
            reuse,
            hits: if scattered { "scattered" } else { "contiguous" },
            rows,
            measured_us,
            measured_gbs: measured_us.map(|us| (rows * bytes) as f64 / us / 1e3),
        })
    }

    /// Returns the microseconds of one transfer. Each `turn` uses other rows and states.
    fn transfer(
        &mut self,
        strategy: Strategy,
        lists: &[Vec<i32>],
        k: usize,
        turn: usize,
    ) -> Result<f64> {
        let (engine, order, cores) = (self.engine, self.order, self.engine.config().cores);
        let bytes = engine.pool().format().bytes();
        let copier = engine.copier().context("only the CPU device can be measured")?;
        let rows = engine.pool().view(0, 0)?;
        let first = turn * lists.len() * k;
        let copy = |core: usize, _: usize| {
            let share = |r: usize| RequestMisses { positions: &lists[r], selected: k };
            for_each_range(strategy, core, cores, lists.len(), share, |request, range| {
                // Each turn uses other states, because the slots of a model with many layers are not
                // in the cache either.
                let state = (turn * lists.len() + request) % engine.config().states;
                let Ok(to) = engine.buffer().view(state, 0, 0) else { return };
                let row = |i: usize| order[(first + request * k + range.start + i) % order.len()];
                let from = |i: usize| rows.ptr(row(i) as usize);
                // The slot of a miss is its position in the list, which is distinct and below K <= S.
                let slot = |i: usize| to.ptr(range.start + i);
                // SAFETY: `order` contains rows of the pool, the pieces of a list are disjoint and so
                // are their slots, rows and slots have `bytes` bytes (one segment), and the borrowed
                // engine runs no transfer.
                unsafe { copier.copy_rows(range.len(), bytes, from, slot) };
            });
        };
        self.workers.launch(u64::MAX, None, Some(Stage { pieces: cores, run: &|_, _| () }))?;
        let start = Instant::now();
        self.workers.launch(u64::MAX, None, Some(Stage { pieces: cores, run: &copy }))?;
        Ok(us_since(start))
    }
}

/// Returns for each request the positions of its `k` ids that miss, when `reuse` percent hit. The hits are
/// the first positions, or random ones if `scattered`.
fn miss_lists(k: usize, requests: usize, reuse: u32, scattered: bool) -> Vec<Vec<i32>> {
    let hits = k * reuse as usize / 100;
    let mut random = SplitMix64::new(7);
    let list = |_| {
        let mut positions: Vec<i32> = (0..k as i32).collect();
        if scattered {
            random.shuffle(&mut positions);
        }
        let mut missing = positions.split_off(hits);
        missing.sort_unstable();
        missing
    };
    (0..requests).map(list).collect()
}
