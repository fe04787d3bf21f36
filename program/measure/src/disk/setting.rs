//! What takes turns in `bench disk`, and what each of them took.

use std::borrow::Cow;

use anyhow::{Result, ensure};
use avsg::disk::DiskStats;
use serde::Serialize;

use crate::stats::Summary;
use crate::turns::{Contender, Turns};

/// What a step did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// The time in microseconds; NaN for a step that could not be done.
    pub us: f64,
    /// Reads and writes of the disk; what lies side by side in the file is one of them.
    pub operations: usize,
    /// Bytes of these.
    pub bytes: usize,
    /// Rows whose bytes are not those of their ids.
    pub wrong_rows: usize,
}

impl Step {
    /// Returns a step whose file has these counters before it and after it.
    pub fn of_file(us: f64, [before, after]: [DiskStats; 2], wrong_rows: usize) -> Self {
        let operations = after.reads + after.writes - before.reads - before.writes;
        let bytes = |stats: DiskStats| stats.read_bytes + stats.written_bytes;
        let bytes = (bytes(after) - bytes(before)) as usize;
        Self { us, operations: operations as usize, bytes, wrong_rows }
    }
}

/// Does a step with the ids that all requests select, those of each request after the other.
type DoStep<'a> = Box<dyn FnMut(&[i32]) -> Result<Step> + 'a>;

/// A way to do a step. Every row that it brings into memory is compared, which is not timed.
pub struct Setting<'a> {
    name: &'static str,
    /// Bytes of the memory that has rows, and of what finds them there.
    memory_bytes: usize,
    step: DoStep<'a>,
    taken: Vec<Step>,
}

impl<'a> Setting<'a> {
    /// Returns a setting.
    pub fn new(
        name: &'static str,
        memory_bytes: usize,
        step: impl FnMut(&[i32]) -> Result<Step> + 'a,
    ) -> Self {
        Self { name, memory_bytes, step: Box::new(step), taken: Vec::new() }
    }

    fn contender(&mut self) -> Contender<'_> {
        Contender::new(self.name, |ids, us| {
            let step = (self.step)(ids)?;
            ensure!(step.wrong_rows == 0, "{}: {} rows were wrong", self.name, step.wrong_rows);
            us[0] = step.us;
            self.taken.push(step);
            Ok(())
        })
    }

    fn row(&self, warm_up: usize, times: Summary, base_us: f64) -> Row {
        let timed = &self.taken[warm_up..];
        let mean = |of: fn(&Step) -> usize| {
            timed.iter().map(of).sum::<usize>() as f64 / timed.len() as f64
        };
        let bytes_per_step = mean(|step| step.bytes);
        Row {
            what: self.name,
            operations_per_step: mean(|step| step.operations),
            bytes_per_step,
            step_us: times.p50,
            step_p99_us: times.p99,
            time_ratio: times.p50 / base_us,
            mb_per_second: bytes_per_step / times.p50,
            memory_bytes: self.memory_bytes,
            spread: times.spread(),
        }
    }
}

/// The timed steps of a setting.
#[derive(Serialize)]
pub struct Row {
    /// The name of the setting.
    pub what: &'static str,
    /// The mean of [`Step::operations`].
    pub operations_per_step: f64,
    /// The mean of [`Step::bytes`].
    pub bytes_per_step: f64,
    /// The median of the times.
    pub step_us: f64,
    /// The 99th percentile of the times.
    pub step_p99_us: f64,
    /// The median divided by that of the setting which this one is compared with.
    pub time_ratio: f64,
    /// Bytes of a step divided by the median.
    pub mb_per_second: f64,
    /// Bytes of the memory that has rows, and of what finds them there.
    pub memory_bytes: usize,
    /// The ninth decile of the times divided by their median.
    #[serde(skip)]
    pub spread: f64,
}

/// Settings that took turns.
#[derive(Serialize)]
pub struct Race {
    /// What all of them did.
    pub what: String,
    /// A row for each that could do its steps.
    pub rows: Vec<Row>,
}

impl Race {
    /// Lets settings take turns. Setting n is compared with setting `base(n)`.
    ///
    /// # Errors
    /// If a step fails, or a row is wrong.
    pub fn run<'i>(
        what: String,
        mut settings: Vec<Setting<'_>>,
        base: impl Fn(usize) -> usize,
        turns: Turns,
        ids: impl Fn(usize) -> Cow<'i, [i32]>,
        progress: impl Fn(usize),
    ) -> Result<Self> {
        let mut contenders: Vec<_> = settings.iter_mut().map(Setting::contender).collect();
        let times = turns.take(&mut contenders, ids, progress)?.concat();
        drop(contenders);
        let row = |(at, setting): (usize, &Setting<'_>)| {
            setting.row(turns.warm_up, times[at], times[base(at)].p50)
        };
        let rows = settings.iter().enumerate().map(row).filter(|row| row.step_us > 0.0);
        Ok(Self { what, rows: rows.collect() })
    }
}
