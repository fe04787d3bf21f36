//! The strategies S1, S2 and S3, measured on this machine's cores.

use std::time::Instant;

use anyhow::{Context, Result};
use avsg::cpu::worker_pool::{Stage, WorkerPool};
use avsg::device::stage_two::{RequestMisses, Strategy, for_each_range};
use avsg::engine::Engine;
use serde::Serialize;

use super::miss_lists::{STRATEGIES, miss_lists};
use super::stats::summary;

/// One row of the table; arrays of three are S1, S2, S3.
#[derive(Serialize)]
pub struct Row {
    /// Requests per batch.
    pub requests: usize,
    /// Percent of the selected ids that are resident.
    pub reuse: u32,
    /// The layout of the hits among a request's ids: contiguous or scattered.
    pub hits: &'static str,
    /// Rows that are copied.
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
    /// Transfers of each strategy.
    pub repeats: usize,
}

impl Bench<'_> {
    /// Measures one cell: all three strategies over the same misses, in turns.
    pub fn cell(&mut self, requests: usize, reuse: u32, scattered: bool) -> Result<Row> {
        let k = self.engine.config().params.k as usize;
        let lists = miss_lists(k, requests, reuse, scattered, 7);
        let rows = lists.iter().map(Vec::len).sum();
        let mut times = [const { Vec::new() }; 3];
        for repeat in 0..self.repeats {
            for turn in 0..3 {
                let index = (repeat + turn) % 3;
                let time = self.transfer(STRATEGIES[index], &lists, k, 3 * repeat + turn)?;
                times[index].push(time);
            }
        }
        let measured_us = times.map(|mut t| summary(&mut t).first_decile);
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
        Ok(start.elapsed().as_secs_f64() * 1e6)
    }
}
