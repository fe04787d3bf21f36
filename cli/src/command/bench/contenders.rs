//! The matchers that `avsg bench match` times.

use std::hint::black_box;

use crate::baseline::{HashMapLru, LruCrate, Matcher, PreviousStep, ScalarTable};
use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::cpu::standalone_table::StandaloneTable;
use avsg::device::params::Params;

/// A matcher that is timed: it gives each id of one token a slot and lists the misses.
pub type Contender = Box<dyn FnMut(&[i32])>;

fn stage_one(params: &Params, machine: Machine) -> Result<Contender> {
    let mut table = StandaloneTable::new(params)?;
    Ok(Box::new(move |ids| _ = black_box(table.step_on(machine, ids, 1, -1))))
}

fn baseline(mut matcher: impl Matcher + 'static, k: usize) -> Contender {
    let (mut slots, mut misses) = (vec![-1; k], Vec::with_capacity(k));
    Box::new(move |ids| {
        matcher.step(ids, &mut slots, &mut misses);
        black_box((&slots, &misses));
    })
}

/// Returns, in this order: this operator on each of `machines`, the scalar table, dual pointer,
/// HashMap + LRU, and the LRU crate.
pub fn line_up(params: &Params, machines: [Machine; 2]) -> Result<Vec<Contender>> {
    let (k, slots) = (params.k as usize, params.slots as usize);
    let [own, emu] = machines.map(|machine| stage_one(params, machine));
    Ok(vec![
        own?,
        emu?,
        baseline(ScalarTable::new(slots)?, k),
        baseline(PreviousStep::new(k)?, k),
        baseline(HashMapLru::new(slots)?, k),
        baseline(LruCrate::new(slots)?, k),
    ])
}
