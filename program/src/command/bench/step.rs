//! `avsg bench step`: what a decode step costs a server with many layers and requests, whose tables and rows
//! are outside of the caches.

use std::borrow::Cow;

use anyhow::Result;
use avsg::device::params::{Lifetime, MAX_TOKENS, Params};
use avsg::engine::{Config, Engine, MachineChoice};
use avsg::pool::HostPool;
use avsg::system::available_memory;
use avsg::system::cpus::allowed_cpu_count;
use clap::Args;
use serde_json::{Value, json};

use crate::contenders::{self, Entry, Server, Shared, Sizes};
use crate::turns::{Contender, Turns};

use super::workload::{HISTORY, Selections, Workload};
use super::{host, race, short, table};
use crate::checks::in_range;
use crate::command::engine_options::{TableOptions, lifetime, machine};
use crate::command::output::{OutputOptions, Page, count};
use crate::trace::Trace;

#[derive(Args, Debug)]
#[command(
    after_help = "A time has everything that a call does: a plan with the check of its batch and the slots of every \
                  id, a transfer with the copies of all missing rows. Each layer has rows, slots and, with as many \
                  indexers as layers, tables of its own, so that a call finds in the caches only what the calls for \
                  all other layers have left there. All contenders take the same steps in one run, in turns of 4 timed \
                  steps, with buffers that are full before the first. Compare only ratios within one run."
)]
pub struct Options {
    #[command(flatten)]
    workload: Workload,
    /// Layers of the model, 1 to 256
    #[arg(long, value_name = "N", default_value_t = 61)]
    layers: usize,
    /// Selections of a step, one plan each, which the layers share; 1 to --layers [default: one for each layer]
    #[arg(long, value_name = "N")]
    indexers: Option<usize>,
    /// B, the requests of a batch, 1 to 64
    #[arg(long, value_name = "B", default_value_t = 8)]
    requests: usize,
    /// N_q, the tokens of a request in one step, 1 to 16
    #[arg(long, value_name = "N", default_value_t = 1)]
    tokens: usize,
    /// Lifetime rule: constant:L or learned [default: learned if S >= 2*K, else constant:127]
    #[arg(long, value_name = "RULE", value_parser = lifetime)]
    lifetime: Option<Lifetime>,
    /// Vector machine that runs the kernels; auto is the fastest that the CPU has
    #[arg(long, default_value = "auto", value_parser = machine())]
    machine: MachineChoice,
    /// Threads of each contender, 1 to 64 [default: 8, or the CPUs that this process may use if they are
    /// fewer]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Bytes of a row that is one segment, 1 to 65536
    #[arg(long, value_name = "BYTES", default_value_t = 1152)]
    row_bytes: usize,
    /// Time plans alone, without memory for slots and rows
    #[arg(long)]
    plans_only: bool,
    /// Steps to time, 1 to 100000
    #[arg(long, value_name = "N", default_value_t = 40)]
    steps: usize,
    #[command(flatten)]
    output: OutputOptions,
}

impl Options {
    fn check(&self) -> Result<Sizes> {
        in_range("--layers", self.layers, 1..=256, "choose those of the model")?;
        let indexers = self.indexers.unwrap_or(self.layers);
        in_range("--indexers", indexers, 1..=self.layers, "choose at most one for each layer")?;
        in_range("--requests", self.requests, 1..=64, "choose 8, for example")?;
        let most = MAX_TOKENS as usize;
        in_range("--tokens", self.tokens, 1..=most, "choose 1 without drafts, 4 with three")?;
        in_range("--row-bytes", self.row_bytes, 1..=65_536, "choose 1152 or 656, for example")?;
        in_range("--steps", self.steps, 1..=100_000, "choose 40, for example")?;
        let threads = self.threads.unwrap_or_else(|| allowed_cpu_count().min(8));
        in_range("--threads", threads, 1..=64, "choose the cores of the machine")?;
        let &Self { layers, requests, tokens, row_bytes, .. } = self;
        let row_bytes = (!self.plans_only).then_some(row_bytes);
        Ok(Sizes { layers, indexers, requests, tokens, threads, ids: 0, row_bytes })
    }

    fn config(&self, params: Params, states: usize, threads: usize) -> Config {
        Config { cores: threads, machine: self.machine, ..Config::new(params, states) }
    }
}

pub fn run(options: &Options) -> Result<()> {
    let mut sizes = options.check()?;
    options.output.check(options.workload.path())?;
    // The tables are warm after eight steps.
    let mut turns = Turns { warm_up: 8, steps: options.steps, turn: 4, settle: 1 };
    let length = HISTORY + turns.total() * options.tokens;
    let traces = options.workload.streams(options.requests, length)?;
    sizes.ids = traces.iter().filter_map(Trace::largest_id).max().map_or(1, |id| id as usize + 1);
    let rule = TableOptions { lifetime: options.lifetime, ..TableOptions::default() };
    let params = rule.params(traces[0].k, options.tokens, options.workload.slots, 0)?;
    let config = options.config(params, options.requests, sizes.threads);
    let pool = sizes.pool()?;
    let (slots, tables) = Engine::bytes_needed(&config, &pool, None)?;
    let all = HostPool::plan_bytes(&pool)?.saturating_add(slots).saturating_add(2 * tables);
    let lacks = available_memory::bytes().is_some_and(|available| all > available);
    if sizes.row_bytes.is_some() && lacks {
        eprintln!("plans are timed alone, because the rows and the slots do not fit the memory");
        sizes.row_bytes = None;
    }
    let server = Server::shared(config, &sizes)?;
    let kernels = server.borrow().machine().to_owned();
    let entries = line_up(options, &sizes, &params, &server)?;
    let selections = Selections::new(&traces, options.tokens, options.workload.slots as usize);
    turns.warm_up += selections.fills;
    let (about, mut contenders): (Vec<_>, Vec<_>) =
        entries.into_iter().map(|(layers, buffers, entry)| ((layers, buffers), entry)).unzip();
    let ids = |step| Cow::Owned(selections.step(step));
    let (times, disturbance) = race("step", &turns, &mut contenders, ids)?;
    let misses = server.borrow().misses_after(turns.warm_up);
    let mut rows = Vec::new();
    for ((Contender { name, parts, .. }, (layers, buffers)), times) in
        contenders.iter().zip(about).zip(times)
    {
        let each = 1.0 / (layers * sizes.requests) as f64;
        for (part, us) in parts.iter().zip(times) {
            let what = if part.is_empty() { name.clone() } else { format!("{name}: {part}") };
            let [low, median, high] = [us.p10, us.p50, us.p90].map(|us| us * each);
            rows.push(json!({
                "what": what,
                "layers": layers,
                // Tables or buffers that the contender has.
                "buffers": buffers,
                // The time of a step, divided by layers and requests.
                "us_per_request": median,
                "us_first_decile": low,
                "us_ninth_decile": high,
                "step_us": us.p50,
            }));
        }
    }
    let ((machine, words), workload) = (host(), options.workload.name());
    let (k, slots, lifetime) = (params.k, params.slots, params.lifetime.to_string());
    let mut page = Page::default();
    page.text(verdict(&rows));
    let columns = "what is timed | layers | tables | us per request and layer | first decile | ninth decile | step, us";
    let keys = "what layers buffers us_per_request us_first_decile us_ninth_decile step_us";
    page.table(&table(columns, keys, &rows));
    let Sizes { layers, indexers, requests, tokens, threads, .. } = sizes;
    page.text(format!("measured  {words}, {workload}"));
    page.text(format!(
        "assumed   {layers} layers, {}, B = {requests}, N_q = {tokens}, K = {k}, S = {slots}, {lifetime}, {}, {kernels}; \
         {misses:.0} misses per layer and step",
        count(indexers, "indexer"),
        count(threads, "thread"),
    ));
    page.text(format!("times     medians, {}", disturbance.line()));
    let report = json!({
        "machine": machine,
        "workload": workload,
        "layers": layers,
        "indexers": indexers,
        "requests": requests,
        "tokens": tokens,
        "threads": threads,
        // Null if no row was copied.
        "row_bytes": sizes.row_bytes,
        "k": k,
        "slots": slots,
        "lifetime": lifetime,
        // The vector machine that ran the kernels.
        "kernels": kernels,
        "misses_per_layer": misses,
        "disturbance": disturbance,
        "rows": rows,
    });
    options.output.write(&report, || page)
}

/// Returns the contenders. The first one is the server.
fn line_up(
    options: &Options,
    sizes: &Sizes,
    params: &Params,
    server: &Shared,
) -> Result<Vec<Entry>> {
    let (k, slots) = (params.k as usize, options.workload.slots as usize);
    let one = Sizes { layers: 1, indexers: 1, ..*sizes };
    let alone = Server::shared(options.config(*params, sizes.requests, sizes.threads), &one)?;
    let mut entries = vec![contenders::server("AVSG", server), contenders::server("AVSG", &alone)];
    if sizes.tokens > 1 {
        let plans = Sizes { row_bytes: None, ..*sizes };
        let params = Params { tokens: 1, ..*params };
        let config = options.config(params, sizes.requests * sizes.tokens, sizes.threads);
        entries.push(contenders::server(
            "AVSG, a table for each token",
            &Server::shared(config, &plans)?,
        ));
    }
    entries.push(contenders::per_token_lru(sizes, k, slots)?);
    if let Some(bytes) = sizes.row_bytes {
        entries.push(contenders::copy_rows(server, sizes, k, bytes)?);
    }
    entries.push(contenders::read_tables(sizes, server));
    Ok(entries)
}

/// Returns the answer in one sentence, from the median times of a step.
fn verdict(rows: &[Value]) -> String {
    let us = |end: &str| {
        let is = |row: &&Value| row["what"].as_str().is_some_and(|what| what.ends_with(end));
        rows.iter().find(is).and_then(|row| row["step_us"].as_f64()).unwrap_or(f64::NAN)
    };
    let (plan, transfer) = (us("AVSG: plan"), us("AVSG: transfer"));
    let lru = short(us("lru_resident_compact") / plan);
    let plans = short(plan / 1e3);
    if transfer.is_nan() {
        return format!(
            "The plans of a step take {plans} ms, {lru} times as fast as lru_resident_compact."
        );
    }
    let copies = us("every selected row") / (plan + transfer);
    format!(
        "A step takes {} ms, {} times as fast as copies of every selected row alone. Its plans take {plans} ms of it, \
         {lru} times as fast as lru_resident_compact.",
        short((plan + transfer) / 1e3),
        short(copies)
    )
}
