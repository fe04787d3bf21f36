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

/// Settings with their figures.
pub type Settings<'a> = Vec<(&'a mut dyn Setting, Tally)>;

/// Returns settings without steps.
pub fn start<const N: usize>(settings: [&mut dyn Setting; N]) -> Settings<'_> {
    settings.into_iter().map(|setting| (setting, Tally::default())).collect()
}

/// Runs all steps of a trace in each setting, in turns.
pub fn take(settings: &mut Settings, trace: &Trace, bar: &Progress) -> Result<()> {
    for first in once(0).chain((WARM_UP..trace.steps).step_by(TURN)) {
        let end = if first == 0 { WARM_UP } else { (first + TURN).min(trace.steps) };
        for (setting, tally) in settings.iter_mut() {
            for step in first..end {
                tally.add(setting.step(trace.row(step, 0))?, step >= WARM_UP);
            }
        }
        bar.inc(end - first);
    }
    Ok(())
}

/// Counts and times of the steps so far.
#[derive(Default)]
pub struct Tally {
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
    pub fn add(&mut self, step: Step, timed: bool) {
        self.wrong_rows += step.wrong_rows;
        if timed {
            self.times.push(step.us);
            self.reads += step.reads;
            self.bytes += step.bytes;
        }
    }

    /// Returns the figures of `setting`, whose steps were added.
    pub fn row(mut self, setting: &dyn Setting) -> Row {
        let times = summary(&mut self.times);
        let mean = |count: usize| count as f64 / self.times.len() as f64;
        Row {
            setting: setting.name(),
            reads_per_step: mean(self.reads),
            bytes_per_step: mean(self.bytes),
            step_us: times.median,
            step_p99_us: times.p99,
            wrong_rows: self.wrong_rows,
            memory_bytes: setting.memory_bytes(),
            spread: times.spread,
        }
    }
}
