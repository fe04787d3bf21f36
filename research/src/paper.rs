//! `avsg-research paper` computes every figure of the paper that can be computed here, beside the
//! paper's.

mod hardware;
mod rates;
mod render;
mod section;
mod serving;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::Result;
use avsg_cli::command::output;
use avsg_cli::command::trace_options::PartOptions;
use avsg_cli::terminal;
use clap::{Args, ValueEnum};

use rates::Workload;
use section::Section;

/// A section of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Reuse on the synthetic workload: 18 cells
    Reuse,
    /// Hit rates, lifetimes and cold start of real requests
    Requests,
    /// Transfer with three strategies: 24 rows
    Transfer,
    /// Matching times and their ratios
    Matching,
    /// End-to-end serving
    Serving,
}

/// The figures that the program does not compute, and why.
const MISSING: [(&str, &str); 7] = [
    (
        "hit rates, lifetimes and cold start on the 2000 real requests",
        "the requests are from production and not public; other requests stand in their place",
    ),
    (
        "kernel latency over the lifetime L (104.62 us at L = 1, 101.27 us at L = 16)",
        "it needs a 910B and the real requests; the cost model has the second figure as a point",
    ),
    (
        "matching times of a 910B over K and S",
        "no 910B was available; the cost model has six points, and `avsg bench match` measures ratios on this machine",
    ),
    (
        "measured bandwidths of S1, S2 and S3",
        "no 910B was available; the model's constants are fitted to the same table",
    ),
    (
        "end-to-end serving",
        "it needs 12 nodes of 910B, the model GLM-5.3-w4a8c16 and the real requests; a model of it stands in its place",
    ),
    (
        "lifetime ablation at L = 2, 4 and 32",
        "the paper draws these points without figures, so only the figures of here are shown",
    ),
    ("figures 1 and 2", "they are drawings of the design"),
];

/// Options of `avsg-research paper`.
#[derive(Args, Debug)]
#[command(
    after_help = "Markdown goes to standard output. Each section says which of its figures are replayed and which are \
                  modelled. Examples:\n  \
                  avsg-research paper\n  \
                  avsg-research paper tests/data/nomicon-4k-k256.npz\n  \
                  avsg-research paper --sections reuse,transfer"
)]
pub struct Options {
    /// Recorded trace, as of avsg replay, on which the figures of real requests are computed, too
    #[arg(value_name = "TRACE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    part: PartOptions,
    /// Sections to compute [default: all]
    #[arg(long, value_enum, value_name = "NAME,..", value_delimiter = ',')]
    sections: Vec<Part>,
}

impl Options {
    /// Returns the parts to compute, in their order.
    fn parts(&self) -> Vec<Part> {
        let wanted = |part: &Part| self.sections.is_empty() || self.sections.contains(part);
        Part::value_variants().iter().copied().filter(wanted).collect()
    }

    /// Returns the command line that computes the same report.
    fn command(&self) -> String {
        let mut line = "avsg-research paper".to_owned();
        if let Some(trace) = &self.trace {
            line += &format!(" {}", trace.display());
        }
        if !self.sections.is_empty() {
            let names = self.sections.iter().filter_map(ValueEnum::to_possible_value);
            let names: Vec<_> = names.map(|name| name.get_name().to_owned()).collect();
            line += &format!(" --sections {}", names.join(","));
        }
        line
    }
}

/// Computes the report and writes it.
pub fn run(options: &Options) -> Result<()> {
    let sections = compute(options)?;
    Ok(terminal::write(text(options, &sections).as_bytes())?)
}

/// Computes the sections.
pub fn compute(options: &Options) -> Result<Vec<Section>> {
    let mut recorded = Vec::new();
    if let Some(path) = &options.trace {
        recorded.push(Workload::recorded(path, &options.part.read(path)?));
    }
    let parts = options.parts();
    let bar = output::progress(parts.len(), "paper");
    let mut compute = |part: Part| {
        let section = match part {
            Part::Reuse => rates::synthetic()?,
            Part::Requests => {
                let all = [Workload::synthetic()?].into_iter().chain(recorded.drain(..));
                rates::requests(&all.collect::<Vec<_>>())?
            }
            Part::Transfer => hardware::transfer(),
            Part::Matching => hardware::matching_times()?,
            Part::Serving => serving::end_to_end(),
        };
        bar.inc(1);
        Ok(section)
    };
    let sections = parts.into_iter().map(&mut compute).collect();
    bar.finish_and_clear();
    sections
}

/// Returns the report as Markdown.
fn text(options: &Options, sections: &[Section]) -> String {
    let lead = [
        format!(
            "Every figure of the paper that can be computed here stands beside the paper's. `{}` wrote this page.",
            options.command()
        ),
        "Source: W. Kuang, X. Wang, C. Wu, J. Wang, W. Zhang, B. K. Chen, L. Lan, K. Zhang: \"AVSG: Accelerated Vectorized Sparse \
         Gather for Efficient KV Cache Offload in Sparse-Attention LLM Serving\", Theory Lab, 2012 Labs, Huawei, 2026, \
         measured on Ascend 910B. Differences are in percent of the paper's figure, or in percentage points where a \
         figure is a percentage."
            .to_owned(),
    ];
    render::markdown(&lead, sections, &MISSING)
}
