//! `avsg-research paper` computes every figure of the paper that can be computed here, beside the
//! paper's.

mod balance;
mod requests;
mod reuse;
mod section;

use std::path::PathBuf;

use anyhow::{Context, Result};
use avsg_cli::trace::{Trace, name_of};
use clap::Args;

use crate::markdown;
use requests::Workload;
use section::Section;

/// The figures that the program does not compute, and why.
const MISSING: [[&str; 2]; 7] = [
    [
        "hit rates, lifetimes and cold start on the 2000 real requests",
        "the requests are from production and not public; other requests stand in their place",
    ],
    [
        "kernel latency over the lifetime L (104.62 us at L = 1, 101.27 us at L = 16)",
        "it needs a 910B and the real requests",
    ],
    ["matching times of a 910B over K and S", "no 910B was available"],
    [
        "measured bandwidths of S1, S2 and S3",
        "no 910B was available; the rows of the busiest core stand in their place",
    ],
    [
        "end-to-end serving",
        "it needs 12 nodes of 910B, the model GLM-5.3-w4a8c16 and the real requests",
    ],
    [
        "lifetime ablation at L = 2, 4 and 32",
        "the paper draws these points without figures, so only the figures of here are shown",
    ],
    ["figures 1 and 2", "they are drawings of the design"],
];

/// Options of `avsg-research paper`.
#[derive(Args, Debug)]
pub struct Options {
    /// Recorded trace, .npy, .npz or .safetensors; the figures of real requests are also computed on it
    #[arg(value_name = "TRACE")]
    trace: Option<PathBuf>,
}

/// Returns the report as Markdown.
pub fn text(options: &Options) -> Result<String> {
    let mut workloads = vec![Workload::synthetic()?];
    let mut command = "avsg-research paper".to_owned();
    if let Some(path) = &options.trace {
        let trace = Trace::read(path).with_context(|| name_of(path))?;
        workloads.push(Workload::recorded(path, &trace)?);
        command += &format!(" {}", path.display());
    }
    let sections = [reuse::synthetic()?, requests::requests(&workloads)?, balance::balance()];
    let lead = format!(
        "# The paper's figures\n\n\
         Every figure of the paper that can be computed here stands beside the paper's. `{command}` wrote this page.\n\n\
         Source: W. Kuang, X. Wang, C. Wu, J. Wang, W. Zhang, B. K. Chen, L. Lan, K. Zhang: \"AVSG: Accelerated Vectorized Sparse \
         Gather for Efficient KV Cache Offload in Sparse-Attention LLM Serving\", Theory Lab, 2012 Labs, Huawei, 2026, \
         measured on Ascend 910B. Differences are in percent of the paper's figure, or in percentage points where a \
         figure is a percentage.\n"
    );
    let missing = MISSING.map(|row| row.map(String::from).to_vec());
    Ok([
        lead,
        sections.iter().map(Section::markdown).collect(),
        "\n## What cannot be reproduced here\n\n".to_owned(),
        markdown::table(&["figure", "reason"], missing),
    ]
    .concat())
}

#[cfg(test)]
mod tests {
    use super::text;
    use crate::Command;
    use crate::tests::{command, left_out, refused};

    #[test]
    fn the_page_has_every_section_and_both_workloads() {
        if left_out() {
            return;
        }
        let Command::Paper(options) = command("paper ../../tests/data/nomicon-4k-k256.npz") else {
            unreachable!()
        };
        let page = text(&options).unwrap();
        for part in [
            "`avsg-research paper ../../tests/data/nomicon-4k-k256.npz` wrote",
            "| 0.5 | 0.5 | 4096 | 60.00 |",
            "recorded trace nomicon-4k-k256, K = 256",
            "| 1 | 25 | 34.44 | 39.38 | +14.3 % |",
            "| figures 1 and 2 |",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
    }

    #[test]
    fn bad_input_is_one_line_and_status_2() {
        refused("paper /nonexistent.npz", &["/nonexistent.npz"]);
    }
}
