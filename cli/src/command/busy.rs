//! What else the machine did while something was measured, so that a disturbed figure is not taken for
//! a true one.

use std::fs;
use std::time::Instant;

use avsg::cpus::allowed_cpu_count;
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
    machine: Option<Counters>,
    own: Option<u64>,
}

/// Ticks of all CPUs since the machine started.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counters {
    /// Time in any process, this one included.
    used: u64,
    /// Time that other virtual machines took.
    stolen: u64,
}

/// What disturbed a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Disturbance {
    /// Times that the figures are medians or deciles of.
    pub samples: usize,
    /// The ninth decile of the times divided by their median; NaN, which is null in JSON, without
    /// times.
    pub spread: f64,
    /// Share of the CPU time that other virtual machines took, in percent; absent if the run was too
    /// short to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_percent: Option<f64>,
    /// CPUs that other processes used on average, of `cpus`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<f64>,
    /// CPUs that this process may use.
    pub cpus: usize,
}

impl Watch {
    pub fn start() -> Self {
        Self { start: Instant::now(), machine: machine(), own: own() }
    }

    /// Returns what happened since the start, and prints a warning to standard error if the figures cannot
    /// be trusted: medians of `samples` times, of which the ninth deciles are `spreads` times the medians.
    pub fn stop(&self, samples: usize, spreads: impl IntoIterator<Item = f64>) -> Disturbance {
        let spread = spreads.into_iter().fold(f64::NAN, f64::max);
        let (seconds, cpus) = (self.start.elapsed().as_secs_f64(), allowed_cpu_count());
        let mut all = Disturbance { samples, spread, steal_percent: None, others: None, cpus };
        let counters = (self.machine.zip(machine()), self.own.zip(own()));
        if let (Some((from, to)), Some((own_from, own_to))) = counters
            && seconds >= MIN_SECONDS
        {
            let ticks = TICKS * seconds;
            let used = (to.used.saturating_sub(from.used)) as f64;
            let own = own_to.saturating_sub(own_from) as f64;
            let stolen = to.stolen.saturating_sub(from.stolen) as f64;
            all.steal_percent = Some(100.0 * stolen / (ticks * cpus as f64));
            all.others = Some(((used - own) / ticks).max(0.0));
        }
        all.warn();
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

    fn warn(&self) {
        if self.is_busy() {
            eprintln!(
                "warning: the machine was busy or its times vary: {}; measure again, or compare \
                 ratios of this run only",
                self.line()
            );
        }
    }
}

fn machine() -> Option<Counters> {
    counters(&fs::read_to_string("/proc/stat").ok()?)
}

/// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
fn counters(text: &str) -> Option<Counters> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|n| n.parse().ok()).collect();
    let [user, nice, system, _, _, irq, softirq, stolen] = *ticks.get(..8)? else { return None };
    Some(Counters { used: user + nice + system + irq + softirq, stolen })
}

fn own() -> Option<u64> {
    own_ticks(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// Parses the user and system time of a process and of its children that have ended. The name before
/// them may contain spaces, and ends at the last parenthesis.
fn own_ticks(text: &str) -> Option<u64> {
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    (0..4).try_fold(0, |sum, _| Some(sum + fields.next()?.parse::<u64>().ok()?))
}

#[cfg(test)]
mod tests;
