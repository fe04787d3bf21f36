//! The phases of a timed kernel. The text of a kernel has a heading for each; a statement of the shim
//! behind the heading marks the phase.

use anyhow::Result;
use avsg_sim::cycles::Cycles;

use super::prices::{PRICES, SOC};

/// The phases of Stage One, in the order of their marks, and the headings that begin them in the emitted text.
/// `paper_kernel.cpp` has the marks of its phases.
pub const PHASES: [(&str, &[&str]); 12] = [
    ("Launch scalars, words of the request, constants", &[]),
    ("Table in", &["Copies the table in"]),
    ("Reset, Invalidate, Decay", &["Reset:", "Invalidate:", "Decay:"]),
    ("Probe; the paper: first links", &["Probe:"]),
    ("Exchange between sharing cores, with SyncAll", &["Probe: exchange"]),
    ("Pending ids; the paper: other links", &["Probe, pending ids:"]),
    ("Locate", &["Locate:"]),
    ("Refresh", &["Refresh:"]),
    ("CollectDead", &["CollectDead:"]),
    ("UpdateState", &["UpdateState:"]),
    ("Results and table out", &["Copies the record and the table out"]),
    ("Wait for the slowest core", &[]),
];
/// The phase before the SyncAll that ends Stage One.
const WAIT: usize = 11;
/// The phase of Stage Two.
const STAGE_TWO: usize = 12;
/// The phase in which learned lifetimes learn from the step, behind Stage Two. The clocks do not count its scalar
/// arithmetic.
pub const LEARN: usize = 13;

/// Returns the text of an emitted kernel with a mark behind each heading, and around the SyncAll after
/// Stage One.
pub fn with_marks(text: &str) -> String {
    let mark = |phase: usize| format!("AscendC::shim::begin_phase({phase});\n");
    let (mut out, mut planned) = (String::new(), false);
    for line in text.lines() {
        let code = line.trim_start();
        planned |= code.starts_with("avsg::PlanBatch(");
        let ends = planned && code == "SyncAll<true>();";
        if ends {
            planned = false;
            out += &mark(WAIT);
        }
        if code.starts_with("avsg::LearnBatch<") {
            out += &mark(LEARN);
        }
        out += line;
        out.push('\n');
        if ends {
            out += &mark(STAGE_TWO);
        }
        let heading = code.strip_prefix("// ").unwrap_or_default();
        let begins = |phase: &usize| PHASES[*phase].1.iter().any(|h| heading.starts_with(h));
        // The longest heading of several is that of the later phase.
        if let Some(phase) = (0..PHASES.len()).rev().find(begins) {
            out += &mark(phase);
        }
    }
    out
}

/// Returns the mean microseconds of each phase on core 0 over `steps`, of which `run` times one. The SyncAll that ends
/// Stage One is no part of it.
///
/// # Errors
/// Those of `run`.
pub fn means<S>(steps: &[S], run: impl Fn(&S) -> Result<Cycles>) -> Result<[f64; 16]> {
    let mut means = [0.0; 16];
    for step in steps {
        let mut phases = run(step)?.phases;
        if phases[WAIT] > 0.0 {
            phases[WAIT] -= PRICES.sync_all;
        }
        let us = |cycles: f64| SOC.us(cycles) / steps.len() as f64;
        means.iter_mut().zip(phases).for_each(|(mean, cycles)| *mean += us(cycles));
    }
    Ok(means)
}

#[cfg(test)]
mod tests {
    use avsg::device::params::{Lifetime, Params};
    use avsg_linker::ascend::kernels::{Abi, kernels};
    use avsg_linker::ascend::stage_one;

    use super::*;

    #[test]
    fn every_phase_has_a_mark() {
        let p = Params { lifetime: Lifetime::Learned, page: 16, ..Params::compact(128, 2, 512) };
        let all = kernels(&p, &stage_one(&p).unwrap(), Abi::Direct).unwrap();
        let step = all.kernels.iter().find(|k| k.name == "avsg_step").unwrap();
        let text = with_marks(&all.whole(&step.text));
        for phase in 1..=LEARN {
            assert!(text.contains(&format!("begin_phase({phase});")), "{phase}");
        }
    }
}
