//! The matchers that `avsg bench match` times.

use std::hint::black_box;

use crate::baseline::{HashMapLru, LruCrate, Matcher, Miss, PreviousStep, ScalarTable};
use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::cpu::standalone_table::StandaloneTable;
use avsg::device::params::Params;

/// A matcher that is timed.
pub trait Contender {
    /// Gives each id of one token a slot and lists the misses.
    fn step(&mut self, ids: &[i32]);

    /// Does what the misses need not wait for.
    fn learn(&mut self) {}
}

struct StageOne {
    table: StandaloneTable,
    machine: Machine,
}

impl Contender for StageOne {
    fn step(&mut self, ids: &[i32]) {
        black_box(self.table.stage_one(self.machine, ids, 1, -1));
    }

    fn learn(&mut self) {
        self.table.learn();
    }
}

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

fn stage_one(params: &Params, machine: Machine) -> Result<Box<dyn Contender>> {
    Ok(Box::new(StageOne { table: StandaloneTable::new(params)?, machine }))
}

fn baseline(matcher: impl Matcher + 'static, k: usize) -> Box<dyn Contender> {
    Box::new(Baseline { matcher, slots: vec![-1; k], misses: Vec::with_capacity(k) })
}

/// Returns, in this order: the scalar table, dual pointer, HashMap + LRU, and the LRU crate, and then for
/// each of `rules`, which are one geometry, this operator on each of `machines`.
pub fn line_up(rules: &[Params], machines: [Machine; 2]) -> Result<Vec<Box<dyn Contender>>> {
    let (k, slots) = (rules[0].k as usize, rules[0].slots as usize);
    let mut all = vec![
        baseline(ScalarTable::new(slots)?, k),
        baseline(PreviousStep::new(k)?, k),
        baseline(HashMapLru::new(slots)?, k),
        baseline(LruCrate::new(slots)?, k),
    ];
    for params in rules {
        for machine in machines {
            all.push(stage_one(params, machine)?);
        }
    }
    Ok(all)
}
