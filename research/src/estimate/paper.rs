//! The paper's kernel on the clocks of the shim.

use anyhow::{Result, anyhow};
use avsg::Error;
use avsg::device::params::{Lifetime, Params, Table};
use avsg_cli::trace::Trace;
use avsg_linker::ascend::limits::UB_BYTES;
use avsg_sim::cycles::Cycles;
use avsg_sim::shim::{Kernels, Launch};

use super::phase::means;
use super::prices::PRICES;

/// The word of an entry that no id has used: dead, and its link is not valid.
const EMPTY: i32 = (-1 << 24) | (1 << 23);

/// The paper's kernel (`paper_kernel.cpp`), and the steps on which it is timed: the ids of each, and the table
/// before it.
pub struct Paper {
    kernel: Kernels,
    k: usize,
    steps: Vec<(Vec<i32>, Vec<i32>)>,
    /// Misses per step.
    pub misses: f64,
}

/// The result of a launch.
struct Ran {
    cycles: Cycles,
    table: Vec<i32>,
    slots: Vec<i32>,
    misses: i32,
}

impl Paper {
    /// Compiles the kernel for K ids and S slots, with the paper's R and L, and runs all steps of the trace.
    /// All but the first `warm` steps are timed later.
    ///
    /// # Errors
    /// If the table does not fit the unified buffer, or there is no C++ compiler.
    pub fn new(slots: u32, trace: &Trace, warm: usize) -> Result<Self> {
        let k = trace.k;
        let Params { retries, lifetime, table, .. } = Params::paper(k as u32, 1, slots);
        let (Lifetime::Constant(life), Table::Paper { a1, a2 }) = (lifetime, table) else {
            return Err(anyhow!("the paper's table has a constant lifetime and two multipliers"));
        };
        let (lanes, slots) = (k.next_multiple_of(64), slots as usize);
        let scratch = (24 * lanes).max(6 * slots);
        let needs = 10 * slots + slots / 8 + 16 * lanes + scratch + 3 * lanes / 8 + 512;
        if needs > UB_BYTES as usize {
            let (value, limit) =
                (format!("{needs} bytes"), format!("the paper's kernel has {UB_BYTES} bytes"));
            let remedy = "choose fewer slots or a smaller K";
            return Err(Error::invalid("unified buffer", value, limit, remedy).into());
        }
        let text = format!(
            "#include <cstdint>\nconstexpr int32_t K = {k}, S = {slots}, SLOT_BITS = {}, R = {retries}, \
             LIFETIME = {life}, A1 = {}, A2 = {};\n{}",
            slots.ilog2(),
            a1 as usize % slots,
            a2 as usize % slots,
            include_str!("paper_kernel.cpp"),
        );
        let kernel = Kernels::compile(&text, &[]).map_err(|e| anyhow!(e))?;
        let mut paper = Self { kernel, k, steps: Vec::new(), misses: 0.0 };
        let mut table = [-1, EMPTY].repeat(slots);
        for step in 0..trace.steps {
            let ids = trace.row(step, 0).to_vec();
            let ran = paper.run(&ids, table.clone())?;
            // A hit, and a slot that was given to a miss, hold the id.
            let held = |(&id, &slot): (&i32, &i32)| id < 0 || ran.table[2 * slot as usize] == id;
            if !ids.iter().zip(&ran.slots).all(held) {
                return Err(anyhow!("a slot of the modelled paper kernel does not hold its id"));
            }
            if step >= warm {
                paper.misses += f64::from(ran.misses) / (trace.steps - warm) as f64;
                paper.steps.push((ids, table));
            }
            table = ran.table;
        }
        Ok(paper)
    }

    /// Returns the mean microseconds of each phase of a step of one request.
    ///
    /// # Errors
    /// If the kernel breaks a rule of the shim.
    pub fn phases(&self) -> Result<[f64; 16]> {
        means(&self.steps, |(ids, table)| Ok(self.run(ids, table.clone())?.cycles))
    }

    fn run(&self, ids: &[i32], mut table: Vec<i32>) -> Result<Ran> {
        let (mut ids, mut launch, mut count) = (ids.to_vec(), [0; 8], [0]);
        let [mut slots, mut id, mut pos, mut slot] = [(); 4].map(|()| vec![-1; self.k]);
        let cycles = Launch::new("paper_stage_one")
            .device(&mut launch)
            .device(&mut ids)
            .device(&mut table)
            .device(&mut slots)
            .device(&mut id)
            .device(&mut pos)
            .device(&mut slot)
            .device(&mut count)
            .run_timed(&self.kernel, PRICES)
            .map_err(|e| anyhow!("the modelled paper kernel: {}", e.text))?;
        Ok(Ran { cycles, table, slots, misses: count[0] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::workload;
    use crate::hits::of_table;
    use crate::tests::has_cpp_compiler;

    #[test]
    fn the_kernel_misses_as_often_as_the_paper_table() {
        if !has_cpp_compiler() {
            return;
        }
        let (warm, trace) = (8, workload(200, 24).unwrap());
        let paper = Paper::new(1024, &trace, warm).unwrap();
        let hits = of_table(&trace, &Params::paper(200, 1, 1024)).unwrap();
        let misses = hits[warm..].iter().map(|(hits, all)| (all - hits) as f64).sum::<f64>();
        let expected = misses / (hits.len() - warm) as f64;
        // Both lose a link by chance where several misses of a step choose it.
        assert!((paper.misses / expected - 1.0).abs() < 0.02, "{} and {expected}", paper.misses);
        assert!(paper.phases().unwrap().iter().take(11).enumerate().all(|(n, &us)| {
            // Sharing and Locate are not in the paper's kernel.
            (us > 0.0) != [4, 6].contains(&n)
        }));
    }
}
