//! `avsg replay` runs a recorded trace through the operator and checks every byte of every returned row.

mod report;
mod results;
mod sparse;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use crate::baseline::count_operator_hits;
use crate::disk::folder_on_disk;
use crate::output_file;
use crate::stats::us_since;
use crate::trace::Trace;
use anyhow::Result;
use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::cpu::machine::Machine;
use avsg::device::params::{MAX_PAPER_SLOTS, Params};
use avsg::disk::PoolFile;
use avsg::engine::{Config, Engine};
use avsg::pool::{HostPool, PoolConfig};
use avsg_linker::ascend::{Failed, stage_one};

use super::engine_options::{DeviceChoice, DeviceOptions, ROW_BYTES, RowOptions, TableOptions};
use super::lifetimes::recommended;
use super::output::{self, OutputOptions, Page};
use super::trace_options::TraceOptions;
use crate::checks::in_range;
use report::{Tally, report};
use results::Results;
use world::World;

#[derive(clap::Args, Debug)]
#[command(
    after_help = "The exit status is 0 if no returned row is wrong, and 1 otherwise. Rows and bytes \
                  are sums over all requests and steps, and latencies are of a step of the whole batch. Example:\n  \
                  avsg replay tests/data/nomicon-4k-k256.npz --slots 1024"
)]
pub struct Options {
    #[command(flatten)]
    trace: TraceOptions,
    /// S, the slots per request and layer; a multiple of 64 up to 65536, at least N_q * K [default: the
    /// smallest power of two that is at least 4 * K, but at most 32768, and on an Ascend device smaller if
    /// its unified buffer is]
    #[arg(long, value_name = "S")]
    slots: Option<u32>,
    #[command(flatten)]
    table: TableOptions,
    #[command(flatten)]
    device: DeviceOptions,
    /// Folder with the geometry's kernels, compiled for the Ascend device [default: built-in kernels]
    #[arg(long, value_name = "DIR")]
    kernels: Option<PathBuf>,
    #[command(flatten)]
    rows: RowOptions,
    /// Rows per block of the host's block table, which is shuffled; a power of two up to S, or 0 for
    /// no block table (a row's number is its id)
    #[arg(long, value_name = "P", default_value_t = 0)]
    page: u32,
    /// B, the requests of a batch, 1 to 4096; all of them replay the trace
    #[arg(long, value_name = "B", default_value_t = 1)]
    requests: usize,
    /// Keep the host rows in a file in this folder on a disk, which has no name and is gone afterwards; CPU
    /// device only
    #[arg(long, value_name = "DIR")]
    file: Option<PathBuf>,
    /// Launches per step: 2 is one for the plan and one for the transfer, 1 is both in one launch
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    launches: u8,
    /// Write the slots, hits, miss lists, cuts and row tags of request 0 to this file
    #[arg(long, value_name = "FILE.npz")]
    results: Option<PathBuf>,
    #[command(flatten)]
    output: OutputOptions,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    options.output.check(options.trace.paths())?;
    let file = options.results.as_deref();
    file.map_or(Ok(()), |file| output_file::check(file, options.trace.paths()))?;
    let trace = options.trace.read()?;
    let params = geometry(options, &trace)?;
    in_range("--page", options.page, 0..=params.slots, "choose 16 to 128, and at most S")?;
    in_range("--requests", options.requests, 1..=4096, "choose 1 to 64, for example")?;
    let format = options.rows.format(|| Ok(ROW_BYTES))?;
    let config = options.device.config(params, options.requests);
    let rows = trace.rows().next_multiple_of(options.page.max(1) as usize);
    let mut pool = PoolConfig::new(1, rows, format.clone());
    if let Some(folder) = &options.file {
        pool.file = Some(PoolFile::new(&folder_on_disk("--file", Some(folder))?));
    }
    // A row that is larger than a chunk enlarges the chunk, so that the check of the memory refuses it
    // with a message about the row's bytes.
    pool.chunk_bytes =
        pool.chunk_bytes.max(format.as_slice().iter().map(|s| s.stride).max().unwrap_or(0));
    let (slots, tables) = Engine::bytes_needed(&config, &pool, None)?;
    let host_pool = HostPool::plan_bytes(&pool)?;
    let used = used_rows(&trace, rows);
    let host_rows_used = used.iter().filter(|&&used| used).count();
    // A device registers its pool, which provides memory for all of it.
    let sparse = options.device.device == DeviceChoice::Cpu
        && options.file.is_none()
        && sparse::is_worthwhile(host_pool, host_rows_used, rows);
    let memory = [slots, tables, host_rows_used];
    let engine = if sparse {
        Engine::new(config, sparse::pool(&pool)?)?
    } else {
        output::show_during("create the engine", || create(options, config, &pool))?
    };
    let (tally, results, engine) = replay(options, &trace, engine, &used)?;
    let is_right = tally.wrong_rows == 0;
    let mut page = Page::default();
    options.trace.warning(&trace).iter().for_each(|warning| page.text(warning));
    let name = options.trace.name();
    let figures = report(&mut page, (&name, &trace), &engine, sparse, memory, tally)?;
    // The report is shown even if the file cannot be written.
    let written = file.map_or(Ok(()), |file| results.write(file, trace.tokens, trace.k));
    options.output.write(&figures, || page)?;
    written?;
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the table that the options name. Where they do not, it has the rule of lifetimes that the trace
/// recommends on the CPU, and fits the unified buffer of another device.
fn geometry(options: &Options, trace: &Trace) -> Result<Params> {
    let device = &options.device;
    let table = options.table.on(device.device);
    let least = trace.tokens * trace.k;
    let wanted = (4 * trace.k).clamp(64, MAX_PAPER_SLOTS as usize).max(least);
    let wanted = u32::try_from(wanted.next_power_of_two()).unwrap_or(u32::MAX);
    let with = |slots| table.params(trace.k, trace.tokens, slots, options.page);
    let mut params = with(options.slots.unwrap_or(wanted))?;
    if device.device != DeviceChoice::Cpu {
        // A vector core compares 128 lifetimes at once.
        let may_shrink = |slots| options.slots.is_none() && slots as usize >= 2 * least.max(128);
        while may_shrink(params.slots) && matches!(stage_one(&params), Err(Failed::TooLarge(_))) {
            params = with(params.slots / 2)?;
        }
    } else if table.is_rule_open() {
        let machine = Machine::find(device.machine)?;
        let hits = |params: &Params| Ok(vec![count_operator_hits(trace, params, machine)?]);
        (params, _) = output::show_during("rules", || recommended(params, trace.steps, hits))?;
    }
    Ok(params)
}

/// Creates the engine on the chosen device, with a host pool of its own.
fn create(options: &Options, config: Config, pool: &PoolConfig) -> Result<Engine> {
    let Some(context) = options.device.context()? else {
        return Ok(Engine::new(config, HostPool::new(pool)?)?);
    };
    let pool = RegisteredPool::create(&context, pool)?;
    let kernels = options.kernels.clone();
    let options = AscendOptions { kernels, ..AscendOptions::new(context) };
    Ok(Engine::on_ascend(config, pool, &options)?)
}

/// Returns for each of `rows` rows whether the trace selects or appends it.
fn used_rows(trace: &Trace, rows: usize) -> Vec<bool> {
    let mut used = vec![false; rows];
    let selected = trace.ids.iter().copied().filter(|&id| id >= 0);
    let stable = trace.stable.iter().flatten().copied().filter(|&stable| stable >= 0);
    let appended = stable.flat_map(|stable| stable..stable + trace.tokens as i32);
    selected.chain(appended).for_each(|id| used[id as usize] = true);
    used
}

/// Replays the trace with the rows of the pool that are `used`, and returns the figures, the results and
/// the engine.
fn replay(
    options: &Options,
    trace: &Trace,
    mut engine: Engine,
    used: &[bool],
) -> Result<(Tally, Results, Engine)> {
    let b = options.requests;
    let bar = output::progress(trace.steps, "replay");
    let mut world = World::new(trace, &engine, b, used)?;
    let mut plan = engine.new_plan(b * trace.tokens, b)?;
    let mut results = Results::default();
    let in_one = options.launches == 1;
    let mut tally = Tally::start(if in_one { &["step"] } else { &["plan", "transfer"] });
    for step in 0..trace.steps {
        world.begin_step(trace, step);
        let segments = world.fresh();
        let fresh = segments.as_deref();

        let mut start = Instant::now();
        if in_one {
            engine.step(&world.step.batch(), &mut plan, 0, fresh)?;
        } else {
            engine.plan(&world.step.batch(), &mut plan)?;
            tally.times[0].1.push(us_since(start));
            start = Instant::now();
            engine.transfer(&mut plan, &[0], fresh)?;
        }
        tally.times[usize::from(!in_one)].1.push(us_since(start));

        let tags = world.verify(&engine, &plan, &mut tally);
        tally.count(step, &plan);
        if options.results.is_some() {
            results.push(&engine, &plan, &world.append.ids, &tags);
        }
        if let Some(fresh) = fresh {
            engine.append(&world.append.batch(), &[0], fresh)?;
        }
        bar.inc(1);
    }
    Ok((tally, results, engine))
}
