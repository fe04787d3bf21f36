//! `avsg emit` writes the kernels of a geometry as source text, and shows the memory that they use.

use std::path::{Path, PathBuf};

use anyhow::Result;
use avsg::Error;
use avsg::device::memory::table_words;
use avsg::device::params::Params;
use avsg_linker::ascend::kernels::{Abi, Kernels, kernels};
use avsg_linker::ascend::limits::UB_BYTES;
use avsg_linker::ascend::soc::{self, Soc};
use avsg_linker::ascend::toolchain;
use avsg_linker::ascend::ub::TooLarge;
use avsg_linker::ascend::{Failed, stage_one};
use clap::Args;
use serde_json::{Value, json};

use super::engine_options::TableOptions;
use super::output::{self, Cell, OutputOptions, Page, Table};
use crate::output_file;

/// The chip and the geometry, which are constants in the kernels.
#[derive(Args, Debug)]
pub struct KernelOptions {
    /// Chip that the kernels are for; an unknown name is refused with the list of known ones
    #[arg(long, value_name = "SOC", default_value = "ascend910b3")]
    soc: String,
    /// K, the ids selected per token at most; 1 to S
    #[arg(long, value_name = "K", default_value_t = 2048)]
    k: usize,
    /// N_q, the tokens per request and step at most (speculated tokens + 1); 1 to 16, N_q * K at most S
    #[arg(long, value_name = "N", default_value_t = 1)]
    tokens: usize,
    /// S, the slots per request and layer; a multiple of 128 up to 65536
    #[arg(long, value_name = "S", default_value_t = 8192)]
    slots: u32,
    #[command(flatten)]
    table: TableOptions,
    /// Rows per block of the host's block table; a power of two up to 65536, or 0 for no block table
    /// (a row's number is its id)
    #[arg(long, value_name = "P", default_value_t = 0)]
    page: u32,
}

impl KernelOptions {
    /// Returns the chip that `--soc` names.
    pub fn soc(&self) -> Result<Soc> {
        Ok(soc::find(&self.soc).ok_or_else(|| {
            let limit = format!("the known chips are {}", soc::ALL.map(|soc| soc.name).join(", "));
            Error::invalid("--soc", &self.soc, limit, "choose one of them")
        })?)
    }

    /// Returns the checked geometry, which has the default links per slot of a vector core.
    pub fn params(&self) -> Result<Params> {
        self.table.on_vector_core().params(self.k, self.tokens, self.slots, self.page)
    }
}

/// Returns the kernels of a geometry, and the plan of Stage One's columns in the unified buffer as text. A
/// geometry that does not fit is refused with the bytes that it needs.
pub fn kernels_of(p: &Params, abi: Abi) -> Result<(Kernels, String)> {
    let text = match stage_one(p) {
        Err(Failed::TooLarge(TooLarge { needs, limit })) => {
            let value = format!("{needs} bytes for Stage One of {p}");
            let limit = format!("a vector core has {limit} bytes");
            let remedy = "choose fewer slots, less spread or a smaller K";
            return Err(Error::invalid("unified buffer", value, limit, remedy).into());
        }
        Err(Failed::Slots(slots)) => {
            let limit = "a vector core compares 128 lifetimes per instruction";
            let remedy = "choose a multiple of 128";
            return Err(Error::invalid("S (slots)", slots, limit, remedy).into());
        }
        text => text?,
    };
    Ok((kernels(p, &text, abi)?, text.plan))
}

#[derive(Args, Debug)]
#[command(mut_arg("spread", super::engine_options::spread_on_device))]
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
    #[command(flatten)]
    output: OutputOptions,
}

/// Writes the kernels if a directory is given, and prints their plan.
pub fn run(options: &Options) -> Result<()> {
    options.output.check_with_folder([], options.out.as_deref())?;
    let (soc, p) = (options.kernels.soc()?, options.kernels.params()?);
    let (kernels, plan) = kernels_of(&p, Abi::Direct)?;
    let names: Vec<_> = kernels.kernels.iter().map(|kernel| kernel.name).collect();
    let project = toolchain::project(&names, soc.name);
    let mut then = "No file was written; pass --out DIR to write the kernels.".to_owned();
    if let Some(dir) = &options.out {
        let files = kernels.files().chain([("CMakeLists.txt".to_owned(), project.as_str())]);
        let mut written = 0;
        for (name, text) in files {
            write(dir, &name, text.as_bytes())?;
            written += 1;
        }
        let dir = dir.display();
        then = format!(
            "{written} files were written to {dir}; on a machine with CANN, build them with\n  \
             cmake -S {dir} -B {dir}/build && cmake --build {dir}/build"
        );
    }
    let (report, mut page) = describe(&p, soc, &kernels, &then);
    if options.plan {
        page.text(format!("Stage One: {plan}"));
    }
    options.output.write(&report, || page)
}

/// Writes one file below `dir`, creates the folders of its path, and returns the whole path.
pub fn write(dir: &Path, path: &str, bytes: &[u8]) -> Result<PathBuf> {
    let to = dir.join(path);
    to.parent().map_or(Ok(()), output_file::folder)?;
    output_file::write(&to, bytes)?;
    Ok(to)
}

/// Returns the chip, the geometry and the files of its kernels as JSON, and as the page that begins with what was
/// written.
pub fn describe(p: &Params, soc: Soc, kernels: &Kernels, written: &str) -> (Value, Page) {
    let mut page = Page::default();
    page.text(written);
    let columns =
        "file | lines | unified buffer, bytes | share of its 184 KiB, % | blocks per launch";
    let (mut table, mut files) = (Table::new(columns.split(" | ")), Vec::new());
    let headers = kernels.headers.iter().map(|(name, text)| ((*name).to_owned(), text, None));
    let texts = kernels.kernels.iter();
    let texts = texts.map(|k| (format!("{}.cpp", k.name), &k.text, Some(k.ub_bytes)));
    for (file, text, used) in headers.chain(texts) {
        let lines = text.lines().count();
        // All blocks of a kernel that calls SyncAll must run at the same time.
        let is_together = used.is_some() && text.contains("SyncAll<true>()");
        let blocks = is_together.then_some(soc.cores);
        files.push(json!({
            "file": file,
            "lines": lines,
            "unified_buffer_bytes": used,
            // The most blocks of a launch.
            "blocks": blocks,
        }));
        let share = |bytes: u32| 100.0 * f64::from(bytes) / f64::from(UB_BYTES);
        let blocks = blocks.map_or_else(|| "any".into(), |n| format!("at most {n}"));
        table.add_row([
            file.into(),
            lines.into(),
            used.map_or_else(Cell::none, Cell::from),
            used.map_or_else(Cell::none, |bytes| Cell::number(share(bytes), 0)),
            used.map_or_else(Cell::none, |_| blocks.into()),
        ]);
    }
    page.table(&table);
    let (name, cores, table_bytes) = (soc.name, soc.cores, 4 * table_words(p));
    page.text(format!("chip      {name}: {cores} vector cores of dav-c220"));
    page.text(format!("geometry  {p}"));
    page.text(format!("table     {} of device memory per state", output::bytes(table_bytes)));
    let report = json!({
        "soc": name,
        "cores": cores,
        "geometry": p.to_string(),
        "table_bytes": table_bytes,
        "files": files,
    });
    (report, page)
}
