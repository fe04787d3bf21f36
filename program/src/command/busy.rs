//! What else the machine did while something was measured, so that a disturbed figure is not taken for
//! a true one.

use std::fs;
use std::time::Instant;

use avsg::system::cpus::allowed_cpus;
use serde::Serialize;

/// The share of the CPU time, in percent, that may be stolen by other virtual machines.
const MAX_STEAL: f64 = 2.0;
/// The share of the CPUs, in percent, that other processes may use.
const MAX_OTHERS: f64 = 15.0;
/// The largest ratio of the ninth decile to the median of a quiet machine's times.
const MAX_SPREAD: f64 = 2.0;
/// The number of times from which a decile says something.
const MIN_SAMPLES: usize = 20;
/// Seconds below which the counters of the kernel, which tick every hundredth, say too little.
const MIN_SECONDS: f64 = 0.25;
/// Ticks per second of the counters in /proc.
const TICKS: f64 = 100.0;

/// The counters at the start of a measurement.
pub struct Watch {
    start: Instant,
    counters: Option<Counters>,
}

/// Ticks of all CPUs since the machine started: in any process, in this one with its children that have ended, and
/// those that other virtual machines took.
type Counters = [u64; 3];

/// What disturbed a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Disturbance {
    /// Times that the figures are medians or deciles of.
    pub samples: usize,
    /// The ninth decile of the times divided by their median; NaN, which is null in JSON, without
    /// times.
    pub spread: f64,
    /// Share of the CPU time that other virtual machines took, in percent; null if the run was too
    /// short to tell.
    pub steal_percent: Option<f64>,
    /// CPUs that other processes used on average, of `cpus`.
    pub others: Option<f64>,
    /// CPUs that this process may use.
    pub cpus: usize,
}

impl Watch {
    pub fn start() -> Self {
        Self { start: Instant::now(), counters: counters() }
    }

    /// Returns what happened since the start, and prints a warning to standard error if the figures cannot
    /// be trusted: medians of `samples` times, of which the ninth deciles are `spreads` times the medians.
    pub fn stop(&self, samples: usize, spreads: impl IntoIterator<Item = f64>) -> Disturbance {
        let spread = spreads.into_iter().fold(f64::NAN, f64::max);
        let (seconds, cpus) = (self.start.elapsed().as_secs_f64(), allowed_cpus().len().max(1));
        let mut all = Disturbance { samples, spread, steal_percent: None, others: None, cpus };
        let counters = self.counters.zip(counters()).filter(|_| seconds >= MIN_SECONDS);
        if let Some((from, to)) = counters {
            let ticks = TICKS * seconds;
            let [used, own, stolen] = [0, 1, 2].map(|at| to[at].saturating_sub(from[at]) as f64);
            all.steal_percent = Some(100.0 * stolen / (ticks * cpus as f64));
            all.others = Some(((used - own) / ticks).max(0.0));
        }
        if all.is_busy() {
            let why = all.line();
            eprintln!(
                "warning: the machine was busy or its times vary: {why}; measure again, or compare ratios of this run only"
            );
        }
        all
    }
}

impl Disturbance {
    /// Returns one line with all figures.
    pub fn line(&self) -> String {
        let Self { samples, spread, cpus, .. } = self;
        let mut parts = vec![format!("{samples} times")];
        if spread.is_finite() {
            parts.push(format!("their ninth decile is {spread:.2} times the median"));
        }
        if let (Some(steal), Some(others)) = (self.steal_percent, self.others) {
            parts.push(format!("other processes used {others:.2} of {cpus} CPUs"));
            parts.push(format!("{steal:.1} % of the CPU time was stolen"));
        }
        parts.join(", ")
    }

    /// Returns whether the figures cannot be trusted.
    fn is_busy(&self) -> bool {
        let others = self.others.is_some_and(|n| 100.0 * n / self.cpus as f64 > MAX_OTHERS);
        let vary = self.samples >= MIN_SAMPLES && self.spread > MAX_SPREAD;
        self.steal_percent.is_some_and(|n| n > MAX_STEAL) || others || vary
    }
}

fn counters() -> Option<Counters> {
    let [machine, own] = ["/proc/stat", "/proc/self/stat"].map(fs::read_to_string);
    parsed(&machine.ok()?, &own.ok()?)
}

/// Parses the first line of `/proc/stat` (user, nice, system, idle, iowait, irq, softirq, steal), and the
/// user and system time of a process and of its children that have ended. The name before them may
/// contain spaces, and ends at the last parenthesis.
fn parsed(machine: &str, own: &str) -> Option<Counters> {
    let number = |n: &str| n.parse::<u64>().ok();
    let line = machine.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(number).collect();
    let [user, nice, system, _, _, irq, softirq, stolen] = *ticks.first_chunk()?;
    let fields = own.rsplit_once(')')?.1.split_whitespace().skip(11);
    let own: Vec<u64> = fields.map_while(number).take(4).collect();
    let own = own.first_chunk::<4>()?.iter().sum();
    Some([user + nice + system + irq + softirq, own, stolen])
}

#[cfg(test)]
mod tests;
