//! The paper's kernel on the clocks of the shim, the scalar merge that it replaces, and the workload.

use anyhow::{Result, anyhow};
use avsg::Error;
use avsg::device::params::{Lifetime, Params, Table};
use avsg_cli::synth::{CONTEXT, Synth};
use avsg_cli::trace::Trace;
use avsg_linker::ascend::code_size::Calls;
use avsg_linker::ascend::limits::UB_BYTES;
use avsg_linker::ascend::soc::OF_THE_PAPER;
use avsg_sim::cycles::{Prices, Times};
use avsg_sim::shim::{Kernels, Launch};

use super::code::{Size, with_fetches};
use super::phase::means;
use avsg_cli::constants::{Constants, Name};

/// Share of a step's ids that the previous step selected too, in the paper's workload.
const GAMMA: f64 = 0.8;
/// Mean share of the other ids that an earlier step selected.
const MU: f64 = 0.5;

/// Generates the paper's workload.
pub fn workload(k: usize, steps: usize) -> Result<Trace> {
    let trace = Synth { gamma: GAMMA, mu: MU, k, steps, seed: 1, context: CONTEXT }.trace()?;
    Ok(trace)
}

/// The entry point of `paper_kernel.cpp`.
const KERNEL: &str = "paper_stage_one";

/// The word of an entry that no id has used: dead, and its link is not valid.
const EMPTY: i32 = (-1 << 24) | (1 << 23);

/// The paper's kernel (`paper_kernel.cpp`), and the steps on which it is timed: the ids of each, and the table
/// before it.
pub struct Paper {
    kernel: Kernels,
    k: usize,
    steps: Vec<(Vec<i32>, Vec<i32>)>,
    /// The size of the kernel.
    pub size: Size,
    /// Misses per step.
    pub misses: f64,
}

/// The result of a launch.
struct Ran {
    times: Vec<Times>,
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
        let needs = 8 * slots
            + 16 * lanes
            + (24 * lanes).max(6 * slots)
            + 2 * slots
            + slots / 8
            + 3 * lanes / 8
            + 512;
        if needs > UB_BYTES as usize {
            let limit = format!("the paper's kernel has {UB_BYTES} bytes");
            let remedy = "choose fewer slots or a smaller K";
            return Err(
                Error::invalid("unified buffer", format!("{needs} bytes"), limit, remedy).into()
            );
        }
        let (code, size) = with_fetches(include_str!("paper_kernel.cpp"), KERNEL, Calls::Marked);
        let text = format!(
            "#define AVSG_SHIM_CYCLES\n#include <cstdint>\nconstexpr int32_t K = {k}, S = {slots}, SLOT_BITS = {}, R = {retries}, \
             LIFETIME = {life}, A1 = {}, A2 = {};\n{code}",
            slots.ilog2(),
            a1 as usize % slots,
            a2 as usize % slots,
        );
        let kernel = Kernels::compile(&text, &[]).map_err(|e| anyhow!(e))?;
        let mut paper = Self { kernel, k, steps: Vec::new(), size, misses: 0.0 };
        let mut table = [-1, EMPTY].repeat(slots);
        let counted = trace.steps.saturating_sub(warm).max(1) as f64;
        for step in 0..trace.steps {
            let ids = trace.row(step, 0).to_vec();
            let ran = paper.run(&ids, table.clone(), &[])?;
            // A hit, and a slot that was given to a miss, hold the id.
            let held = |(&id, &slot): (&i32, &i32)| id < 0 || ran.table[2 * slot as usize] == id;
            if !ids.iter().zip(&ran.slots).all(held) {
                return Err(anyhow!("a slot of the modelled paper kernel does not hold its id"));
            }
            if step >= warm {
                paper.misses += f64::from(ran.misses) / counted;
                paper.steps.push((ids, table));
            }
            table = ran.table;
        }
        Ok(paper)
    }

    /// Returns the mean times of a step of one request under each of the prices.
    ///
    /// # Errors
    /// If the kernel breaks a rule of the shim.
    pub fn times(&self, prices: &[Prices]) -> Result<Vec<Times>> {
        means(&self.steps, |(ids, table)| Ok(self.run(ids, table.clone(), prices)?.times))
    }

    fn run(&self, ids: &[i32], mut table: Vec<i32>, prices: &[Prices]) -> Result<Ran> {
        let (mut ids, mut launch, mut count) = (ids.to_vec(), [0; 8], [0]);
        let [mut slots, mut id, mut pos, mut slot] = [(); 4].map(|()| vec![-1; self.k]);
        let times = Launch::new(KERNEL)
            .device(&mut launch)
            .device(&mut ids)
            .device(&mut table)
            .device(&mut slots)
            .device(&mut id)
            .device(&mut pos)
            .device(&mut slot)
            .device(&mut count)
            .run_timed(&self.kernel, prices)
            .map_err(|e| anyhow!("the modelled paper kernel: {}", e.text))?;
        Ok(Ran { times, table, slots, misses: count[0] })
    }
}

/// Returns the microseconds of the scalar merge of two sorted lists on the paper's chip. The sort is not
/// counted, because it is small compared with the merge.
pub fn dual_pointer_us(k: usize, c: &Constants) -> f64 {
    // An id that is in both lists takes one step.
    let steps = k as f64 * (2.0 - GAMMA);
    let cycles = steps * c.get(Name::DualPointer) * c.get(Name::Scalar);
    c.get(Name::Launch) + OF_THE_PAPER.us(cycles)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        // The table's bytes are read and written, at 32 bytes per cycle, and so are the lists.
        let times = paper.times(&[Constants::default().prices(&OF_THE_PAPER)]).unwrap()[0];
        let copied = times.phases[1].spent[2][0];
        assert!((copied - 8192.0 / 32.0 - 800.0 / 32.0 - 42.0).abs() < 1e-6, "{copied}");
        assert!(times.phases.iter().take(11).enumerate().all(|(n, phase)| {
            // Sharing and Locate are not in the paper's kernel.
            (phase.elapsed > 0.0) != [4, 6].contains(&n)
        }));
    }
}
