//! `avsg-research gpu` measures the kernels for GPUs, beside what they are compared with, on a machine that has nothing
//! but a GPU and its driver: `pack` makes the program for it, and `run` is what it does there.

mod cell;
mod device;
mod driver;
mod memory;
mod pack;
mod probe;
mod report;
mod sizes;
mod step;
#[cfg(test)]
mod tests;
mod texts;
mod timer;

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use avsg::Error;
use avsg_cli::terminal;
use clap::{Args, Subcommand};

use device::{Attribute, Gpu};
use driver::Driver;
use pack::Image;
use report::Report;
use sizes::Sizes;
use texts::{ARCHITECTURES, Architecture};

/// The library of the driver.
const LIBRARY: &str = "libcuda.so.1";

/// Options of `avsg-research gpu`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Writes a copy of this program that carries the kernels as machine code. It needs nvcc, which pip installs in the
    /// folder of this program unless NVCC_BIN names one of its own, and no GPU
    Pack {
        /// The program to write
        program: PathBuf,
    },
    /// Measures the kernels on the first GPU and writes one JSON file. Only a program that `pack` has written can do it
    Run {
        /// The file to write
        json: PathBuf,
    },
}

/// Runs `avsg-research gpu`.
pub fn run(options: &Options) -> Result<()> {
    let program = env::current_exe().context("the path of this program")?;
    match &options.command {
        Command::Pack { program: out } => {
            let folder = program.with_file_name("cuda");
            fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
            let bytes = pack::pack(&program, out, |text, sm| pack::compile(text, sm, &folder))?;
            let out = out.display();
            terminal::print_line(format_args!(
                "{out} has {bytes} bytes; run `{out} gpu run gpu.json` on a machine with a GPU"
            ));
            Ok(())
        }
        Command::Run { json } => {
            let images = |sm| pack::read(&program, sm);
            let driver = Driver::open(Path::new(LIBRARY))?;
            let file = File::create(json).with_context(|| json.display().to_string())?;
            let report = measure(driver, images, &Sizes::FULL)?;
            serde_json::to_writer_pretty(file, &report)
                .with_context(|| json.display().to_string())?;
            judge(&report, &json.display().to_string())
        }
    }
}

/// Measures on the first GPU of a driver.
fn measure(
    driver: Driver,
    images: impl Fn(u32) -> Result<Vec<Image>>,
    sizes: &Sizes,
) -> Result<Report> {
    let gpu = Gpu::open(driver)?;
    let architecture = architecture(&gpu)?;
    let report = report::run(&gpu, architecture, &images(architecture.sm)?, sizes)?;
    gpu.finish()?;
    Ok(report)
}

/// Returns the architecture whose machine code a GPU runs.
fn architecture(gpu: &Gpu) -> Result<Architecture> {
    let major = gpu.attribute(Attribute::MajorCapability)?;
    let found = ARCHITECTURES.into_iter().find(|architecture| architecture.major == major);
    let limit = "the kernels are for 8, 9 and 10";
    let remedy = "choose a GPU such as A100, H100 or B200";
    let refused = || Error::invalid("the GPU's compute capability", major, limit, remedy);
    Ok(found.ok_or_else(refused)?)
}

/// Says what was measured.
///
/// # Errors
/// If a byte was wrong.
fn judge(report: &Report, json: &str) -> Result<()> {
    let wrong = report.wrong();
    if wrong > 0 {
        bail!(
            "{wrong} slots and bytes are wrong (wrong_slots and wrong_bytes of {json}); report this with the file, and \
             trust no time in it"
        );
    }
    let (cells, left_out) = (report.cells.len(), report.cells_left_out);
    terminal::print_line(format_args!(
        "{json}: {cells} cells without a wrong byte; {left_out} did not begin in time"
    ));
    Ok(())
}
