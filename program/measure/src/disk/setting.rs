//! What takes turns in `bench disk`, and what each of them took.

use std::borrow::Cow;

use anyhow::{Result, ensure};
use avsg::disk::DiskStats;
use serde::Serialize;

use crate::turns::{Contender, Turns};

/// What a step did.
#[derive(Clone, Copy, Debug)]
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

/// A way to do a step: the bytes of the memory that has rows and of what finds them there, and a contender whose parts
/// are the time, the operations and the bytes of a step.
pub type Setting<'a> = (usize, Contender<'a>);

/// Returns a setting. `step` gets the ids that all requests select, those of each request after the other. Every row that
/// it brings into memory is compared, which is not timed.
pub fn setting<'a>(
    name: &'static str,
    memory_bytes: usize,
    mut step: impl FnMut(&[i32]) -> Result<Step> + 'a,
) -> Setting<'a> {
    let parts = vec!["us", "operations", "bytes"];
    let contender = Contender::new(name, parts, move |ids, figures| {
        let Step { us, operations, bytes, wrong_rows } = step(ids)?;
        ensure!(wrong_rows == 0, "{name}: {wrong_rows} rows were wrong");
        figures.copy_from_slice(&[us, operations as f64, bytes as f64]);
        Ok(())
    });
    (memory_bytes, contender)
}

/// The timed steps of a setting.
#[derive(Serialize)]
pub struct Row {
    /// The name of the setting.
    pub what: String,
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
        settings: Vec<Setting<'_>>,
        base: impl Fn(usize) -> usize,
        turns: Turns,
        ids: impl Fn(usize) -> Cow<'i, [i32]>,
        progress: impl Fn(usize),
    ) -> Result<Self> {
        let (memory, mut contenders): (Vec<_>, Vec<_>) = settings.into_iter().unzip();
        let figures = turns.take(&mut contenders, ids, progress)?;
        let row = |(at, Contender { name, .. }): (usize, Contender<'_>)| {
            let [times, operations, bytes] = [0, 1, 2].map(|part| figures[at][part]);
            Row {
                what: name,
                operations_per_step: operations.mean,
                bytes_per_step: bytes.mean,
                step_us: times.p50,
                step_p99_us: times.p99,
                time_ratio: times.p50 / figures[base(at)][0].p50,
                mb_per_second: bytes.mean / times.p50,
                memory_bytes: memory[at],
                spread: times.spread(),
            }
        };
        let rows = contenders.into_iter().enumerate().map(row).filter(|row| row.step_us > 0.0);
        Ok(Self { what, rows: rows.collect() })
    }
}
