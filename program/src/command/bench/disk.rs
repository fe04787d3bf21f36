//! `avsg bench disk`: a step whose rows are on a disk, in several settings.

mod stage_two;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use avsg::disk::{DiskInfo, PoolFile};
use clap::Args;
use serde::Serialize;

use super::workload::Workload;
use super::{Host, number, short, with_ratio};
use crate::checks::{at_least_1, in_range, require};
use crate::command::busy::{Disturbance, Watch};
use crate::command::output::{self, OutputOptions, Page, Table, count};
use crate::disk::{EveryRow, Mapped, Operator, Records, Setting, direct, folder_on_disk};
use crate::stats::Summary;
use crate::trace::Trace;
use crate::turns::{Contender, Turns};
use stage_two::StageTwo;

/// Steps before the timed ones, which fill the buffer and the page cache.
const WARM_UP: usize = 40;
/// Steps of a setting before the next one takes its turn.
const TURN: usize = 20;

#[derive(Args, Debug)]
#[command(
    after_help = "Every setting brings the same rows into memory, and every byte of them is compared:\n  \
                  every row  reads each selected row of AVSG's file at each step, all in flight, past the page cache\n  \
                  mapped     maps a file of rows without padding (MADV_RANDOM, MADV_WILLNEED for all rows of a step); \
                  its page cache has the memory of AVSG, and is an exact LRU of pages (posix_fadvise after each step)\n  \
                  AVSG       reads the rows that its slots lack\n\
                  The settings take turns of 20 steps after 40 steps that are not timed. Files have no name and are gone \
                  when the program ends. Example:\n  \
                  avsg bench disk tests/data/nomicon-4k-k256.npz --slots 1024 --steps 100"
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
    /// Layers that share an indexer, whose rows lie side by side; 1 to 128
    #[arg(long, value_name = "N", default_value_t = 1)]
    layers: usize,
    /// Let `every row` and AVSG read through the page cache, which is not limited for them
    #[arg(long)]
    buffered: bool,
    /// Steps to time, at least 1
    #[arg(long, value_name = "N", default_value_t = 400)]
    steps: usize,
    #[command(flatten)]
    output: OutputOptions,
}

#[derive(Serialize)]
struct Report {
    machine: Host,
    workload: String,
    steps: usize,
    k: usize,
    slots: u32,
    layers: usize,
    row_bytes: usize,
    file: FileReport,
    settings: Vec<DiskRow>,
    stage_two: StageTwo,
    disturbance: Disturbance,
}

/// Means of counts and percentiles of times over the timed steps. Wrong rows are those of all steps.
#[derive(Serialize)]
struct DiskRow {
    setting: &'static str,
    reads_per_step: f64,
    bytes_per_step: f64,
    /// The median.
    step_us: f64,
    step_p99_us: f64,
    wrong_rows: usize,
    memory_bytes: usize,
    #[serde(skip)]
    spread: f64,
}

/// AVSG's file.
#[derive(Serialize)]
struct FileReport {
    what: String,
    /// Bytes of the device's block.
    block: usize,
    record_bytes: usize,
    padding_percent: f64,
}

impl From<DiskInfo> for FileReport {
    fn from(info: DiskInfo) -> Self {
        let DiskInfo { block, record_bytes, padding, .. } = info;
        let padding_percent = 100.0 * padding;
        Self { what: info.to_string(), block, record_bytes, padding_percent }
    }
}

pub fn run(options: &Options) -> Result<()> {
    options.check()?;
    options.output.check(options.workload.path(), [])?;
    let folder = folder_on_disk("--folder", options.folder.as_deref())?;
    let trace = options.workload.load(WARM_UP + options.steps)?;
    let report = measure(options, &folder, &trace)?;
    options.output.write(&report, || page(&report))?;
    let wrong: usize = report.settings.iter().map(|row| row.wrong_rows).sum();
    ensure!(wrong == 0, "{wrong} rows were wrong");
    Ok(())
}

impl Options {
    fn check(&self) -> Result<()> {
        at_least_1(&[("--steps", self.steps)], "leave it out")?;
        in_range("--layers", self.layers, 1..=128, "choose the layers of one indexer")?;
        let remedy = "choose 1152 or 656, for example";
        Ok(in_range("--row-bytes", self.row_bytes, 1..=1 << 20, remedy)?)
    }
}

fn measure(options: &Options, folder: &Path, trace: &Trace) -> Result<Report> {
    let &Options { row_bytes, layers, .. } = options;
    let slots = options.workload.slots;
    let timed = trace.steps.saturating_sub(WARM_UP);
    let limit = format!("the trace needs more than {WARM_UP} steps of one token for the warm-up");
    require(timed > 0, "trace", format!("{} steps", trace.steps), limit, "record more")?;
    let records = trace.largest_id().map_or(1, |id| id as usize + 1);
    let bar = output::progress(trace.steps, "disk");
    let file = PoolFile { buffered: options.buffered, ..PoolFile::new(folder) };
    let mut operator = Operator::new(file, [layers, records, row_bytes], trace.k, slots)?;
    let info = operator.info()?;
    let packed = Records { count: records, row_bytes, layers, stride: row_bytes * layers };
    let padded = Records { stride: info.record_bytes, ..packed };
    let packed_file = packed.write(folder)?;
    let padded_file = padded.write(folder)?;
    let padded_file = if options.buffered { padded_file } else { direct(&padded_file)? };
    let mut every_row = EveryRow::new(operator.pool(), trace.k)?;
    let mut mapped = Mapped::new(packed_file, packed, operator.memory_bytes())?;

    let watch = Watch::start();
    let settings: [(&str, &mut dyn Setting); 3] =
        [("every row", &mut every_row), ("mapped", &mut mapped), ("AVSG", &mut operator)];
    let mut settings =
        settings.map(|(name, setting)| Tally { name, setting, reads: Vec::new(), wrong_rows: 0 });
    let mut contenders: Vec<_> = settings.iter_mut().map(Tally::contender).collect();
    let turns = Turns { warm_up: WARM_UP, steps: timed, turn: TURN, settle: 0 };
    let ids = |step| Cow::Borrowed(trace.row(step, 0));
    let times = turns.take(&mut contenders, ids, |steps| bar.inc(steps))?.concat();
    drop(contenders);
    let rows: Vec<DiskRow> =
        settings.iter().zip(times).map(|(tally, times)| tally.row(times)).collect();
    drop(bar);
    let disturbance = watch.stop(timed * rows.len(), rows.iter().map(|row| row.spread));
    let stage_two = stage_two::measure(&mut operator, &padded_file, padded, trace.k)?;
    Ok(Report {
        machine: Host::detect(),
        workload: options.workload.name(),
        steps: timed,
        k: trace.k,
        slots,
        layers,
        row_bytes,
        file: info.into(),
        settings: rows,
        stage_two,
        disturbance,
    })
}

/// A setting, and counts of its steps.
struct Tally<'a> {
    name: &'static str,
    setting: &'a mut dyn Setting,
    /// Reads and bytes of each step.
    reads: Vec<[usize; 2]>,
    wrong_rows: usize,
}

impl Tally<'_> {
    fn contender(&mut self) -> Contender<'_> {
        Contender::new(self.name, |ids, us| {
            let step = self.setting.step(ids)?;
            us[0] = step.us;
            self.reads.push([step.reads, step.bytes]);
            self.wrong_rows += step.wrong_rows;
            Ok(())
        })
    }

    fn row(&self, times: Summary) -> DiskRow {
        let timed = &self.reads[WARM_UP..];
        let sum = |at: usize| timed.iter().map(|n| n[at]).sum::<usize>() as f64;
        DiskRow {
            setting: self.name,
            reads_per_step: sum(0) / timed.len() as f64,
            bytes_per_step: sum(1) / timed.len() as f64,
            step_us: times.p50,
            step_p99_us: times.p99,
            wrong_rows: self.wrong_rows,
            memory_bytes: self.setting.memory_bytes(),
            spread: times.spread(),
        }
    }
}

/// Returns the page: the answer, a row for each setting, and what was measured.
fn page(report: &Report) -> Page {
    let mut page = Page::default();
    let rows = &report.settings;
    let [every, mapped, own] = &rows[..] else { return page };
    let stage_two = &report.stage_two;
    let beside = stage_two.fio_reads_per_second.map_or_else(String::new, |fio| {
        format!(", {:.0} % of what fio reads", 100.0 * stage_two.reads_per_second / fio)
    });
    page.text(format!(
        "A step takes {} us: {} times as fast as reads of every row, {} times as fast as a mapped file. Stage Two reads {} \
         records per second{beside}.",
        short(own.step_us),
        short(every.step_us / own.step_us),
        short(mapped.step_us / own.step_us),
        short(stage_two.reads_per_second)
    ));
    let columns = "setting | reads per step (x) | bytes per step (x) | step, us (x) | p99, us | wrong rows | memory bytes";
    let mut table = Table::new(columns.split(" | "));
    for row in rows {
        table.add_row([
            row.setting.into(),
            with_ratio(row.reads_per_step, row.reads_per_step / own.reads_per_step),
            with_ratio(row.bytes_per_step, row.bytes_per_step / own.bytes_per_step),
            with_ratio(row.step_us, row.step_us / own.step_us),
            number(row.step_p99_us),
            row.wrong_rows.into(),
            row.memory_bytes.into(),
        ]);
    }
    page.table(&table);
    let Report { workload, steps, k, slots, layers, row_bytes, file, .. } = report;
    page.text(format!(
        "measured  {}, {workload}: {steps} timed steps of one token, K = {k}, S = {slots}; counts are means, times medians, \
         (x) how many times as much as AVSG",
        report.machine.describe()
    ));
    let rows = count(*layers, "row");
    page.text(format!("file      {}; a record is {rows} of {row_bytes} bytes", file.what));
    stage_two.fio_missing.iter().for_each(|fault| page.text(format!("fio       {fault}")));
    page.text(format!("times     {}", report.disturbance.line()));
    page
}
