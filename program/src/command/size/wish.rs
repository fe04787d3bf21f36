//! What the user wants of an S, and the choice of the recommended one.

use clap::Args;
use serde::Serialize;

use super::report::Point;
use crate::quantity::{gigabytes, percent, positive};

/// What the user wants; null in JSON where nothing was said.
#[derive(Args, Clone, Copy, Debug, Serialize)]
pub struct Wish {
    /// Recommend the least S with this hit rate, 1 to 100
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub hit_rate: Option<f64>,
    /// Recommend the S that copies least of those that fit this much device memory: 4, 4G or 4GB for
    /// 4 * 10^9 bytes, 4Gi for 4 * 2^30
    #[arg(long = "device-gb", value_name = "GB", value_parser = gigabytes)]
    pub device_bytes: Option<f64>,
    /// Recommend the least S with this time per output token in milliseconds, by the model; with --link,
    /// with rows on the disk
    #[arg(long, value_name = "MS", requires = "any_link", value_parser = positive)]
    pub tpot_ms: Option<f64>,
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
