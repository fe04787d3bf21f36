//! `avsg info` computes the memory that a deployment needs, without allocating it.

mod ascend_device;
mod file;

use anyhow::Result;
use avsg::buffer::{BufferConfig, DeviceBuffer};
use avsg::cpu::machine::Machine;
use avsg::device::memory::state_words;
use avsg::engine::Engine;
use avsg::pool::{HostPool, PoolConfig};
use avsg::system::{available_memory, cpus::allowed_cpu_count};

use clap::Args;
use serde::Serialize;

use super::engine_options::{DeviceOptions, Geometry, TableOptions};
use super::model::{Model, ModelOptions};
use super::output::{self, Cell, OutputOptions, Page, Table};
use crate::checks::product;
use ascend_device::Ascend;
use file::PlannedFile;

#[derive(Args, Debug)]
#[command(
    after_help = "Sizes are computed, and nothing is allocated. Example, GLM-5.2 with 64K tokens of context:\n  \
                        avsg info --k 2048 --slots 8192 --layers 78 --requests 16 --context 64K\n  \
                        avsg info --config config.json --requests 16 --context 128K"
)]
pub struct Options {
    /// K, the ids selected per token; 1 to S [default: 2048]
    #[arg(long, value_name = "K")]
    k: Option<usize>,
    /// N_q, the tokens per request and step (speculated tokens + 1); 1 to 16, N_q * K at most S
    #[arg(long, value_name = "N", default_value_t = 1)]
    tokens: usize,
    /// S, the slots per request and layer; a multiple of 64 up to 65536
    #[arg(long, value_name = "S", default_value_t = 8192)]
    slots: u32,
    #[command(flatten)]
    table: TableOptions,
    #[command(flatten)]
    model: ModelOptions,
    /// Context length, the tokens of each request whose rows the host pool holds; at least 1
    #[arg(long, value_name = "N", default_value_t = 65536)]
    context: usize,
    /// Rows per block of the host's block table; a power of two up to 65536, or 0 for no block table
    /// (a row's number is its id)
    #[arg(long, value_name = "P", default_value_t = 0)]
    page: u32,
    /// Also show the file that would hold the rows in the place of the host pool, for disks with blocks of 512
    /// and of 4096 bytes
    #[arg(long)]
    file: bool,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// K of DeepSeek V3.2 and of GLM-5.
const K: usize = 2048;

#[derive(Serialize)]
struct Report {
    cpu: HostCpu,
    /// The Ascend device, unless the CPU is the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<Ascend>,
    available_bytes: Option<usize>,
    geometry: Deployment,
    bytes: Bytes,
    /// The files that could hold the rows in the place of the host pool, if they were asked for.
    files: Vec<PlannedFile>,
}

#[derive(Serialize)]
struct HostCpu {
    machines: Vec<String>,
    chosen: String,
    /// What the CPU or the operating system lacks for the widest machine of the architecture.
    lacks: Vec<&'static str>,
    cores: usize,
}

/// The model, the batch and the rows.
#[derive(Serialize)]
struct Deployment {
    #[serde(flatten)]
    table: Geometry,
    #[serde(flatten)]
    model: Model,
    context: usize,
}

#[derive(Serialize)]
struct Bytes {
    table: usize,
    tables_per_request: usize,
    tables: usize,
    /// Bytes of the working columns of all cores of the CPU device, with what fills the last page of
    /// 2 MiB of the columns and of the tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    working_columns: Option<usize>,
    slots_per_request: usize,
    slots: usize,
    host_pool_per_request: usize,
    host_pool: usize,
    /// Whether the memory of this machine, and of its Ascend device if that is the device, suffices;
    /// null if there is no such device.
    fits_here: Option<bool>,
}

impl Bytes {
    /// Returns the bytes of the device's memory, which is this machine's for the CPU device.
    fn on_device(&self) -> usize {
        let all = [self.tables, self.slots, self.working_columns.unwrap_or(0)];
        all.into_iter().fold(0, usize::saturating_add)
    }
}

fn measure(options: &Options) -> Result<Report> {
    let table = options.table.on(options.device.device);
    let model = options.model.model(options.k, None)?;
    let Model { k, layers, indexers, requests, row_bytes, ref format } = model;
    let params = table.params(k.unwrap_or(K), options.tokens, options.slots, options.page)?;
    // An engine with the tables of all indexers.
    let config = options.device.config(params, product("tables", &[requests, indexers])?);
    let slots = params.slots as usize;
    let buffer = BufferConfig { states: requests, layers, slots, format: format.clone() };
    let context = match options.page as usize {
        0 => options.context,
        page => options.context.checked_next_multiple_of(page).unwrap_or(usize::MAX),
    };
    let pool = PoolConfig::new(layers, context, format.clone());
    let host_pool_per_request = HostPool::plan_bytes(&pool)?;
    // The tables do not depend on the layers.
    let (_, mapped) = Engine::bytes_needed(&config, &PoolConfig { layers: 1, ..pool })?;
    let table = 4 * state_words(&params);
    let tables = product("tables", &[table.next_multiple_of(64), requests, indexers])?;
    let files = || PlannedFile::on_disks([layers, indexers, context], format, requests);
    let files = if options.file { files()? } else { Vec::new() };
    let machine = Machine::find(config.machine)?;
    let device = Ascend::examine(&options.device, &params)?;
    let available_bytes = available_memory::bytes();
    let on_host = |bytes: usize| available_bytes.map(|available| bytes <= available);
    let bytes = Bytes {
        table,
        tables_per_request: product("tables", &[table, indexers])?,
        tables,
        working_columns: device.is_none().then(|| mapped.saturating_sub(tables)),
        slots_per_request: product("slots", &[slots, row_bytes, layers])?,
        slots: DeviceBuffer::bytes_needed(&buffer)?,
        host_pool_per_request,
        host_pool: product("host pool", &[host_pool_per_request, requests])?,
        fits_here: None,
    };
    let on_device = bytes.on_device();
    let fits_here = match &device {
        None => on_host(on_device.saturating_add(bytes.host_pool)),
        Some(device) => device
            .fits(on_device)
            .zip(on_host(bytes.host_pool))
            .map(|(device, host)| device && host),
    };
    Ok(Report {
        cpu: HostCpu {
            machines: Machine::all().iter().map(ToString::to_string).collect(),
            chosen: machine.to_string(),
            lacks: Machine::missing(),
            cores: allowed_cpu_count(),
        },
        device,
        available_bytes,
        geometry: Deployment { table: (&params).into(), model, context },
        bytes: Bytes { fits_here, ..bytes },
        files,
    })
}

pub fn run(options: &Options) -> Result<()> {
    options.output.check([], [])?;
    let report = measure(options)?;
    options.output.write(&report, || page(&report))
}

fn page(report: &Report) -> Page {
    let mut page = Page::default();
    let Report { cpu, device, geometry, bytes: b, files, .. } = report;
    let Deployment { table, model, context } = geometry;
    let Model { layers, indexers, requests, row_bytes, .. } = model;
    let Geometry { slots, spread, lifetime, .. } = table;
    let size = output::bytes;
    let here = match device {
        None => "the available memory of this machine",
        Some(_) => "the free memory of the device and of this machine",
    };
    let fits = match b.fits_here {
        Some(true) => format!(", which fits {here}"),
        Some(false) => format!(", which does not fit {here}"),
        None => ", and no device was found to compare it with".to_owned(),
    };
    page.text(format!(
        "It takes {} of device memory and {} of host memory{fits}.",
        size(b.on_device()),
        size(b.host_pool)
    ));
    let mut shown = Table::new(["memory", "per request", "all requests", "computed as"]);
    let mut add = |name: &str, one: Option<usize>, all: usize, computed: String| {
        let one = one.map_or_else(Cell::none, |bytes| size(bytes).into());
        shown.add_row([name.into(), one, size(all).into(), computed.into()]);
    };
    let learned = if lifetime == "learned" { " + learned 4096 + S/2" } else { "" };
    let formula = format!(
        "{indexers} indexers x {} B; a table: header 64 + ids 4*S + lifetimes S + 64 + links 4*S*{spread}{learned}",
        b.table
    );
    add("tables", Some(b.tables_per_request), b.tables, formula);
    let product = format!("{layers} layers x {slots} slots x {row_bytes} B");
    add("slots", Some(b.slots_per_request), b.slots, product);
    let product = format!("{layers} layers x {context} rows x {row_bytes} B, whole pages");
    add("host pool", Some(b.host_pool_per_request), b.host_pool, product);
    for file in files {
        let [name, words] = file.words();
        add(&name, Some(file.per_request), file.bytes, words);
    }
    if let Some(bytes) = b.working_columns {
        let cores = format!("{}, whole pages", output::count(cpu.cores, "core"));
        add("working columns", None, bytes, cores);
    }
    page.table(&shown);
    let [layers, indexers, requests] =
        [(layers, "layer"), (indexers, "indexer"), (requests, "request")]
            .map(|(n, noun)| output::count(*n, noun));
    page.text(format!(
        "assumed   {layers} ({indexers}), {requests}, {context} tokens of context, rows of {row_bytes} bytes; {table}; \
         1 MB is 10^6 bytes"
    ));
    let lacks = match cpu.lacks[..] {
        [] => String::new(),
        _ => format!(" (no {} for AVX-512)", cpu.lacks.join(", ")),
    };
    let machines = cpu.machines.join(", ");
    page.text(format!(
        "machine   {machines}; {} chosen{lacks}, {} cores, {} available",
        cpu.chosen,
        cpu.cores,
        report.available_bytes.map_or_else(|| "unknown memory".into(), size)
    ));
    device.iter().for_each(|device| page.text(format!("device    {}", device.line())));
    page
}
