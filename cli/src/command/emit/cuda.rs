//! `avsg emit --target cuda`.

use std::process::ExitCode;

use anyhow::Result;
use avsg::Error;
use avsg::device::params::Params;
use avsg_linker::cuda::{self, Failed, Kernels, TooLarge};
use serde::Serialize;

use super::Options;
use crate::checks::require;
use crate::command::output::{self, Page};

/// The geometry, the shared memory of a block and the files.
#[derive(Serialize)]
struct Report {
    geometry: String,
    threads: u32,
    /// Bytes of shared memory that a launch gives to a block.
    shared_bytes: u32,
    files: Vec<String>,
}

/// Writes the kernels if a directory is given, and prints what they need.
pub fn run(options: &Options) -> Result<ExitCode> {
    let p = options.kernels.params()?;
    let how = cuda::Options { threads: options.threads, shared_bytes: options.shared_bytes };
    let kernels = kernels_of(&p, how)?;
    options.write_files(kernels.files())?;
    let report = Report {
        geometry: p.to_string(),
        threads: how.threads,
        shared_bytes: kernels.shared_bytes,
        files: kernels.files().map(|(name, _)| name).collect(),
    };
    options.output.write(&report, || page(&report, options, &kernels))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the kernels of a geometry. Bad input is refused with the value, its limit and what to do.
fn kernels_of(p: &Params, how: cuda::Options) -> Result<Kernels> {
    let threads = [256, 512, 1024].contains(&how.threads);
    let limit = "a block has 256, 512 or 1024 threads";
    require(threads, "--threads", how.threads, limit, "choose one of them")?;
    let refused = match cuda::cuda(p, how) {
        Err(Failed::TooLarge(TooLarge { needs, limit })) => {
            let value = format!("{needs} bytes for Stage One of {p}");
            let limit = format!("a block has {limit} bytes");
            Error::invalid("shared memory", value, limit, "choose fewer slots or a smaller K")
        }
        Err(Failed::TooFewThreads { rounds, limit, threads }) => {
            let limit = format!("a thread keeps {limit} lanes of K in registers, not {rounds}");
            Error::invalid("--threads", threads, limit, "choose more threads or a smaller K")
        }
        kernels => return Ok(kernels?),
    };
    Err(refused.into())
}

fn page(report: &Report, options: &Options, kernels: &Kernels) -> Page {
    let mut page = Page::default();
    page.text(options.written(report.files.len(), |dir| {
        format!(
            "they include no header of CUDA, and have never run on a GPU. Compile one with\n  \
             nvcc -std=c++17 -arch=sm_90 -cubin {dir}/avsg_step.cu"
        )
    }));
    let bytes = output::bytes(report.shared_bytes as usize);
    page.text(format!("geometry  {}", report.geometry));
    page.text(format!("block     {} threads, {bytes} of shared memory", report.threads));
    if options.plan {
        page.text(format!("Stage One: {}", kernels.plan));
    }
    page
}
