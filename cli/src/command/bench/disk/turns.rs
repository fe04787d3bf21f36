//! The settings take turns, and their figures over the steps.

use std::iter::once;

use anyhow::Result;
use serde::Serialize;

use crate::command::output::Progress;
use crate::disk::{Setting, Step};
use crate::stats::summary;
use crate::trace::Trace;

/// Steps before the timed ones, which fill the buffer and the page cache.
pub const WARM_UP: usize = 40;
/// Steps of a setting before the next one takes its turn.
const TURN: usize = 20;

/// Runs all steps of a trace in settings that have a name, in turns, and returns their figures.
pub fn take(
    settings: [(&'static str, &mut dyn Setting); 3],
    trace: &Trace,
    bar: &Progress,
) -> Result<Vec<Row>> {
    let mut settings = settings.map(|setting| (setting, Tally::default()));
    for first in once(0).chain((WARM_UP..trace.steps).step_by(TURN)) {
        let end = if first == 0 { WARM_UP } else { (first + TURN).min(trace.steps) };
        for ((_, setting), tally) in &mut settings {
            for step in first..end {
                tally.add(setting.step(trace.row(step, 0))?, step >= WARM_UP);
            }
        }
        bar.inc(end - first);
    }
    let rows = settings.into_iter().map(|((name, setting), tally)| tally.row(name, setting));
    Ok(rows.collect())
}

/// Counts and times of the steps so far.
#[derive(Default)]
struct Tally {
    times: Vec<f64>,
    reads: usize,
    bytes: usize,
    wrong_rows: usize,
}

/// Means of counts and percentiles of times over the timed steps. Wrong rows are those of all steps.
#[derive(Serialize)]
pub struct Row {
    pub setting: &'static str,
    pub reads_per_step: f64,
    pub bytes_per_step: f64,
    /// The median.
    pub step_us: f64,
    pub step_p99_us: f64,
    pub wrong_rows: usize,
    pub memory_bytes: usize,
    /// The ninth decile of the times divided by the median.
    #[serde(skip)]
    pub spread: f64,
}

impl Tally {
    /// Adds a step. If it is not `timed`, only its wrong rows count.
    fn add(&mut self, step: Step, timed: bool) {
        self.wrong_rows += step.wrong_rows;
        if timed {
            self.times.push(step.us);
            self.reads += step.reads;
            self.bytes += step.bytes;
        }
    }

    /// Returns the figures of a setting, whose steps were added.
    fn row(mut self, name: &'static str, setting: &dyn Setting) -> Row {
        let times = summary(&mut self.times);
        let mean = |count: usize| count as f64 / self.times.len() as f64;
        Row {
            setting: name,
            reads_per_step: mean(self.reads),
            bytes_per_step: mean(self.bytes),
            step_us: times.p50,
            step_p99_us: times.p99,
            wrong_rows: self.wrong_rows,
            memory_bytes: setting.memory_bytes(),
            spread: times.spread(),
        }
    }
}
