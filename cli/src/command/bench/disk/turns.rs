//! The settings take turns, and their figures over the steps.

use std::iter::once;
use std::ops::Range;

use anyhow::Result;
use indicatif::ProgressBar;
use serde::Serialize;

use super::mapped::GROUPED;
use super::rows::{Setting, Step};
use crate::command::bench::stats::summary;
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

/// Runs all steps of a trace in each setting, in turns. A control group with too little memory is left out,
/// and the reason is returned.
pub fn take(settings: &mut Settings, trace: &Trace, bar: &ProgressBar) -> Result<Option<String>> {
    let mut lost = None;
    for first in once(0).chain((WARM_UP..trace.steps).step_by(TURN)) {
        let end = if first == 0 { WARM_UP } else { (first + TURN).min(trace.steps) };
        let mut at = 0;
        while let Some((setting, tally)) = settings.get_mut(at) {
            match turn(*setting, tally, trace, first..end) {
                Ok(()) => at += 1,
                // The kernel ends a process whose group has too little memory.
                Err(fault) if setting.name() == GROUPED => {
                    lost = Some(fault.to_string());
                    settings.remove(at);
                }
                Err(fault) => return Err(fault),
            }
        }
        bar.set_position(end as u64);
    }
    Ok(lost)
}

fn turn(
    setting: &mut dyn Setting,
    tally: &mut Tally,
    trace: &Trace,
    steps: Range<usize>,
) -> Result<()> {
    for step in steps {
        tally.add(setting.step(trace.row(step, 0))?, step >= WARM_UP);
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
    /// What limits the page cache; null if no rows are kept there.
    pub page_cache: Option<String>,
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
            page_cache: setting.page_cache().map(str::to_owned),
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
