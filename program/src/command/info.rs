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
use serde_json::{Map, json};

use super::engine_options::{DeviceOptions, GeometryOptions, described};
use super::model::{Model, ModelOptions};
use super::output::{self, OutputOptions, Page, Table, count};
use crate::checks::product;
use crate::disk::layout;

#[derive(Args, Debug)]
#[command(
    after_help = "Sizes are computed, and nothing is allocated. Example, GLM-5.2 with 64K tokens of context:\n  \
                        avsg info --k 2048 --slots 8192 --layers 78 --requests 16 --context 64K\n  \
                        avsg info --config config.json --requests 16 --context 128K"
)]
pub struct Options {
    #[command(flatten)]
    geometry: GeometryOptions,
    #[command(flatten)]
    model: ModelOptions,
    /// Context length, the tokens of each request whose rows the host pool holds; at least 1
    #[arg(long, value_name = "N", default_value_t = 65536)]
    context: usize,
    /// Also show the file that would hold the rows in the place of the host pool, for disks with blocks of 512
    /// and of 4096 bytes
    #[arg(long)]
    file: bool,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// The blocks of most disks.
const BLOCKS: [usize; 2] = [512, 4096];

pub fn run(options: &Options) -> Result<()> {
    options.output.check([])?;
    let model = options.model.model(options.geometry.k, None)?;
    let Model { k, layers, indexers, requests, row_bytes, ref format } = model;
    let p = options.geometry.params(k, options.device.device)?;
    // An engine with the tables of all indexers.
    let config = options.device.config(p, product("tables", &[requests, indexers])?);
    let slots = p.slots as usize;
    let buffer = BufferConfig { states: requests, layers, slots, format: format.clone() };
    let page = p.page.max(1) as usize;
    let context = options.context.checked_next_multiple_of(page).unwrap_or(usize::MAX);
    let pool = PoolConfig::new(layers, context, format.clone());
    let device = ascend_device::examine(&options.device, &p)?;
    let mut table = Table::new(["memory", "bytes", "computed as"]);
    let mut sizes = Map::new();
    let mut add = |name: &str, bytes: usize, computed: String| {
        sizes.insert(name.replace(", ", "_").replace(' ', "_"), bytes.into());
        table.add_row([name.to_owned(), output::bytes(bytes), computed]);
    };

    let (each, table_bytes) = (count(requests, "request"), 4 * state_words(&p));
    let tables = product("tables", &[table_bytes.next_multiple_of(64), requests, indexers])?;
    let learned = if p.lifetime == Lifetime::Learned { " + learned 4096 + S/2" } else { "" };
    let spread = p.spread;
    let formula = format!(
        "{each} x {indexers} indexers x {table_bytes} B; a table: header 64 + ids 4*S + lifetimes S + 64 + links 4*S*{spread}{learned}"
    );
    add("tables", tables, formula);
    let slots_bytes = buffer.bytes()?;
    let formula = format!("{each} x {layers} layers x {slots} slots x {row_bytes} B");
    add("slots", slots_bytes, formula);
    let on_host = product("host pool", &[HostPool::plan_bytes(&pool)?, requests])?;
    let formula = format!("{each} x {layers} layers x {context} rows x {row_bytes} B, whole pages");
    add("host pool", on_host, formula);
    for block in BLOCKS.into_iter().filter(|_| options.file) {
        let layout = layout([layers, indexers, context], format, block)?;
        let (record, padding) = (layout.max_record_bytes(), 100.0 * layout.padding());
        let bytes = product("file", &[usize::try_from(layout.end())?, requests])?;
        let words = format!(
            "in the place of the host pool: records of at most {record} B, {padding:.1} % padding"
        );
        add(&format!("file, blocks of {block}"), bytes, words);
    }
    let mut on_device = tables.saturating_add(slots_bytes);
    let cores = allowed_cpu_count();
    if device.is_none() {
        // The tables do not depend on the layers. The working columns of all cores are those of the CPU device, with
        // what fills the last page of 2 MiB of the columns and of the tables.
        let (_, mapped) = Engine::bytes_needed(&config, &PoolConfig { layers: 1, ..pool }, None)?;
        let bytes = mapped.saturating_sub(tables);
        let cores = format!("{}, whole pages", count(cores, "core"));
        add("working columns", bytes, cores);
        on_device = on_device.saturating_add(bytes);
    }

    let available = available_memory::bytes();
    let here = |bytes: usize| available.map(|available| bytes <= available);
    // Null if there is no such device.
    let (fits, place) = match &device {
        None => (here(on_device.saturating_add(on_host)), "available memory of this machine"),
        Some((_, device)) => {
            let free = device["free_bytes"].as_u64().zip(here(on_host));
            let fits = free.map(|(free, host)| on_device as u64 <= free && host);
            (fits, "free memory of the device and of this machine")
        }
    };
    sizes.insert("table".to_owned(), table_bytes.into());
    let verdict = match fits {
        Some(true) => format!("which fits the {place}"),
        Some(false) => format!("which does not fit the {place}"),
        None => "and no device was found to compare it with".to_owned(),
    };
    let mut page = Page::default();
    let [on_device, on_host] = [on_device, on_host].map(output::bytes);
    page.text(format!(
        "It takes {on_device} of device memory and {on_host} of host memory, {verdict}."
    ));
    page.table(&table);
    let mut setting = described(&p);
    let numbers = [("layers", layers), ("indexers", indexers), ("requests", requests)];
    for (name, n) in numbers.into_iter().chain([("row_bytes", row_bytes), ("context", context)]) {
        setting[name] = n.into();
    }
    page.text(format!(
        "assumed   {} ({}), {}, {context} tokens of context, rows of {row_bytes} bytes; {p}; 1 MB is 10^6 bytes",
        count(layers, "layer"),
        count(indexers, "indexer"),
        count(requests, "request"),
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
    device.iter().for_each(|(line, _)| page.text(format!("device    {line}")));
    let report = json!({
        "cpu": {"machines": machines, "chosen": chosen, "lacks": missing, "cores": cores},
        "device": device.map(|(_, json)| json),
        "available_bytes": available,
        "geometry": setting,
        "bytes": sizes,
        "fits_here": fits,
    });
    options.output.write(&report, || page)
}
