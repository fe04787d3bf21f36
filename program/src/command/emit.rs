//! `avsg emit` writes the kernels of a geometry as source text, and shows the memory that they use.

use std::path::{Path, PathBuf};

use anyhow::Result;
use avsg::Error;
use avsg::device::memory::table_words;
use avsg::device::params::Params;
use avsg_linker::ascend::kernels::{Abi, Kernels, kernels};
use avsg_linker::ascend::limits::UB_BYTES;
use avsg_linker::ascend::soc::{self, Soc};
use avsg_linker::ascend::stage_one;
use avsg_linker::ascend::toolchain;
use clap::Args;

use super::engine_options::{DeviceChoice, GeometryOptions};
use super::output::{self, Page, Table};
use crate::output_file;

/// The chip and the geometry, which are constants in the kernels.
#[derive(Args, Debug)]
pub struct KernelOptions {
    /// Chip that the kernels are for; an unknown name is refused with the list of known ones
    #[arg(long, value_name = "SOC", default_value = "ascend910b3", value_parser = soc)]
    pub soc: Soc,
    #[command(flatten)]
    geometry: GeometryOptions,
}

fn soc(name: &str) -> Result<Soc, String> {
    let known = || soc::ALL.map(|soc| soc.name).join(", ");
    soc::find(name).ok_or_else(|| format!("choose one of the known chips, {}", known()))
}

impl KernelOptions {
    /// Returns the checked geometry, which has the default links per slot of a vector core.
    pub fn params(&self) -> Result<Params> {
        self.geometry.params(self.geometry.k, DeviceChoice::Ascend)
    }
}

/// Returns the kernels of a geometry, and the plan of Stage One's columns in the unified buffer as text. A
/// geometry that does not fit is refused with the bytes that it needs.
pub fn kernels_of(p: &Params, abi: Abi) -> Result<(Kernels, String)> {
    let text = stage_one(p).map_err(|error| {
        let limit = format!("a vector core cannot run it: {error}");
        let remedy = "pass another --slots, --spread or --k";
        Error::invalid("geometry", p, limit, remedy)
    })?;
    Ok((kernels(p, &text, abi)?, text.plan))
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  avsg emit --soc ascend910b3 --slots 8192 --out kernels\n\n\
                        The kernels include the written headers, and the headers include kernel_operator.h of CANN. \
                        The written CMakeLists.txt builds them with CANN 8.5 or newer; an engine loads them from DIR.")]
pub struct Options {
    #[command(flatten)]
    kernels: KernelOptions,
    /// Also show the place of every column of Stage One in the unified buffer
    #[arg(long)]
    plan: bool,
    /// Write the files into this directory, which is created if it does not exist; without it, only
    /// the plan is shown
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Writes the kernels if a directory is given, and prints their plan.
pub fn run(options: &Options) -> Result<()> {
    let (soc, p) = (options.kernels.soc, options.kernels.params()?);
    let (kernels, plan) = kernels_of(&p, Abi::Direct)?;
    let names: Vec<_> = kernels.kernels.iter().map(|kernel| kernel.name).collect();
    let project = toolchain::project(&names, soc.name);
    let mut then = "No file was written; pass --out DIR to write the kernels.".to_owned();
    if let Some(dir) = &options.out {
        let project = [("CMakeLists.txt".to_owned(), project.as_str())];
        let files: Vec<_> = kernels.files().chain(project).collect();
        for (name, text) in &files {
            write(dir, name, text.as_bytes())?;
        }
        let (written, dir) = (files.len(), dir.display());
        then = format!(
            "{written} files were written to {dir}; on a machine with CANN, build them with\n  \
             cmake -S {dir} -B {dir}/build && cmake --build {dir}/build"
        );
    }
    let mut page = describe(&p, soc, &kernels, &then);
    if options.plan {
        page.text(format!("Stage One: {plan}"));
    }
    page.print()
}

/// Writes one file below `dir`, creates the folders of its path, and returns the whole path.
pub fn write(dir: &Path, path: &str, bytes: &[u8]) -> Result<PathBuf> {
    let to = dir.join(path);
    to.parent().map_or(Ok(()), output_file::folder)?;
    output_file::write(&to, bytes)?;
    Ok(to)
}

/// Returns the chip, the geometry and the files of its kernels as the page that begins with what was written.
pub fn describe(p: &Params, soc: Soc, kernels: &Kernels, written: &str) -> Page {
    let mut page = Page::default();
    page.text(written);
    let mut table = Table::new(["kernel", "unified buffer, bytes", "blocks per launch"]);
    for kernel in &kernels.kernels {
        // All blocks of a kernel that calls SyncAll must run at the same time.
        let blocks = match kernel.text.contains("SyncAll<true>()") {
            true => format!("at most {}", soc.cores),
            false => "any".to_owned(),
        };
        let used = format!("{} of {UB_BYTES}", kernel.ub_bytes);
        table.add_row([kernel.name.to_owned(), used, blocks]);
    }
    page.table(&table);
    let (name, cores, table_bytes) = (soc.name, soc.cores, 4 * table_words(p));
    page.text(format!("chip      {name}: {cores} vector cores of dav-c220"));
    page.text(format!("geometry  {p}"));
    page.text(format!("table     {} of device memory per state", output::bytes(table_bytes)));
    page
}
