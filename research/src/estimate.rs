//! `avsg-research estimate` runs the emitted `avsg_step` and a kernel of the paper's algorithms on the clocks of the
//! shim, whose prices are a model of an Ascend 910B, and prints the phases of both. Nothing is measured.

mod ours;
mod paper;
mod phase;
mod prices;

use std::path::PathBuf;

use anyhow::Result;
use avsg::Error;
use avsg::device::params::Params;
use avsg::geometry;
use avsg_cli::command::geometry::lifetime;
use avsg_cli::synth::{CONTEXT, Synth};
use avsg_cli::trace::Trace;

use crate::markdown::table;
use ours::Ours;
use paper::Paper;
use phase::{LEARN, PHASES};
use prices::SOC;

/// The steps that fill the buffer, and the steps that are timed.
const STEPS: (usize, usize) = (48, 8);

/// Options of `avsg-research estimate`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The kernels run on the shim, which needs a C++ compiler, and each call advances the clock of its pipe by \
                  constants of a model. No figure of the output is measured. The last 8 steps are timed, and up to 48 \
                  before them fill the buffer."
)]
pub struct Options {
    /// Recorded trace, .npy, .npz or .safetensors; every token is taken as a step of its own [default: the paper's
    /// synthetic workload with gamma 0.8, mu 0.5, K 2048 and 16384 ids of context]
    #[arg(value_name = "TRACE")]
    trace: Option<PathBuf>,
    /// S, the slots per request and layer, a power of two
    #[arg(long, value_name = "S", default_value_t = 8192)]
    slots: u32,
    /// Lifetime rule: constant:L or learned [default: learned if S is 2*K and less than 4*K, else constant:127]
    #[arg(long, value_name = "RULE")]
    lifetime: Option<String>,
    /// B, the requests of a batch, 1 to 40; all select the same ids
    #[arg(long, value_name = "B", default_value_t = 1)]
    requests: usize,
}

/// Both kernels, in microseconds and in misses of a request.
pub struct Estimate {
    params: Params,
    phases: [[f64; 16]; 2],
    misses: [f64; 2],
}

impl Estimate {
    /// Returns Stage One of AVSG and of the paper's kernel after the start of the kernel.
    pub fn stage_one(&self) -> [f64; 2] {
        self.phases.map(|us| us[..PHASES.len()].iter().sum())
    }

    /// Returns the microseconds of both kernels in the phase of this name.
    #[cfg(test)]
    fn phase(&self, name: &str) -> [f64; 2] {
        let at = PHASES.iter().position(|(phase, _)| *phase == name).unwrap();
        self.phases.map(|us| us[at])
    }
}

/// Generates the paper's workload.
fn workload(k: usize, steps: usize) -> Result<Trace> {
    Ok(Synth { gamma: 0.8, mu: 0.5, k, steps, seed: 1, context: CONTEXT }.trace()?)
}

/// Runs both kernels and returns their times.
pub fn compute(options: &Options) -> Result<Estimate> {
    let (slots, requests) = (options.slots, options.requests);
    if !(1..=SOC.cores as usize).contains(&requests) {
        let limit = format!("it must be 1..={}, one for each core", SOC.cores);
        return Err(Error::invalid("--requests", requests, limit, "pass 1 or 40").into());
    }
    let steps = STEPS.0 + STEPS.1;
    let trace = match &options.trace {
        Some(path) => Trace::read(path)?.as_mtp0()?.truncated(steps)?.shuffled(1),
        None => workload(2048, steps)?,
    };
    // Two links per slot fit the unified buffer.
    let k = u32::try_from(trace.k).unwrap_or(u32::MAX);
    let mut params = Params::compact(k, 1, slots);
    if let Some(rule) = &options.lifetime {
        params.lifetime = lifetime(rule)?;
    }
    geometry::check(&params)?;
    geometry::check(&Params::paper(k, 1, slots))?;
    let warm = trace.steps.saturating_sub(STEPS.1);
    let (ours, paper) = (Ours::new(&params, &trace, warm)?, Paper::new(slots, &trace, warm)?);
    let phases = [ours.phases(requests)?, paper.phases()?];
    Ok(Estimate { params, phases, misses: [ours.misses, paper.misses] })
}

/// Returns the estimate as Markdown.
pub fn text(options: &Options) -> Result<String> {
    let estimate = compute(options)?;
    let Estimate { params, phases: [ours, paper], misses } = &estimate;
    let us = |us: f64| format!("{us:.1}");
    let row = |name: &str, [ours, paper]: [f64; 2]| vec![name.to_owned(), us(ours), us(paper)];
    let mut rows: Vec<_> = PHASES
        .iter()
        .enumerate()
        .map(|(at, (phase, _))| row(phase, [ours[at], paper[at]]))
        .collect();
    rows.push(row("Stage One after the start", estimate.stage_one()));
    if ours[LEARN] > 0.0 {
        rows.push(vec!["Learning, behind Stage Two".into(), us(ours[LEARN]), "-".into()]);
    }
    Ok(format!(
        "Model, not measured: {}, {} vector cores at {} MHz; K = {}, S = {}, {}; B = {}; {:.1} misses, and {:.1} in the \
         paper's table.\n\n{}",
        SOC.name,
        SOC.cores,
        SOC.mhz,
        params.k,
        params.slots,
        params.lifetime,
        options.requests,
        misses[0],
        misses[1],
        table(&["phase", "AVSG, us", "paper's kernel, us"], rows),
    ))
}

#[cfg(test)]
mod tests {
    use super::{Estimate, Options, compute};
    use crate::Command;
    use crate::tests::{command, has_cpp_compiler, left_out, refused};

    fn estimate(line: &str) -> Estimate {
        let Command::Estimate(options) = command(line) else { unreachable!() };
        let options: &Options = &options;
        compute(options).unwrap()
    }

    #[test]
    fn bad_input_names_value_limit_and_remedy() {
        for (line, names) in [
            ("estimate --requests 0", ["--requests is 0", "1..=40", "pass"]),
            ("estimate --requests 41", ["--requests is 41", "1..=40", "pass"]),
            ("estimate --slots 1000", ["1000", "multiple of 64", "choose"]),
            ("estimate --slots 16384", ["unified buffer", "910B", "fewer slots"]),
            ("estimate --lifetime 3", ["--lifetime is 3", "constant:L", "learned"]),
        ] {
            refused(line, &names);
        }
    }

    /// The expected values are recorded results of the model, not targets. A change of the kernel or of the
    /// model may require new ones.
    #[test]
    fn figures_are_within_a_tenth_of_the_recorded_ones() {
        if !has_cpp_compiler() {
            return;
        }
        let near = |what: &str, actual: f64, recorded: f64| {
            let message = format!("{what}: {actual}, recorded {recorded}");
            assert!((actual / recorded - 1.0).abs() < 0.1, "{message}");
        };
        let one = estimate("estimate");
        for (phase, recorded) in [("Refresh", [0.94, 18.5]), ("UpdateState", [9.4, 15.2])] {
            let [ours, paper] = one.phase(phase);
            near(phase, ours, recorded[0]);
            near(phase, paper, recorded[1]);
        }
        let [ours, paper] = one.stage_one();
        near("ours", ours, 21.9);
        near("paper", paper, 42.3);
        if left_out() {
            return;
        }
        // No core is left to share a request's Probe with.
        let [full, same] = estimate("estimate --requests 40").stage_one();
        assert!(full > 1.1 * ours && same == paper, "{full} {same}");
    }
}
