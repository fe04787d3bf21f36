//! The horizontal axis of a line chart: its scale, and ticks at the tested values.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;

/// The largest number of tested values that all get a tick.
const MAX_TICKS: usize = 14;
/// The smallest distance of two ticks as a share of the axis.
const MIN_GAP: f64 = 0.045;

/// Where values stand on an axis: at their binary logarithm if the largest is at least 4 times the
/// smallest, which is above 0.
pub(super) struct Scale {
    logarithmic: bool,
    /// The places of the smallest and the largest value.
    pub range: Range<f64>,
    /// The places of the ticks.
    pub ticks: Vec<f64>,
}

impl Scale {
    /// Returns the scale for the values of the points.
    pub fn new(values: impl Iterator<Item = f64>) -> Self {
        let mut tested: Vec<f64> = values.filter(|v| v.is_finite()).collect();
        tested.sort_unstable_by(f64::total_cmp);
        tested.dedup();
        let ends = (tested.first().copied(), tested.last().copied());
        let logarithmic =
            ends.0.zip(ends.1).is_some_and(|(low, high)| low > 0.0 && high >= 4.0 * low);
        let scale = Self { logarithmic, range: 0.0..1.0, ticks: Vec::new() };
        let range = span(tested.iter().map(|&value| scale.at(value)));
        let candidates = match logarithmic {
            _ if tested.len() <= MAX_TICKS => tested,
            true => (0..32).map(|n| f64::from(1u32 << n)).collect(),
            false => round_values(&range),
        };
        let gap = MIN_GAP * (range.end - range.start);
        let mut ticks: Vec<f64> = Vec::new();
        for at in candidates.into_iter().map(|value| scale.at(value)) {
            let inside = at >= range.start - 1e-9 && at <= range.end + 1e-9;
            if inside && ticks.last().is_none_or(|last| at - last >= gap) {
                ticks.push(at);
            }
        }
        Self { range, ticks, ..scale }
    }

    /// Returns the place of a value.
    pub fn at(&self, value: f64) -> f64 {
        if self.logarithmic { value.log2() } else { value }
    }

    /// Returns the text of the tick at a place.
    pub fn label(&self, place: f64) -> String {
        tick(if self.logarithmic { place.exp2() } else { place })
    }
}

/// A linear axis with ticks at given places, and none elsewhere.
pub(super) struct Ticks {
    axis: RangedCoordf64,
    places: Vec<f64>,
}

impl Ticks {
    /// Returns an axis over `range` with ticks at `places`.
    pub fn new(range: Range<f64>, places: Vec<f64>) -> Self {
        Self { axis: range.into(), places }
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

/// Returns multiples of 1, 2 or 5 times a power of ten, about ten over the range.
fn round_values(range: &Range<f64>) -> Vec<f64> {
    let rough = (range.end - range.start) / 10.0;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= rough).unwrap_or(10.0);
    let step = factor * power;
    (0..=12).map(|n| ((range.start / step).ceil() + f64::from(n)) * step).collect()
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

/// Formats the label of a tick: four decimals at most, and a unit for large numbers (1500000 is 1.5M).
pub fn tick(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let rounded = (scaled * 1e4).round() / 1e4;
    format!("{rounded}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64]) -> Vec<String> {
        let scale = Scale::new(values.iter().copied());
        scale.ticks.iter().map(|&place| scale.label(place)).collect()
    }

    #[test]
    fn sizes_stand_at_their_logarithm_with_a_tick_at_each() {
        let scale = Scale::new([256.0, 512.0, 1024.0, 4096.0].into_iter());
        assert_eq!(
            (scale.range.clone(), &scale.ticks[..]),
            (8.0..12.0, &[8.0, 9.0, 10.0, 12.0][..])
        );
        assert_eq!(labels(&[2048.0, 256.0, 256.0]), ["256", "2048"]);
    }

    #[test]
    fn near_values_stand_on_a_linear_axis() {
        assert_eq!(labels(&[0.8, 0.9, 0.96]), ["0.8", "0.9", "0.96"]);
        let many: Vec<f64> = (100..=200).map(f64::from).collect();
        assert_eq!(labels(&many)[..3], ["100", "110", "120"]);
    }

    #[test]
    fn many_sizes_have_ticks_at_powers_of_two() {
        let many: Vec<f64> = (1..=128).map(|n| f64::from(n) * 64.0).collect();
        let shown = labels(&many);
        assert_eq!((&shown[0][..], &shown[7][..], shown.len()), ("64", "8192", 8));
    }
}
