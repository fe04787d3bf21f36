//! `avsg info` computes the memory that a deployment needs, without allocating it.

mod ascend_device;

use anyhow::Result;
use avsg::buffer::BufferConfig;
use avsg::cpu::machine::Machine;
use avsg::device::memory::state_words;
use avsg::device::params::Lifetime;
use avsg::engine::Engine;
use avsg::pool::{HostPool, PoolConfig};
use avsg::system::{available_memory, cpus::allowed_cpu_count};

use clap::Args;
use serde_json::{Map, Value, json};

use super::engine_options::{DeviceOptions, TableOptions, described};
use super::model::{Model, ModelOptions};
use super::output::{self, Cell, OutputOptions, Page, Table, count};
use crate::checks::product;
use crate::disk::layout;

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

/// The blocks of most disks.
const BLOCKS: [usize; 2] = [512, 4096];

/// The table of memory as text, and its bytes as JSON.
struct MemoryTable {
    shown: Table,
    bytes: Map<String, Value>,
}

impl MemoryTable {
    fn show(&mut self, name: &str, one: Option<usize>, all: usize, computed: String) {
        let one = one.map_or_else(Cell::none, |bytes| output::bytes(bytes).into());
        self.shown.add_row([name.into(), one, output::bytes(all).into(), computed.into()]);
    }

    /// Adds the memory of a request, unless requests share it, and that of all of them.
    fn add(&mut self, name: &str, one: Option<usize>, all: usize, computed: String) {
        let key = name.replace(' ', "_");
        self.bytes.extend(one.map(|bytes| (format!("{key}_per_request"), bytes.into())));
        self.bytes.insert(key, all.into());
        self.show(name, one, all, computed);
    }
}

pub fn run(options: &Options) -> Result<()> {
    options.output.check([], [])?;
    let (report, page) = measure(options)?;
    options.output.write(&report, || page)
}

fn measure(options: &Options) -> Result<(Value, Page)> {
    let table = options.table.on(options.device.device);
    let model = options.model.model(options.k, None)?;
    let Model { k, layers, indexers, requests, row_bytes, ref format } = model;
    let p = table.params(k.unwrap_or(K), options.tokens, options.slots, options.page)?;
    // An engine with the tables of all indexers.
    let config = options.device.config(p, product("tables", &[requests, indexers])?);
    let slots = p.slots as usize;
    let buffer = BufferConfig { states: requests, layers, slots, format: format.clone() };
    let context = match options.page as usize {
        0 => options.context,
        page => options.context.checked_next_multiple_of(page).unwrap_or(usize::MAX),
    };
    let pool = PoolConfig::new(layers, context, format.clone());
    let device = ascend_device::examine(&options.device, &p)?;
    let columns = ["memory", "per request", "all requests", "computed as"];
    let mut memory = MemoryTable { shown: Table::new(columns), bytes: Map::new() };

    let table_bytes = 4 * state_words(&p);
    let tables = product("tables", &[table_bytes.next_multiple_of(64), requests, indexers])?;
    let one = product("tables", &[table_bytes, indexers])?;
    let learned = if p.lifetime == Lifetime::Learned { " + learned 4096 + S/2" } else { "" };
    let spread = p.spread;
    let formula = format!(
        "{indexers} indexers x {table_bytes} B; a table: header 64 + ids 4*S + lifetimes S + 64 + links 4*S*{spread}{learned}"
    );
    memory.add("tables", Some(one), tables, formula);
    let one = product("slots", &[slots, row_bytes, layers])?;
    let slots_bytes = buffer.bytes()?;
    let formula = format!("{layers} layers x {slots} slots x {row_bytes} B");
    memory.add("slots", Some(one), slots_bytes, formula);
    let one = HostPool::plan_bytes(&pool)?;
    let on_host = product("host pool", &[one, requests])?;
    let formula = format!("{layers} layers x {context} rows x {row_bytes} B, whole pages");
    memory.add("host pool", Some(one), on_host, formula);
    let mut files = Vec::new();
    for block in BLOCKS.into_iter().filter(|_| options.file) {
        let layout = layout([layers, indexers, context], format, block)?;
        let (record, padding) = (layout.max_record_bytes(), 100.0 * layout.padding());
        let one = usize::try_from(layout.end())?;
        let bytes = product("file", &[one, requests])?;
        files.push(json!({
            "block": block,
            // The longest record: the rows of the layers of an indexer, checksums and padding.
            "record_bytes": record,
            "padding_percent": padding,
            "per_request": one,
            "bytes": bytes,
        }));
        let words = format!(
            "in the place of the host pool: records of at most {record} B, {padding:.1} % padding"
        );
        memory.show(&format!("file, blocks of {block}"), Some(one), bytes, words);
    }
    let mut on_device = tables.saturating_add(slots_bytes);
    let cores = allowed_cpu_count();
    if device.is_none() {
        // The tables do not depend on the layers. The working columns of all cores are those of the CPU device, with
        // what fills the last page of 2 MiB of the columns and of the tables.
        let (_, mapped) = Engine::bytes_needed(&config, &PoolConfig { layers: 1, ..pool }, None)?;
        let bytes = mapped.saturating_sub(tables);
        let cores = format!("{}, whole pages", count(cores, "core"));
        memory.add("working columns", None, bytes, cores);
        on_device = on_device.saturating_add(bytes);
    }

    let available = available_memory::bytes();
    let here = |bytes: usize| available.map(|available| bytes <= available);
    // Null if there is no such device.
    let (fits, place) = match &device {
        None => (here(on_device.saturating_add(on_host)), "available memory of this machine"),
        Some(device) => {
            let both = device.free.map(|free| on_device <= free).zip(here(on_host));
            (
                both.map(|(device, host)| device && host),
                "free memory of the device and of this machine",
            )
        }
    };
    memory.bytes.insert("table".to_owned(), table_bytes.into());
    memory.bytes.insert("fits_here".to_owned(), fits.into());
    let fits = match fits {
        Some(true) => format!("which fits the {place}"),
        Some(false) => format!("which does not fit the {place}"),
        None => "and no device was found to compare it with".to_owned(),
    };
    let mut page = Page::default();
    let [on_device, on_host] = [on_device, on_host].map(output::bytes);
    page.text(format!(
        "It takes {on_device} of device memory and {on_host} of host memory, {fits}."
    ));
    page.table(&memory.shown);
    let (mut setting, geometry) = described(&p);
    let sizes = [("layers", layers), ("indexers", indexers), ("requests", requests)];
    for (name, n) in sizes.into_iter().chain([("row_bytes", row_bytes), ("context", context)]) {
        setting[name] = n.into();
    }
    page.text(format!(
        "assumed   {} ({}), {}, {context} tokens of context, rows of {row_bytes} bytes; {}; 1 MB is 10^6 bytes",
        count(layers, "layer"),
        count(indexers, "indexer"),
        count(requests, "request"),
        geometry,
    ));
    let machines: Vec<String> = Machine::all().iter().map(ToString::to_string).collect();
    let chosen = Machine::find(config.machine)?.to_string();
    // What the CPU or the operating system lacks for the widest machine of the architecture.
    let missing = Machine::missing();
    let lacks = match missing[..] {
        [] => String::new(),
        _ => format!(" (no {} for AVX-512)", missing.join(", ")),
    };
    page.text(format!(
        "machine   {}; {chosen} chosen{lacks}, {cores} cores, {} available",
        machines.join(", "),
        available.map_or_else(|| "unknown memory".into(), output::bytes)
    ));
    device.iter().for_each(|device| page.text(format!("device    {}", device.line)));
    let report = json!({
        "cpu": {"machines": machines, "chosen": chosen, "lacks": missing, "cores": cores},
        "device": device.map(|device| device.json),
        "available_bytes": available,
        "geometry": setting,
        "bytes": memory.bytes,
        "files": files,
    });
    Ok((report, page))
}
