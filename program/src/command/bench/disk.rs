//! `avsg bench disk`: prompts and steps whose rows are on a disk, in several settings.

mod fio;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use avsg::disk::PoolFile;
use avsg::pool::HostPool;
use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::{Value, json};

use super::workload::{HISTORY, Selections, Workload};
use super::{host, short, table};
use crate::checks::{at_least_1, check_tables, in_range};
use crate::command::busy::{Disturbance, Watch};
use crate::command::output::{self, OutputOptions, Page, count};
use crate::disk::{
    CHUNK, FileShape, Kept, Server, Setting, StepWork, Way, every_row, folder_on_disk, mapped,
    setting, write_rows,
};
use crate::trace::Trace;
use crate::turns::Turns;
use fio::{Fio, Job};

/// Turns of the prompt and of what follows it.
const ROUNDS: usize = 5;
/// Steps that follow those which fill the buffers, and are not timed either.
const WARM_UP: usize = 8;
/// Steps of a setting before the next one takes its turn.
const TURN: usize = 4;

#[derive(Args, Debug)]
#[command(
    after_help = "Every row that is read is compared with its bytes. Three tables, whose settings take turns:\n  \
                  session    a prompt is written to a kept file, 1024 tokens at a time, layer by layer, and committed; \
                  the file is opened again, and all rows are read, or those that a first step selects; fio, if it \
                  is installed, reads and writes as much, or records of the same size\n  \
                  steps      of one request over that file: `every row` reads each selected row at each step, all in \
                  flight; `mapped` maps a file of rows without padding (MADV_RANDOM, MADV_WILLNEED for all rows of a \
                  step), whose page cache has AVSG's memory and is an exact LRU of pages (posix_fadvise after each step); \
                  AVSG reads the rows that its slots lack\n  \
                  arithmetic of --compute-us per layer, and of none, over a file in which every layer has a table of its \
                  own: after the transfer; with the hits first; while the layers behind it that select the same ids are \
                  read; while the other half of the requests is read\n\
                  The files have no name, but for the prompt's, which is in a folder that is removed at the end. Example:\n  \
                  avsg bench disk tests/data/nomicon-4k-k256.npz --slots 1024 --layers 8 --indexers 2"
)]
pub struct Options {
    #[command(flatten)]
    workload: Workload,
    /// Folder on a disk, for the files [default: the system's temporary folder, or /var/tmp if that is in
    /// memory]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Bytes of a row, 1 to 1048576
    #[arg(long, value_name = "BYTES", default_value_t = 1152)]
    row_bytes: usize,
    /// Layers of the model, 1 to 256
    #[arg(long, value_name = "N", default_value_t = 4)]
    layers: usize,
    /// Selections of a step, which the layers share; the rows of those that do lie side by side; 1 to --layers
    #[arg(long, value_name = "N", default_value_t = 1)]
    indexers: usize,
    /// B, the requests of the steps with arithmetic, each with rows of its own; 1 to 64
    #[arg(long, value_name = "B", default_value_t = 2)]
    requests: usize,
    /// Microseconds of arithmetic per layer, 0 to 1000000
    #[arg(long, value_name = "US", default_value_t = 1000)]
    compute_us: usize,
    /// Keep rows in memory, for the steps with arithmetic alone
    #[arg(long)]
    memory: bool,
    /// Let all but `mapped` read and write through the page cache, which is not limited for them
    #[arg(long)]
    buffered: bool,
    /// Steps to time, at least 1
    #[arg(long, value_name = "N", default_value_t = 20)]
    steps: usize,
    #[command(flatten)]
    output: OutputOptions,
}

impl Options {
    fn check(&self) -> Result<()> {
        at_least_1(&[("--steps", self.steps)], "leave it out")?;
        check_tables([self.layers, self.indexers, self.requests])?;
        in_range("--layers", self.layers, 1..=256, "choose those of the model")?;
        in_range("--requests", self.requests, 1..=64, "choose 8, for example")?;
        in_range("--compute-us", self.compute_us, 0..=1_000_000, "choose 1000, for example")?;
        let remedy = "choose 1152 or 656, for example";
        Ok(in_range("--row-bytes", self.row_bytes, 1..=1 << 20, remedy)?)
    }
}

/// The report, and what all races share.
#[derive(Serialize)]
struct Bench<'a> {
    machine: Value,
    workload: String,
    steps: usize,
    /// The rows of a request: the prompt.
    #[serde(flatten)]
    shape: FileShape,
    /// The work of the steps with arithmetic; the others have one request.
    #[serde(flatten)]
    work: StepWork,
    /// The file of the prompt; null without one.
    file: Value,
    /// Why there is no figure of fio; null if there is one.
    fio_missing: Option<String>,
    races: Vec<Value>,
    #[serde(skip)]
    spreads: Vec<f64>,
    disturbance: Option<Disturbance>,
    #[serde(skip)]
    place: PoolFile,
    #[serde(skip)]
    selections: &'a Selections<'a>,
    #[serde(skip)]
    turns: Turns,
    #[serde(skip)]
    bar: ProgressBar,
}

pub fn run(options: &Options) -> Result<()> {
    options.check()?;
    options.output.check(options.workload.path())?;
    let folder = folder_on_disk("--folder", options.folder.as_deref())?;
    let &Options { layers, indexers, requests, row_bytes, steps, .. } = options;
    let slots = options.workload.slots;
    let traces = options.workload.streams(requests, HISTORY + WARM_UP + steps.max(ROUNDS))?;
    let ids = traces.iter().filter_map(Trace::largest_id).max().map_or(1, |id| id as usize + 1);
    let selections = Selections::new(&traces, 1, slots as usize);
    let (k, compute_us, way) = (traces[0].k, options.compute_us as f64, Way::Transfer);
    let warm_up = selections.fills + WARM_UP;
    let mut bench = Bench {
        machine: host().0,
        workload: options.workload.name(),
        steps,
        shape: FileShape { layers, indexers, rows: ids.next_multiple_of(CHUNK), row_bytes },
        work: StepWork { requests, k, slots, compute_us, way },
        file: Value::Null,
        fio_missing: None,
        races: Vec::new(),
        spreads: Vec::new(),
        disturbance: None,
        place: PoolFile { buffered: options.buffered, ..PoolFile::new(&folder) },
        selections: &selections,
        turns: Turns { warm_up, steps, turn: TURN, settle: 0 },
        bar: output::progress(3 * (warm_up + steps) + ROUNDS, "disk"),
    };
    let watch = Watch::start();
    if !options.memory {
        bench.prompt(&folder)?;
    }
    bench.arithmetic(options.memory)?;
    let spreads = std::mem::take(&mut bench.spreads);
    bench.disturbance = Some(watch.stop(steps * spreads.len(), spreads));
    options.output.write(&bench, || bench.page())
}

impl Bench<'_> {
    /// Lets settings take turns. Setting n is compared with setting `base(n)`. One that cannot do its steps has no row.
    fn race(
        &mut self,
        what: String,
        settings: Vec<Setting<'_>>,
        base: impl Fn(usize) -> usize,
        turns: Turns,
    ) -> Result<()> {
        let (memory, mut contenders): (Vec<_>, Vec<_>) = settings.into_iter().unzip();
        // The buffers of a race that does not fill them are full.
        let first = self.turns.warm_up - turns.warm_up;
        let ids = |step| Cow::Owned(self.selections.step(first + step));
        let figures = turns.take(&mut contenders, ids, |steps| self.bar.inc(steps as u64))?;
        let mut rows = Vec::new();
        for (at, figure) in figures.iter().enumerate().filter(|(_, figure)| figure[0].p50 > 0.0) {
            let [times, operations, bytes] = [0, 1, 2].map(|part| figure[part]);
            self.spreads.push(times.spread());
            rows.push(json!({
                "what": contenders[at].name,
                // Operations and bytes are means.
                "operations_per_step": operations.mean,
                "bytes_per_step": bytes.mean,
                "step_us": times.p50,
                "step_p99_us": times.p99,
                // The median divided by that of the setting which this one is compared with.
                "time_ratio": times.p50 / figures[base(at)][0].p50,
                "mb_per_second": bytes.mean / times.p50,
                // Bytes of the memory that has rows, and of what finds them there.
                "memory_bytes": memory[at],
            }));
        }
        self.races.push(json!({"what": what, "rows": rows}));
        Ok(())
    }

    /// Measures a prompt, and steps of one request over its file.
    fn prompt(&mut self, folder: &Path) -> Result<()> {
        let shape = self.shape;
        let work = StepWork { requests: 1, compute_us: 0.0, ..self.work };
        let kept = Kept::new(&self.place, shape)?;
        // The first file is not timed.
        kept.write()?;
        let (config, pool) = (kept.config()?, kept.open()?);
        let memory = work.memory_bytes(&config)?;
        let store = pool.store().context("the pool has no file")?;
        let info = store.info();
        let token: usize = (0..shape.indexers).map(|n| store.layout().record_bytes(n)).sum();
        let padded = shape.rows * token;
        self.file = json!({
            "what": info.to_string(),
            "block": info.block,
            "record_bytes": info.record_bytes,
            // Bytes of all rows, and of their records.
            "payload_bytes": shape.rows * shape.layers * shape.row_bytes,
            "padded_bytes": padded,
        });
        drop(pool);
        let fio = Fio::new(folder, &info)?;
        let record = token / shape.indexers / info.block * info.block;
        let settings = vec![
            setting("prompt", 0, |_| kept.write()),
            fio.setting("fio, sequential writes", Job::Write, padded),
            setting("all rows", 0, |_| kept.read_all()),
            fio.setting("fio, sequential reads", Job::Read, padded),
            setting("first step", memory, |ids| {
                Server::new(Arc::new(kept.open()?), &config, work)?.step(ids)
            }),
            fio.setting("fio, random reads", Job::Random(record), work.k * token),
        ];
        let turns = Turns { warm_up: 0, steps: ROUNDS, turn: 1, settle: 0 };
        // Each is compared with the job of fio behind it.
        self.race("session".into(), settings, |at| at | 1, turns)?;
        let pool = Arc::new(kept.open()?);
        let settings = vec![
            every_row(&pool, work.k)?,
            mapped(folder, shape, work.k, memory)?,
            Server::setting("AVSG", &pool, &config, work)?,
        ];
        self.race("step".into(), settings, |_| 2, self.turns)?;
        self.fio_missing = fio.missing.take();
        Ok(())
    }

    /// Measures steps with arithmetic, and without.
    fn arithmetic(&mut self, memory: bool) -> Result<()> {
        let (work, FileShape { layers, indexers, rows, .. }) = (self.work, self.shape);
        let shape = FileShape { indexers: layers, rows: rows * work.requests, ..self.shape };
        let config = shape.pool((!memory).then(|| self.place.clone()))?;
        let pool = Arc::new(HostPool::new(&config)?);
        write_rows(&pool)?;
        pool.flush()?;
        let ways = [
            ("transfer", Way::Transfer, true),
            ("hits first", Way::HitsFirst, true),
            ("followers", Way::Followers(layers / indexers), layers > indexers),
            ("two groups", Way::TwoGroups, work.requests > 1),
        ];
        for compute_us in [work.compute_us, 0.0] {
            let of_way = |(name, way, _)| {
                Server::setting(name, &pool, &config, StepWork { compute_us, way, ..work })
            };
            let some = ways.into_iter().filter(|way| way.2).map(of_way);
            let what = format!("{compute_us} us of arithmetic per layer");
            self.race(what, some.collect::<Result<_>>()?, |_| 0, self.turns)?;
        }
        Ok(())
    }

    /// Returns the page: the answers, a table of each race, and what was measured.
    fn page(&self) -> Page {
        let mut page = Page::default();
        let Self { workload, steps, shape, work, file, races, .. } = self;
        let rows = |race: &'_ Value| race["rows"].as_array().cloned().unwrap_or_default();
        let all: Vec<Value> = races.iter().flat_map(rows).collect();
        let find = |what| all.iter().find(|row| row["what"] == what);
        let figure = |row: &Value, key| row[key].as_f64().unwrap_or(f64::NAN);
        let rate = |row| {
            let of_fio = 100.0 / figure(row, "time_ratio");
            let of_fio =
                if of_fio > 0.0 { format!(", {of_fio:.0} % of fio") } else { String::new() };
            format!("{} MB/s{of_fio}", short(figure(row, "mb_per_second")))
        };
        if let (Some(prompt), Some(all), Some(first)) =
            (find("prompt"), find("all rows"), find("first step"))
        {
            page.text(format!(
                "A prompt of {} tokens is written at {}. All rows are read at {}, and those that a first step selects at {}, \
                 {} times as fast.",
                shape.rows, rate(prompt), rate(all), rate(first), short(figure(all, "step_us") / figure(first, "step_us"))
            ));
        }
        if let (Some(every), Some(mapped), Some(own)) =
            (find("every row"), find("mapped"), find("AVSG"))
        {
            page.text(format!(
                "A step takes {} us: {} times as fast as reads of every row, {} times as fast as a mapped file.",
                short(figure(own, "step_us")), short(figure(every, "time_ratio")), short(figure(mapped, "time_ratio"))
            ));
        }
        for race in races {
            let (rows, what) = (rows(race), race["what"].as_str().unwrap_or_default());
            let columns =
                format!("{what} | operations | bytes | us | x | p99, us | MB/s | memory, bytes");
            let keys = "what operations_per_step bytes_per_step step_us time_ratio step_p99_us \
                        mb_per_second memory_bytes";
            page.table(&table(&columns, keys, &rows));
            let read =
                |row: &Value| ["operations_per_step", "bytes_per_step"].map(|k| figure(row, k));
            let differs =
                |row: &&Value| rows[0]["what"] == "transfer" && read(row) != read(&rows[0]);
            for row in rows.iter().filter(differs) {
                let what = row["what"].as_str().unwrap_or_default();
                page.text(format!("{what} reads more or less than transfer"));
            }
        }
        let StepWork { requests, k, slots, .. } = *work;
        let FileShape { layers, indexers, row_bytes, .. } = *shape;
        let [indexers, requests] =
            [(indexers, "indexer"), (requests, "request")].map(|(n, noun)| count(n, noun));
        page.text(format!(
            "measured  {}, {workload}: {steps} timed steps of one token, {layers} layers, {indexers}, {requests} with arithmetic, \
             K = {k}, S = {slots}, rows of {row_bytes} bytes; counts are means, times medians, x times as long as \
             fio, AVSG or transfer; every row was right",
            host().1
        ));
        if let Some(what) = file["what"].as_str() {
            let (rows, records) = (&file["payload_bytes"], &file["padded_bytes"]);
            page.text(format!("file      {what}; {rows} bytes of rows in {records} of records"));
        }
        self.fio_missing.iter().for_each(|fault| page.text(format!("fio       {fault}")));
        let times = self.disturbance.iter().map(Disturbance::line);
        times.for_each(|line| page.text(format!("times     {line}")));
        page
    }
}
