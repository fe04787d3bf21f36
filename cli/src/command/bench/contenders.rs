//! Who is timed in `avsg bench match`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::baseline::{HashMapLru, LruCrate, Matcher, Miss, PreviousStep, ScalarTable};
use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::cpu::stage::StandaloneTable;
use avsg::device::params::Params;

/// Matches one token's ids: slots for all, a list of what is to be copied.
pub trait Contender {
    /// Does it.
    fn step(&mut self, ids: &[i32]);

    /// Does it and says how long it took.
    fn time(&mut self, ids: &[i32]) -> Duration {
        let start = Instant::now();
        self.step(black_box(ids));
        start.elapsed()
    }
}

/// This operator's Stage One.
struct Ours {
    trial: StandaloneTable,
    machine: Machine,
}

impl Contender for Ours {
    fn step(&mut self, ids: &[i32]) {
        black_box(self.trial.step_on(self.machine, ids, 1, -1));
    }
}

/// A baseline with room for its outputs.
struct Other<M> {
    matcher: M,
    slots: Vec<i32>,
    misses: Vec<Miss>,
}

impl<M: Matcher> Contender for Other<M> {
    fn step(&mut self, ids: &[i32]) {
        self.matcher.step(ids, &mut self.slots, &mut self.misses);
        black_box((&self.slots, &self.misses));
    }
}

fn other<M: Matcher + 'static>(matcher: M, k: usize) -> Box<dyn Contender> {
    Box::new(Other { matcher, slots: vec![-1; k], misses: Vec::with_capacity(k) })
}

/// This operator on two machines, the scalar table, dual pointer, HashMap + LRU, LRU crate.
pub fn line_up(params: &Params, machines: [Machine; 2]) -> Result<Vec<Box<dyn Contender>>> {
    let (k, slots) = (params.k as usize, params.slots as usize);
    let mut all: Vec<Box<dyn Contender>> = Vec::new();
    for machine in machines {
        all.push(Box::new(Ours { trial: StandaloneTable::new(params)?, machine }));
    }
    all.extend([
        other(ScalarTable::new(slots)?, k),
        other(PreviousStep::new(k)?, k),
        other(HashMapLru::new(slots)?, k),
        other(LruCrate::new(slots)?, k),
    ]);
    Ok(all)
}
