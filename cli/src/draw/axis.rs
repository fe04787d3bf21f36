//! The axes of a chart: the scale of the horizontal one, and the ticks of both.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;

/// The largest number of marked values that all get a tick.
const MAX_TICKS: usize = 14;
/// The smallest distance of two ticks as a share of the axis.
const MIN_GAP: f64 = 0.06;
/// The free ends of the horizontal axis as shares of it, which hold half of a mark's value.
const ENDS: f64 = 0.06;

/// Where values stand on the horizontal axis: at their binary logarithm if the largest is at least twice
/// the smallest, which is above 0.
pub(super) struct Scale {
    logarithmic: bool,
    /// The places of the two ends.
    pub range: Range<f64>,
    /// The places of the ticks.
    pub ticks: Vec<f64>,
}

impl Scale {
    /// Returns the scale for the values of all points, with ticks at `marked` ones or, if these are too
    /// many, at round values.
    pub fn new(values: impl Iterator<Item = f64>, marked: impl Iterator<Item = f64>) -> Self {
        let ends = span(values);
        let logarithmic = ends.start > 0.0 && ends.end >= 2.0 * ends.start;
        let scale = Self { logarithmic, range: 0.0..1.0, ticks: Vec::new() };
        let (low, high) = (scale.at(ends.start), scale.at(ends.end));
        let width = high - low;
        let mut marked: Vec<f64> = marked.collect();
        marked.sort_unstable_by(f64::total_cmp);
        marked.dedup();
        let candidates = match logarithmic {
            _ if marked.len() <= MAX_TICKS => marked,
            true => (0..32).map(|n| f64::from(1u32 << n)).collect(),
            false => round_values(&ends).0,
        };
        let mut ticks: Vec<f64> = Vec::new();
        for at in candidates.into_iter().map(|value| scale.at(value)) {
            let inside = at >= low - 1e-9 && at <= high + 1e-9;
            if inside && ticks.last().is_none_or(|last| at - last >= MIN_GAP * width) {
                ticks.push(at);
            }
        }
        Self { range: low - ENDS * width..high + ENDS * width, ticks, ..scale }
    }

    /// Returns the place of a value.
    pub fn at(&self, value: f64) -> f64 {
        if self.logarithmic { value.log2() } else { value }
    }

    /// Returns the text of the tick at a place.
    pub fn label(&self, place: f64) -> String {
        tick(if self.logarithmic { place.exp2() } else { place }, None)
    }
}

/// A linear axis with ticks at given places, and none elsewhere.
pub(super) struct Ticks {
    axis: RangedCoordf64,
    places: Vec<f64>,
    /// The digits after the point of the labels, if all have as many.
    pub decimals: Option<usize>,
}

impl Ticks {
    /// Returns an axis over `range` with ticks at `places`.
    pub fn new(range: Range<f64>, places: Vec<f64>) -> Self {
        Self { axis: range.into(), places, decimals: None }
    }

    /// Returns an axis over `range` with ticks at round values.
    pub fn round(range: Range<f64>) -> Self {
        let (places, step) = round_values(&range);
        let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
        Self { axis: range.into(), places, decimals: Some(decimals) }
    }
}

impl Ranged for Ticks {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.axis.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.places.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.axis.range()
    }
}

/// Returns multiples of 1, 2 or 5 times a power of ten, about eight over the range, and their distance.
fn round_values(range: &Range<f64>) -> (Vec<f64>, f64) {
    let rough = (range.end - range.start) / 8.0;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= rough).unwrap_or(10.0);
    let step = factor * power;
    let first = (range.start / step).ceil();
    let all = (0..=9).map(|n| (first + f64::from(n)) * step);
    (all.filter(|&value| value <= range.end).collect(), step)
}

/// Returns the range of the finite values; it is never empty.
pub fn span(values: impl Iterator<Item = f64>) -> Range<f64> {
    let finite = values.filter(|v| v.is_finite());
    let (low, high) = finite.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
    match low.partial_cmp(&high) {
        Some(std::cmp::Ordering::Less) => low..high,
        Some(std::cmp::Ordering::Equal) => low - 0.5..low + 0.5,
        _ => 0.0..1.0,
    }
}

/// Formats the label of a tick with this many decimals, or with those that it needs, at most four. A number
/// from a million on has a unit (1500000 is 1.5M), and a size such as 16384 has all its digits.
pub fn tick(value: f64, decimals: Option<usize>) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        _ => (value, ""),
    };
    match decimals.filter(|_| unit.is_empty()) {
        Some(decimals) => format!("{scaled:.decimals$}"),
        None => format!("{}{unit}", (scaled * 1e4).round() / 1e4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64]) -> Vec<String> {
        let scale = Scale::new(values.iter().copied(), values.iter().copied());
        scale.ticks.iter().map(|&place| scale.label(place)).collect()
    }

    #[test]
    fn sizes_stand_at_their_logarithm_with_a_tick_at_each_marked_one() {
        let marked = [256.0, 512.0, 1024.0, 4096.0];
        let curve = (4..=64).map(|n| f64::from(n) * 64.0);
        let scale = Scale::new(curve, marked.into_iter());
        assert_eq!(scale.ticks, [8.0, 9.0, 10.0, 12.0]);
        assert!(scale.range.start < 8.0 && scale.range.end > 12.0);
        assert_eq!(labels(&[2048.0, 256.0, 256.0, 16384.0]), ["256", "2048", "16384"]);
    }

    #[test]
    fn the_labels_of_an_axis_have_as_many_decimals_as_each_other() {
        let axis = Ticks::round(97.35..98.35);
        let labels: Vec<_> = axis.places.iter().map(|&v| tick(v, axis.decimals)).collect();
        assert_eq!(labels, ["97.4", "97.6", "97.8", "98.0", "98.2"]);
        assert_eq!(tick(1_500_000.0, Some(0)), "1.5M");
    }

    #[test]
    fn near_values_stand_on_a_linear_axis() {
        assert_eq!(labels(&[0.8, 0.9, 0.96]), ["0.8", "0.9", "0.96"]);
        let many: Vec<f64> = (100..=190).map(f64::from).collect();
        assert_eq!(labels(&many)[..3], ["100", "120", "140"]);
    }

    #[test]
    fn many_sizes_have_ticks_at_powers_of_two() {
        let many: Vec<f64> = (1..=128).map(|n| f64::from(n) * 64.0).collect();
        let shown = labels(&many);
        assert_eq!((&shown[0][..], &shown[7][..], shown.len()), ("64", "8192", 8));
    }
}
