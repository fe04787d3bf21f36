//! `avsg replay`: a recorded trace through the operator, every byte of every returned row checked.

mod report;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use crate::results::{Results, StepResults};
use crate::trace::Trace;
use anyhow::{Context, Result};
use avsg::buffer::BufferConfig;
use avsg::device::params::ID_LIMIT;
use avsg::engine::{Engine, Fresh};
use avsg::pool::{HostPool, PoolConfig};
use avsg::{Error, memory};

use super::geometry::{DeviceOptions, RowOptions, TableOptions};
use super::output;
use report::Report;
use world::World;

#[derive(clap::Args, Debug)]
pub struct Options {
    /// .npy with int32 ids [steps, N_q, K], or .npz with `ids` and optionally `stable` [steps]
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Slots of the device buffer, a power of two [default: the least that is at least 4·K and N_q·K]
    #[arg(long, value_name = "S")]
    slots: Option<u32>,
    #[command(flatten)]
    table: TableOptions,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    rows: RowOptions,
    /// Rows per block, 16..128: rows are addressed through a (shuffled) block table, and the device
    /// buffer is S/page pages; 0: a row is its id
    #[arg(long, value_name = "P", default_value_t = 0)]
    page: u32,
    /// Requests that replay the trace side by side
    #[arg(long, value_name = "B", default_value_t = 1)]
    requests: usize,
    /// Replay this many steps only
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Launches of a step: 1 is plan and transfer with SyncAll between them, 2 is one each
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    launches: u8,
    /// Take every token as a step of its own (no speculation)
    #[arg(long)]
    mtp0: bool,
    /// Write slots, hits, miss lists, cuts and row tags of request 0 to this file
    #[arg(long, value_name = "OUT.npz")]
    results: Option<PathBuf>,
    /// Write the figures as JSON to this file, - for standard output
    #[arg(long, value_name = "OUT.json")]
    json: Option<PathBuf>,
}

/// Runs the command.
pub fn run(options: &Options) -> Result<ExitCode> {
    let name = || options.trace.display().to_string();
    let mut trace = Trace::read(&options.trace).with_context(name)?;
    if options.mtp0 {
        trace = trace.as_mtp0();
    }
    if let Some(steps) = options.steps {
        trace = trace.truncated(steps)?;
    }
    let rows = pool_rows(&trace).with_context(name)?;
    let least = (4 * trace.k).max(trace.tokens * trace.k).max(64).next_power_of_two();
    let slots = options.slots.unwrap_or(u32::try_from(least).unwrap_or(u32::MAX));
    let page = options.page as usize;
    let params = options.table.params(trace.k, trace.tokens, slots, options.page)?;
    if page > slots as usize {
        let limit = format!("it must divide S = {slots}");
        return Err(Error::invalid("page", page, limit, "choose 16..128").into());
    }
    if options.requests == 0 || options.requests > 4096 {
        let limit = "it must be 1..=4096";
        return Err(Error::invalid("--requests", options.requests, limit, "choose 1..64").into());
    }
    let format = options.rows.format()?;
    let config = options.device.config(params, options.requests);
    let rows = rows.next_multiple_of(page.max(1));
    let mut pool = PoolConfig::new(1, rows, format.clone());
    // A row that is larger than a chunk is for the memory check to refuse, in the user's words.
    pool.chunk_bytes =
        pool.chunk_bytes.max(format.as_slice().iter().map(|s| s.stride).max().unwrap_or(0));
    let buffer =
        BufferConfig { states: options.requests, layers: 1, slots: slots as usize, format };
    let (kv, tables) = Engine::bytes_needed(&config, &buffer)?;
    let host = HostPool::plan_bytes(&pool)?;
    if !output::is_stdout(options.json.as_deref()) {
        println!(
            "memory: {} slots, {} tables and working columns, {} host pool; {} available",
            output::bytes(kv),
            output::bytes(tables),
            output::bytes(host),
            output::bytes(memory::available()?)
        );
    }
    let engine = options.device.engine(config, &pool)?;
    let report = replay(options, &trace, engine)?;
    if let Some(path) = &options.json {
        output::json(path, &report)?;
    }
    if !output::is_stdout(options.json.as_deref()) {
        report.print(&name());
    }
    Ok(if report.wrong_rows == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Rows that the host pool needs: one per id, and one for every token that will be appended.
fn pool_rows(trace: &Trace) -> Result<usize> {
    let mut most = trace.ids.iter().copied().max().unwrap_or(0).max(0) + 1;
    for step in 0..trace.steps {
        let Some(stable) = trace.stable.as_ref().map(|s| s[step]).filter(|&s| s >= 0) else {
            continue;
        };
        let end = stable + trace.tokens as i32;
        most = most.max(end);
        for token in 0..trace.tokens {
            let row = trace.row(step, token);
            if let Some(lane) = row.iter().position(|&id| id >= end) {
                let limit = format!(
                    "step {step} has {end} tokens (stable {stable} and its own {}); token {token}, \
                     position {lane}",
                    trace.tokens
                );
                let remedy = "a token selects earlier tokens and its own step's; mend the trace";
                return Err(Error::invalid("id", row[lane], limit, remedy).into());
            }
        }
    }
    if most > ID_LIMIT {
        let limit = format!("lengths are at most {ID_LIMIT}");
        return Err(Error::invalid("sequence length", most, limit, "shorten the trace").into());
    }
    Ok(most as usize)
}

fn replay(options: &Options, trace: &Trace, mut engine: Engine) -> Result<Report> {
    let (b, tokens, k) = (options.requests, trace.tokens, trace.k);
    let mut world = World::new(trace, &engine, b)?;
    let mut plan = engine.new_plan(b * tokens, b)?;
    let mut report = Report::new(trace, &engine);
    let mut results =
        options.results.as_ref().map(|_| Results::new(tokens, k, engine.config().cores));
    let bar = output::progress(trace.steps, "replay");
    let (mut hit, mut tag) = (vec![0u8; tokens * k], vec![0u64; tokens * k]);
    for step in 0..trace.steps {
        world.begin_step(trace, step);
        let segments = world.fresh();
        let fresh = Fresh { segments: &segments };
        let fresh = world.has_fresh().then_some(&fresh);

        let start = Instant::now();
        if options.launches == 1 {
            engine.step(&world.batch(), &mut plan, 0, fresh)?;
            report.times(start.elapsed(), None);
        } else {
            engine.plan(&world.batch(), &mut plan)?;
            let planned = Instant::now();
            engine.transfer(&mut plan, 0, fresh)?;
            report.times(planned - start, Some(planned.elapsed()));
        }

        world.verify(&engine, &plan, &mut report, &mut tag);
        report.count(step, &plan);
        if let Some(results) = &mut results {
            let list = plan.misses(0);
            for (h, &id) in hit.iter_mut().zip(&trace.ids[step * tokens * k..]) {
                *h = u8::from(id >= 0);
            }
            list.position.iter().for_each(|&p| hit[p as usize] = 0);
            let slot: Vec<i32> = (0..tokens).flat_map(|t| plan.slots(t)).copied().collect();
            let misses: Vec<i32> = (0..tokens).map(|t| plan.token_misses(0, t) as i32).collect();
            let entry = |i: usize| [list.position[i], list.id[i], list.slot[i]];
            let miss: Vec<[i32; 3]> = (0..list.id.len()).map(entry).collect();
            let cut: Vec<i32> = engine.cuts(&plan, 0).map(|c| c as i32).collect();
            let (slot, hit, misses, miss, cut) =
                (&slot[..], &hit[..], &misses[..], &miss[..], &cut[..]);
            results.push(StepResults { slot, hit, tag: &tag, misses, miss, cut })?;
        }
        if let Some(fresh) = fresh {
            engine.append(&world.batch(), 0, fresh)?;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let (Some(results), Some(path)) = (results, &options.results) {
        results.write(path)?;
    }
    report.close();
    Ok(report)
}
