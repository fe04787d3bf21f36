//! `avsg-research paper` computes every figure of the paper that can be computed here, beside the paper's.

mod hardware;
mod rates;
mod render;
mod section;
mod serving;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::Result;
use avsg::Error;
use avsg_cli::output_file;
use avsg_cli::terminal;
use clap::{Args, ValueEnum};

use avsg_cli::command::output;
use avsg_cli::command::trace_options::PartOptions;
use rates::Workload;
use render::Page;
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

/// Number of seeds of the section reuse, as in the paper.
const SEEDS: u64 = 5;

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
        "it needs 12 nodes of 910B, the model GLM-5.3-w4a8c16 and the real requests; `avsg serve` models it",
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
    after_help = "Markdown goes to standard output unless a file is named. The HTML file has the charts inline and needs no\n\
                  other file. Each section says which of its figures are replayed, modelled or measured. Examples:\n  \
                  avsg-research paper\n  \
                  avsg-research paper tests/data/nomicon-4k-k256.npz --html paper.html --json paper.json\n  \
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
    /// Seeds of the section reuse to average over, 1 to 100
    #[arg(long, value_name = "N", default_value_t = SEEDS)]
    seeds: u64,
    /// Write the report as Markdown to this file; - is standard output
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write the report as one HTML file with charts; - is standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the report as JSON to this file; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Options {
    /// Returns the parts to compute, in their order.
    fn parts(&self) -> Vec<Part> {
        let wanted = |part: &Part| self.sections.is_empty() || self.sections.contains(part);
        Part::value_variants().iter().copied().filter(wanted).collect()
    }

    fn check(&self) -> Result<()> {
        if !(1..=100).contains(&self.seeds) {
            let limit = "it must be 1..=100";
            return Err(
                Error::invalid("--seeds", self.seeds, limit, "choose 5, as the paper").into()
            );
        }
        let files = [&self.markdown, &self.html, &self.json];
        let to_stdout = files.iter().filter(|file| output::is_stdout(file.as_deref())).count();
        if to_stdout > 1 {
            let limit = "only one form of the report can go to standard output";
            return Err(Error::invalid("-", to_stdout, limit, "name files for the others").into());
        }
        let named = files.into_iter().filter_map(|file| file.as_deref());
        let named = named.filter(|file| !output::is_stdout(Some(file)));
        Ok(output_file::check(named, self.trace.as_deref())?)
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
        if self.seeds != SEEDS {
            line += &format!(" --seeds {}", self.seeds);
        }
        line
    }

    /// Returns the workloads that stand for the paper's requests.
    fn workloads(&self) -> Result<Vec<Workload>> {
        let mut workloads = vec![Workload::synthetic()?];
        if let Some(path) = &self.trace {
            let trace = self.part.read(path)?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            workloads.push(Workload::recorded(&name, &trace));
        }
        Ok(workloads)
    }
}

/// Computes the report and writes it.
pub fn run(options: &Options) -> Result<()> {
    options.check()?;
    let workloads = options.workloads()?;
    let parts = options.parts();
    let bar = output::progress(parts.len(), "paper");
    let compute = |&part: &Part| -> Result<Section> {
        let section = match part {
            Part::Reuse => rates::synthetic(options.seeds),
            Part::Requests => rates::requests(&workloads),
            Part::Transfer => hardware::transfer(),
            Part::Matching => hardware::matching_times(),
            Part::Serving => serving::end_to_end(),
        }?;
        bar.inc(1);
        Ok(section)
    };
    let sections = parts.iter().map(compute).collect::<Result<Vec<_>>>()?;
    bar.finish_and_clear();
    write(options, &sections)
}

fn write(options: &Options, sections: &[Section]) -> Result<()> {
    let lead = [
        format!(
            "After this page you know how near AVSG comes to each figure of the paper, and which figures it cannot reproduce. \
             `{}` wrote it.",
            options.command()
        ),
        "Source: W. Kuang, X. Wang, C. Wu, J. Wang, W. Zhang, B. K. Chen, L. Lan, K. Zhang: \"AVSG: Accelerated Vectorized Sparse \
         Gather for Efficient KV Cache Offload in Sparse-Attention LLM Serving\", Theory Lab, 2012 Labs, Huawei, 2026, \
         measured on Ascend 910B. Differences are in percent of the paper's figure, or in percentage points where a \
         figure is a percentage."
            .to_owned(),
    ];
    let page = Page { lead: &lead, sections, missing: &MISSING };
    if let Some(path) = &options.html {
        output::text(path, &render::html(&page))?;
    }
    if let Some(path) = &options.json {
        let missing: Vec<_> = MISSING
            .iter()
            .map(|(figure, reason)| serde_json::json!({ "figure": figure, "reason": reason }))
            .collect();
        output::json(path, &serde_json::json!({ "sections": sections, "missing": missing }))?;
    }
    match &options.markdown {
        Some(path) => output::text(path, &render::markdown(&page)),
        None if options.html.is_none() && options.json.is_none() => {
            Ok(terminal::write(render::markdown(&page).as_bytes())?)
        }
        None => Ok(()),
    }
}
