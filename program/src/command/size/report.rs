//! The figures of `avsg size`, which are written as JSON, and the choice of the recommended S.

use serde::Serialize;

use super::deployment::Deployment;
use super::time::{Model, Times};
use super::wish::Wish;
use crate::baseline::HitCount;
use crate::command::busy::Disturbance;
use crate::command::traces::{Taken, Traces};

/// The figures of a trace and a deployment. Hit rates are in percent after the first step; what needs one
/// is null if no later step selects an id.
#[derive(Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub taken: Taken,
    /// Traces, or layers of one.
    pub traces: usize,
    /// The hit rate that no buffer can surpass.
    pub ceiling: Option<f64>,
    pub deployment: Deployment,
    pub model: Option<Model>,
    /// What disturbed the measurement of matching; null if it was not measured.
    pub disturbance: Option<Disturbance>,
    /// A step that copies every row that each token selects.
    pub no_buffer: Option<Copies>,
    /// A step that copies each row once, whichever tokens select it.
    pub no_repeats: Option<Copies>,
    /// The measured S in ascending order.
    pub points: Vec<Point>,
    pub wish: Wish,
    pub recommended: Option<Point>,
}

/// What a step copies, and how long it takes by the model. Means after the first step.
#[derive(Clone, Serialize)]
pub struct Copies {
    /// Rows that one layer of one request misses.
    pub misses_per_step: f64,
    /// Bytes of all layers and requests.
    pub bytes_per_step: f64,
    /// The times with the median, the first and the ninth decile of the times of matching, which are equal if they
    /// were not measured.
    pub times: Option<[Times; 3]>,
}

/// The operator, measured at one S with the recommended rule, or with the one that is named.
#[derive(Clone, Serialize)]
pub struct Point {
    pub slots: u32,
    /// The lifetime rule.
    pub lifetime: String,
    /// The hit rate of all traces together.
    pub hit_rate: Option<f64>,
    /// The trace with the lowest hit rate; null if there is one.
    pub worst: Option<Worst>,
    pub copies: Option<Copies>,
    /// Slots, tables and working columns of all layers and requests.
    pub device_bytes: usize,
}

/// The trace, or the layer of one, with the lowest hit rate.
#[derive(Clone, Serialize)]
pub struct Worst {
    pub trace: String,
    pub hit_rate: f64,
}

impl Worst {
    /// Returns the worst of several traces, whose hits were counted; `None` if there is one.
    pub fn of(traces: &Traces, counts: &[HitCount]) -> Option<Self> {
        let rates = counts.iter().enumerate().filter_map(|(at, hits)| Some((at, hits.percent()?)));
        let worst = rates.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|_| counts.len() > 1);
        worst.map(|(at, hit_rate)| Self { trace: traces.all[at].name.clone(), hit_rate })
    }
}

impl Copies {
    /// Returns the milliseconds per output token that decide, with the median of matching, if there is a model.
    pub fn ms(&self) -> Option<f64> {
        Some(self.times?[0].deciding())
    }
}

impl Point {
    /// Returns the milliseconds per output token that decide, if there is a model and a step that selects.
    pub fn ms(&self) -> Option<f64> {
        self.copies.as_ref()?.ms()
    }

    /// Returns whether this S, the next one above `smaller`, divides the copies by at least as much as it
    /// multiplies the slots.
    pub fn pays(&self, smaller: &Self) -> bool {
        let (Some(copies), Some(before)) = (&self.copies, &smaller.copies) else { return false };
        let product = |slots: u32, copies: &Copies| f64::from(slots) * copies.misses_per_step;
        copies.misses_per_step < before.misses_per_step
            && product(self.slots, copies) <= product(smaller.slots, before)
    }
}

impl Wish {
    /// Returns the recommended one of the points, which are in ascending order. With a wished hit rate or time
    /// it is the least S that has the wish; with device memory alone, the S that copies least of those that fit;
    /// without a wish, the largest S that pays and takes less device memory than `context_bytes`, the least S
    /// if none does.
    pub fn recommended<'a>(&self, points: &'a [Point], context_bytes: usize) -> Option<&'a Point> {
        let mut met = points.iter().filter(|point| self.is_met_by(point));
        if self.hit_rate.is_some() || self.tpot_ms.is_some() {
            return met.next();
        }
        if self.device_bytes.is_some() {
            let misses = |point: &Point| point.copies.as_ref().map_or(0.0, |c| c.misses_per_step);
            let copied = met.filter(|point| point.copies.is_some());
            return copied.min_by(|a, b| misses(a).total_cmp(&misses(b)));
        }
        let pays = |pair: &&[Point]| pair[1].device_bytes < context_bytes && pair[1].pays(&pair[0]);
        let last = points.windows(2).rfind(pays).map(|pair| &pair[1]);
        last.or(points.first()).filter(|point| point.copies.is_some())
    }

    fn is_met_by(&self, point: &Point) -> bool {
        let hits =
            self.hit_rate.is_none_or(|least| point.hit_rate.is_some_and(|rate| rate >= least));
        let fits = self.device_bytes.is_none_or(|most| point.device_bytes as f64 <= most);
        hits && fits && self.tpot_ms.is_none_or(|most| point.ms().is_some_and(|ms| ms <= most))
    }
}
