//! `avsg emit`: the kernels of a geometry as text, and the plan of the memory that they use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use avsg::Error;
use avsg::device::memory::table_words;
use avsg::device::params::Params;
use avsg_linker::ascendc::kernels::{Abi, Kernels, kernels};
use avsg_linker::ascendc::limits::UB_BYTES;
use avsg_linker::ascendc::{Failed, stage_one};
use avsg_linker::soc::Soc;
use avsg_linker::ub::TooLarge;
use clap::Args;

use super::geometry::{TableKind, TableOptions};
use super::{output, soc};

/// The targets that there are.
const TARGETS: [&str; 1] = ["ascendc"];

/// Which chip and which geometry: both are compiled in.
#[derive(Args, Debug)]
pub struct KernelOptions {
    /// The chip, such as ascend910b3
    #[arg(long, value_name = "SOC", default_value = "ascend910b3")]
    soc: String,
    /// Ids of a token at most, K
    #[arg(long, value_name = "K", default_value_t = 2048)]
    k: usize,
    /// Tokens per request and step at most, N_q (speculated tokens + 1)
    #[arg(long, value_name = "N", default_value_t = 1)]
    tokens: usize,
    /// Slots of a request, S, a power of two
    #[arg(long, value_name = "S", default_value_t = 8192)]
    slots: u32,
    #[command(flatten)]
    table: TableOptions,
    /// Rows per block of the host's block table, a power of two; 0: none
    #[arg(long, value_name = "P", default_value_t = 0)]
    page: u32,
}

impl KernelOptions {
    /// The chip.
    pub fn soc(&self) -> Result<Soc> {
        soc::named(&self.soc)
    }

    /// The geometry: two links per slot unless told otherwise, so that a table fits the unified buffer.
    pub fn params(&self) -> Result<Params> {
        let mut table = self.table.clone();
        if table.table == TableKind::Wide {
            table.spread.get_or_insert(2);
        }
        table.params(self.k, self.tokens, self.slots, self.page)
    }

    /// The kernels, and where what lies in the unified buffer.
    pub fn kernels(&self, abi: Abi) -> Result<(Kernels, String)> {
        let p = self.params()?;
        let text = match stage_one(&p) {
            Err(Failed::TooLarge(TooLarge { needs, limit })) => {
                let limit = format!("there are {limit} for Stage One of {p}");
                let remedy = "choose fewer slots, less spread or a smaller K";
                return Err(Error::invalid("unified buffer", needs, limit, remedy).into());
            }
            text => text?,
        };
        Ok((kernels(&p, &text, abi)?, text.plan))
    }
}

/// What to write.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  avsg emit --soc ascend910b3 --slots 8192 --out kernels\n\n\
                        The kernels include the headers beside them, and those kernel_operator.h.")]
pub struct Options {
    /// The language
    #[arg(long, value_name = "TARGET", default_value = "ascendc")]
    target: String,
    #[command(flatten)]
    kernels: KernelOptions,
    /// Also show where every column of Stage One lies in the unified buffer
    #[arg(long)]
    plan: bool,
    /// Write the kernels into this directory; without it only the plan is shown
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Writes and shows it.
pub fn run(options: &Options) -> Result<ExitCode> {
    if !TARGETS.contains(&options.target.as_str()) {
        let limit = format!("kernels are written for {}", TARGETS.join(", "));
        let remedy = "choose one of those";
        return Err(Error::invalid("--target", &options.target, limit, remedy).into());
    }
    let soc = options.kernels.soc()?;
    let (kernels, plan) = options.kernels.kernels(Abi::Direct)?;
    if let Some(dir) = &options.out {
        for (name, text) in kernels.files() {
            write(dir, &name, text.as_bytes())?;
        }
    }
    print(&options.kernels.params()?, soc, &kernels);
    if options.plan {
        println!("Stage One: {plan}");
    }
    match &options.out {
        Some(dir) => println!("{} files written to {}", kernels.files().count(), dir.display()),
        None => println!("Nothing was written: pass --out DIR for the text."),
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes one file below a folder, with the folders above it.
pub fn write(dir: &Path, path: &str, bytes: &[u8]) -> Result<PathBuf> {
    let to = dir.join(path);
    to.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(&to, bytes))
        .with_context(|| format!("writing {}", to.display()))?;
    Ok(to)
}

/// The plan: unified buffer per kernel, and what the geometry takes elsewhere.
pub fn print(p: &Params, soc: Soc, kernels: &Kernels) {
    println!("chip      {}: {} vector cores of dav-c220", soc.name, soc.cores);
    println!("geometry  {p}");
    println!("table     {} of device memory per request state", output::bytes(4 * table_words(p)));
    let mut table = output::table(["file", "lines", "unified buffer", "of 184 KiB", "blocks"]);
    for (name, text) in &kernels.headers {
        let lines = text.lines().count().to_string();
        table.add_row([(*name).into(), lines, String::new(), String::new(), String::new()]);
    }
    for kernel in &kernels.kernels {
        let share = 100.0 * f64::from(kernel.ub_bytes) / f64::from(UB_BYTES);
        // All blocks of a kernel with SyncAll must run at once.
        let blocks = if kernel.text.contains("SyncAll<true>()") {
            format!("at most {}", soc.cores)
        } else {
            "any".into()
        };
        table.add_row([
            format!("{}.cpp", kernel.name),
            kernel.text.lines().count().to_string(),
            format!("{} B", kernel.ub_bytes),
            format!("{share:.0} %"),
            blocks,
        ]);
    }
    println!("{table}");
}
