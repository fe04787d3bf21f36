//! The phases of a timed kernel. The text of a kernel has a heading for each; a statement of the shim
//! behind the heading marks the phase.

use anyhow::Result;
use avsg_sim::cycles::Times;

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
/// The phase in which learned lifetimes learn from the step, behind Stage Two.
const LEARN: usize = 13;

/// Returns the text of an emitted kernel with a mark behind each heading, and around the SyncAll after
/// Stage One if there is one.
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

/// Returns the cycles of Stage One on core 0, which wait for the slowest core and do not contain the last
/// SyncAll, of `sync_all` cycles.
pub fn stage_one(times: &Times, sync_all: f64) -> f64 {
    let all: f64 = times.phases[..STAGE_TWO].iter().map(|phase| phase.elapsed).sum();
    all - if times.phases[WAIT].elapsed > 0.0 { sync_all } else { 0.0 }
}

/// Returns the cycles from the end of that SyncAll to the end of the slowest core, without those of
/// [`learn`].
pub fn stage_two(times: &Times) -> f64 {
    let before: f64 = times.phases[..STAGE_TWO].iter().map(|phase| phase.elapsed).sum();
    times.total - before - learn(times)
}

/// Returns the cycles in which core 0 learns from the requests that it planned. They contain no scalar
/// arithmetic, which the clocks do not count.
pub fn learn(times: &Times) -> f64 {
    times.phases[LEARN].elapsed
}

/// Returns the mean times of `steps` under each of a launch's prices; `run` times a step.
///
/// # Errors
/// Those of `run`.
pub fn means<S>(steps: &[S], run: impl Fn(&S) -> Result<Vec<Times>>) -> Result<Vec<Times>> {
    let mut means = Vec::new();
    for step in steps {
        let times = run(step)?;
        means.resize(times.len(), Times::default());
        let pairs = means.iter_mut().zip(&times);
        pairs.for_each(|(mean, times)| add(mean, times, 1.0 / steps.len() as f64));
    }
    Ok(means)
}

/// Adds `times`, multiplied by `factor`, to `sum`.
fn add(sum: &mut Times, times: &Times, factor: f64) {
    sum.total += factor * times.total;
    for (sum, phase) in sum.phases.iter_mut().zip(&times.phases) {
        sum.elapsed += factor * phase.elapsed;
        sum.fetched += factor * phase.fetched;
        sum.called += factor * phase.called;
        let from = phase.spent.as_flattened();
        sum.spent.as_flattened_mut().iter_mut().zip(from).for_each(|(sum, n)| *sum += factor * n);
    }
}

#[cfg(test)]
mod tests {
    use avsg::device::params::{Lifetime, Params};
    use avsg_linker::ascend::kernels::{Abi, kernels};
    use avsg_linker::ascend::stage_one;

    use super::*;

    #[test]
    fn every_phase_has_a_mark() {
        for page in [0, 16] {
            let lifetime = Lifetime::Learned;
            for p in
                [Params { page, lifetime, ..Params::wide(128, 2, 512) }, Params::paper(128, 1, 512)]
            {
                let all = kernels(&p, &stage_one(&p).unwrap(), Abi::Direct).unwrap();
                let step = all.kernels.iter().find(|k| k.name == "avsg_step").unwrap();
                let text = with_marks(&all.whole(&step.text));
                for phase in 1..=LEARN {
                    let marks = text.matches(&format!("begin_phase({phase});")).count();
                    // The paper's table has no cores that share.
                    assert!(marks > 0 || phase == 4 && p.spread == 1, "{p}: {phase}");
                }
            }
        }
    }
}
