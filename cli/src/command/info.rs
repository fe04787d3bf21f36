//! `avsg info` computes the memory that a deployment needs, without allocating it.

mod device;
mod file;

use std::process::ExitCode;

use anyhow::Result;
use avsg::buffer::{BufferConfig, DeviceBuffer};
use avsg::cpu::machine::Machine;
use avsg::device::memory::state_words;
use avsg::engine::Engine;
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg::{available_memory, cpus::allowed_cpu_count};
use clap::Args;
use serde::Serialize;

use super::geometry::{DeviceOptions, RowOptions, TableOptions};
use super::output::{self, Cell, OutputOptions, Page};
use crate::checks::{check_tables, product};
use device::Ascend;
use file::File;

#[derive(Args, Debug)]
#[command(
    after_help = "Sizes are computed, and nothing of the deployment is allocated. Only a host pool of 4 MiB is \
                        allocated and freed, to see which page size this machine grants. Example, GLM-5.2 with 64K \
                        tokens of context:\n  \
                        avsg info --k 2048 --slots 8192 --layers 78 --requests 16 --context 65536"
)]
pub struct Options {
    /// K, the ids selected per token; 1 to S
    #[arg(long, value_name = "K", default_value_t = 2048)]
    k: usize,
    /// N_q, the tokens per request and step (speculated tokens + 1); 1 to 16, N_q * K at most S
    #[arg(long, value_name = "N", default_value_t = 1)]
    tokens: usize,
    /// S, the slots per request and layer; a multiple of 64 up to 65536
    #[arg(long, value_name = "S", default_value_t = 8192)]
    slots: u32,
    #[command(flatten)]
    table: TableOptions,
    /// Layers whose KV rows are offloaded, at least 1
    #[arg(long, value_name = "N", default_value_t = 78)]
    layers: usize,
    /// Tables per request, one for each layer with an indexer of its own (other layers share one); 1 to
    /// the layers [default: the layers]
    #[arg(long, value_name = "N")]
    indexers: Option<usize>,
    /// B, the requests that are resident at the same time; at least 1
    #[arg(long, value_name = "B", default_value_t = 1)]
    requests: usize,
    #[command(flatten)]
    rows: RowOptions,
    /// Context length, the tokens of each request whose rows the host pool holds; at least 1
    #[arg(long, value_name = "N", default_value_t = 65536)]
    context: usize,
    /// Rows per block of the host's block table; a power of two up to 65536, or 0 for no block table
    /// (a row's number is its id)
    #[arg(long, value_name = "P", default_value_t = 0)]
    page: u32,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

#[derive(Serialize)]
struct Report {
    cpu: Cpu,
    /// The Ascend device, unless the CPU is the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<Ascend>,
    memory: Memory,
    geometry: Geometry,
    bytes: Bytes,
    /// The files that could hold the rows in the place of the host pool, for disks with other blocks.
    files: Vec<File>,
}

#[derive(Serialize)]
struct Cpu {
    machines: Vec<String>,
    chosen: String,
    /// What the CPU or the operating system lacks for the widest machine of the architecture.
    lacks: Vec<&'static str>,
    cores: usize,
}

#[derive(Serialize)]
struct Memory {
    available_bytes: usize,
    /// Page size that a pool of 4 MiB got; a large pool may get smaller pages.
    pages_of_trial_pool: String,
}

#[derive(Serialize)]
struct Geometry {
    k: usize,
    tokens: usize,
    slots: u32,
    table: String,
    spread: u32,
    retries: u32,
    lifetime: String,
    layers: usize,
    indexers: usize,
    requests: usize,
    row_bytes: usize,
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
    slots_per_request_and_layer: usize,
    slots_per_request: usize,
    slots: usize,
    host_pool_per_request: usize,
    host_pool: usize,
    /// Whether the memory of this machine, and of its Ascend device if that is the device, suffices;
    /// null if there is no such device.
    fits_here: Option<bool>,
}

/// Returns the page size that a host pool of 4 MiB gets on this machine.
fn pages(format: RowFormat) -> Result<Pages> {
    let stride: usize = format.as_slice().iter().map(|segment| segment.stride).sum();
    let mut config = PoolConfig::new(1, (4usize << 20).div_ceil(stride), format);
    config.chunk_bytes = config.chunk_bytes.max(stride);
    Ok(HostPool::new(&config)?.pages())
}

fn measure(options: &Options) -> Result<Report> {
    let table = options.table.on(options.device.device);
    let params = table.params(options.k, options.tokens, options.slots, options.page)?;
    let format = options.rows.format()?;
    let (layers, requests) = (options.layers, options.requests);
    let indexers = options.indexers.unwrap_or(layers);
    check_tables([layers, indexers, requests])?;
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
    let files = File::on_disks([layers, indexers, context], &format, requests)?;
    let machine = Machine::find(config.machine)?;
    let device = Ascend::examine(&options.device, &params)?;
    let available_bytes = available_memory::bytes()?;
    let row = format.bytes();
    let bytes = Bytes {
        table,
        tables_per_request: product("tables", &[table, indexers])?,
        tables,
        working_columns: device.is_none().then(|| mapped.saturating_sub(tables)),
        slots_per_request_and_layer: product("slots", &[slots, row])?,
        slots_per_request: product("slots", &[slots, row, layers])?,
        slots: DeviceBuffer::bytes_needed(&buffer)?,
        host_pool_per_request,
        host_pool: product("host pool", &[host_pool_per_request, requests])?,
        fits_here: None,
    };
    let on_device = [bytes.tables, bytes.slots, bytes.working_columns.unwrap_or(0)];
    let on_device = on_device.into_iter().fold(0, usize::saturating_add);
    let fits_here = match &device {
        None => Some(on_device.saturating_add(bytes.host_pool) <= available_bytes),
        Some(device) => {
            device.fits(on_device).map(|fits| fits && bytes.host_pool <= available_bytes)
        }
    };
    Ok(Report {
        cpu: Cpu {
            machines: Machine::all().iter().map(ToString::to_string).collect(),
            chosen: machine.to_string(),
            lacks: Machine::missing(),
            cores: allowed_cpu_count(),
        },
        device,
        memory: Memory { available_bytes, pages_of_trial_pool: pages(format)?.to_string() },
        geometry: Geometry {
            k: options.k,
            tokens: options.tokens,
            slots: params.slots,
            table: format!("{:?}", options.table.table).to_lowercase(),
            spread: params.spread,
            retries: params.retries,
            lifetime: params.lifetime.to_string(),
            layers,
            indexers,
            requests,
            row_bytes: row,
            context,
        },
        bytes: Bytes { fits_here, ..bytes },
        files,
    })
}

pub fn run(options: &Options) -> Result<ExitCode> {
    options.output.check([], [])?;
    let report = measure(options)?;
    options.output.write(&report, || page(&report))?;
    Ok(ExitCode::SUCCESS)
}

fn page(report: &Report) -> Page {
    let mut page = Page::default();
    let Report { cpu, device, memory, geometry, bytes: b, files } = report;
    let Geometry { table, k, tokens, slots, spread, retries, lifetime, .. } = geometry;
    let Geometry { layers, indexers, requests, row_bytes, context, .. } = geometry;
    let size = output::bytes;
    let lacks = if cpu.lacks.is_empty() {
        String::new()
    } else {
        format!(" (no {} for AVX-512)", cpu.lacks.join(", "))
    };
    page.text(format!(
        "CPU       {}; {} chosen{lacks}, {} cores",
        cpu.machines.join(", "),
        cpu.chosen,
        cpu.cores
    ));
    device.iter().for_each(|device| page.text(format!("device    {}", device.line())));
    page.text(format!("memory    {} available", size(memory.available_bytes)));
    page.text(format!(
        "pages     {} (granted to a trial pool of 4 MiB; a large pool may get smaller pages)",
        memory.pages_of_trial_pool
    ));
    page.text(format!(
        "geometry  {table} table, K = {k}, N_q = {tokens}, S = {slots}, spread {spread}, R = {retries}, {}, rows of \
         {row_bytes} bytes, {} ({}), {}, {context} tokens of context",
        lifetime,
        output::count(*layers, "layer"),
        output::count(*indexers, "indexer"),
        output::count(*requests, "request"),
    ));
    let mut table = output::table(["memory", "per request", "all requests", "computed as"]);
    let learned = if lifetime == "learned" { " + learned 4096 + S/2" } else { "" };
    let formula = format!(
        "{indexers} indexers x {} B; a table: header 64 + ids 4*S + lifetimes S + 64 + links 4*S*{spread}{learned}",
        b.table
    );
    let size = |bytes: usize| Cell::shown(bytes as f64, size(bytes));
    table.add_row(["tables".into(), size(b.tables_per_request), size(b.tables), formula.into()]);
    let product = format!("{layers} layers x {slots} slots x {row_bytes} B");
    table.add_row(["slots".into(), size(b.slots_per_request), size(b.slots), product.into()]);
    let product = format!("{layers} layers x {context} rows x {row_bytes} B, whole pages");
    let [one, all] = [b.host_pool_per_request, b.host_pool].map(size);
    table.add_row(["host pool".into(), one, all, product.into()]);
    files.iter().for_each(|file| table.add_row(file.cells()));
    if let Some(bytes) = b.working_columns {
        let cores = format!("{}, whole pages", output::count(cpu.cores, "core"));
        table.add_row(["working columns".into(), Cell::none(), size(bytes), cores.into()]);
    }
    page.table(table);
    let memory = match device {
        None => "this machine's available memory",
        Some(_) => "the free memory of the device and, with the host pool, that of this machine",
    };
    page.text(match b.fits_here {
        Some(true) => format!("Nothing of this was allocated. In total it fits into {memory}."),
        Some(false) => format!("Nothing of this was allocated. It does not fit into {memory}."),
        None => "Nothing of this was allocated, and no device was found to compare it with.".into(),
    });
    page
}
