//! The matchers that `avsg bench match` times.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::baseline::{HashMapLru, LruCrate, Matcher, Miss, PreviousStep, ScalarTable};
use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::cpu::standalone_table::StandaloneTable;
use avsg::device::params::Params;

/// A matcher that is timed.
pub trait Contender {
    /// Matches the ids of one token: gives each id a slot and lists the misses.
    fn step(&mut self, ids: &[i32]);

    /// Matches the ids of one token and returns the time that it took.
    fn time(&mut self, ids: &[i32]) -> Duration {
        let start = Instant::now();
        self.step(black_box(ids));
        start.elapsed()
    }
}

/// This operator's Stage One.
struct StageOne {
    table: StandaloneTable,
    machine: Machine,
}

impl Contender for StageOne {
    fn step(&mut self, ids: &[i32]) {
        black_box(self.table.step_on(self.machine, ids, 1, -1));
    }
}

/// A baseline and its output arrays.
struct Baseline<M> {
    matcher: M,
    slots: Vec<i32>,
    misses: Vec<Miss>,
}

impl<M: Matcher> Contender for Baseline<M> {
    fn step(&mut self, ids: &[i32]) {
        self.matcher.step(ids, &mut self.slots, &mut self.misses);
        black_box((&self.slots, &self.misses));
    }
}

fn baseline<M: Matcher + 'static>(matcher: M, k: usize) -> Box<dyn Contender> {
    Box::new(Baseline { matcher, slots: vec![-1; k], misses: Vec::with_capacity(k) })
}

/// Returns, in this order: this operator on each of `machines`, the scalar table, dual pointer,
/// HashMap + LRU, and the LRU crate.
pub fn line_up(params: &Params, machines: [Machine; 2]) -> Result<Vec<Box<dyn Contender>>> {
    let (k, slots) = (params.k as usize, params.slots as usize);
    let mut all: Vec<Box<dyn Contender>> = Vec::new();
    for machine in machines {
        all.push(Box::new(StageOne { table: StandaloneTable::new(params)?, machine }));
    }
    all.extend([
        baseline(ScalarTable::new(slots)?, k),
        baseline(PreviousStep::new(k)?, k),
        baseline(HashMapLru::new(slots)?, k),
        baseline(LruCrate::new(slots)?, k),
    ]);
    Ok(all)
}
