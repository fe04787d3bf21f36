//! A run: all cells and probes on one GPU, as one JSON value.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, Result};
use avsg::Error;
use avsg::device::params::Params;
use avsg_cli::terminal;
use serde::Serialize;

use super::cell::{Cell, Scratch, measure};
use super::device::{Attribute, Gpu};
use super::memory::Memory;
use super::pack::Image;
use super::probe::{Probe, Probes};
use super::sizes::Sizes;
use super::step::{Kernel, Step};
use super::texts::{Architecture, PROBES, table_name};
use super::timer::Timer;

/// The version of the JSON.
const SCHEMA: u32 = 1;

/// The result of a run.
#[derive(Serialize)]
pub struct Report {
    schema: u32,
    version: &'static str,
    machine: Machine,
    method: Method,
    probes: Vec<Probe>,
    pub cells: Vec<Cell>,
    /// Cells that did not begin before the time limit.
    pub cells_left_out: usize,
    seconds: f64,
}

/// The GPU.
#[derive(Serialize)]
pub struct Machine {
    gpu: String,
    compute_capability: String,
    /// The CUDA version of the driver.
    driver: String,
    multiprocessors: u32,
    shared_bytes_of_block: u32,
    l2_bytes: u32,
}

/// What all cells have in common.
#[derive(Serialize)]
struct Method {
    /// The architecture that the machine code was made for.
    sm: u32,
    k: u32,
    threads: u32,
    pool_rows: u32,
    selections: u32,
    warm_up: usize,
    flush_bytes: usize,
}

impl Report {
    /// Returns the number of wrong bytes and slots of all cells and probes.
    pub fn wrong(&self) -> usize {
        let cells =
            self.cells.iter().map(|cell| cell.wrong_slots + cell.wrong_bytes.unwrap_or_default());
        let probes = self.probes.iter().map(|probe| probe.wrong_bytes.unwrap_or_default());
        cells.chain(probes).sum()
    }
}

/// Returns the GPU's attributes.
fn machine(gpu: &Gpu) -> Result<Machine> {
    let major = gpu.attribute(Attribute::MajorCapability)?;
    let minor = gpu.attribute(Attribute::MinorCapability)?;
    let driver = gpu.driver().version()?;
    Ok(Machine {
        gpu: gpu.name()?,
        compute_capability: format!("{major}.{minor}"),
        driver: format!("{}.{}", driver / 1000, driver % 1000 / 10),
        multiprocessors: gpu.attribute(Attribute::Multiprocessors)?,
        shared_bytes_of_block: gpu.attribute(Attribute::SharedBytesOfBlock)?,
        l2_bytes: gpu.attribute(Attribute::L2Bytes)?,
    })
}

/// Runs all probes and cells.
pub fn run(
    gpu: &Gpu,
    architecture: Architecture,
    images: &[Image],
    sizes: &Sizes,
) -> Result<Report> {
    let began = Instant::now();
    let machine = machine(gpu)?;
    let most = images.iter().map(|image| image.shared_bytes).max().unwrap_or_default();
    if most > machine.shared_bytes_of_block {
        let limit = format!("a block of the kernels for sm_{} needs {most} bytes", architecture.sm);
        let (value, remedy) = (machine.shared_bytes_of_block, "choose a GPU for data centres");
        return Err(Error::invalid("shared memory", value, limit, remedy).into());
    }
    let mut modules = BTreeMap::new();
    for Image { name, shared_bytes, code } in images {
        let module = gpu.load(code).with_context(|| format!("the kernels {name}"))?;
        modules.insert(name.clone(), (module, *shared_bytes));
    }
    let module = |name: &str| {
        modules.get(name).with_context(|| format!("the program has no kernels {name}"))
    };
    let memory = &Memory::new(gpu, sizes)?;
    let timer = &Timer::new(gpu, sizes)?;
    terminal::print_error(format_args!("{}: probes", machine.gpu));
    let (probes, _) = module(PROBES)?;
    let probes = Probes { gpu, timer, sizes, memory, module: probes, architecture }.run()?;
    let (mut cells, mut cells_left_out) = (Vec::new(), 0);
    let scratch = &mut Scratch::default();
    for (p, row_bytes, kernel) in measured(sizes) {
        terminal::print_error(format_args!(
            "{:4.0} s  {kernel:?}, S {}, spread {}, rows of {row_bytes} bytes",
            began.elapsed().as_secs_f64(),
            p.slots,
            p.spread
        ));
        let (module, shared_bytes) = module(&table_name(&p))?;
        let function = &kernel.find(module, &p, sizes.threads, *shared_bytes)?;
        for &missing in sizes.missing {
            for &requests in sizes.requests {
                if began.elapsed() > sizes.run_limit {
                    cells_left_out += 1;
                    continue;
                }
                let step = Step { kernel, function, memory, sizes, p, row_bytes, requests };
                cells.push(measure(gpu, timer, &step, missing, scratch)?);
            }
        }
    }
    Ok(Report {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        machine,
        method: Method {
            sm: architecture.sm,
            k: sizes.k,
            threads: sizes.threads,
            pool_rows: sizes.pool_rows,
            selections: super::sizes::SELECTIONS,
            warm_up: sizes.warm_up,
            flush_bytes: sizes.flush_bytes,
        },
        probes,
        cells,
        cells_left_out,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// Returns the geometries, rows and kernels that are measured. The time of a plan does not depend on the rows, and that
/// of the comparator not on the links of a table.
fn measured(sizes: &Sizes) -> Vec<(Params, u32, Kernel)> {
    let mut all = Vec::new();
    for p in sizes.geometries() {
        for &row_bytes in sizes.row_bytes {
            all.push((p, row_bytes, Kernel::Step));
            if sizes.row_bytes[0] == row_bytes {
                all.push((p, row_bytes, Kernel::Plan));
            }
            if sizes.spreads[0] == p.spread {
                all.push((p, row_bytes, Kernel::Comparator));
            }
        }
    }
    all
}
