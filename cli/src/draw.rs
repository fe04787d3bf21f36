//! The chart of hit rates over S as an SVG file.
//!
//! The viewer lays out the text, so no font is needed here, and the same numbers give the same file.

use std::fmt::Write;
use std::path::Path;

use crate::baseline::{LRU, OPTIMUM};
use crate::output_file;
use avsg::Result;

/// The left, right, top and bottom edges of the area of the points in pixels.
const LEFT: f64 = 88.0;
const RIGHT: f64 = 740.0;
const TOP: f64 = 104.0;
const BOTTOM: f64 = 484.0;
/// The x coordinate of the legend in pixels; the legend stands to the right of the points.
const LEGEND: f64 = 770.0;
/// The most marked sizes that all get a tick.
const MAX_TICKS: usize = 14;
/// Ticks of the vertical axis, about.
const ROWS: f64 = 8.0;
/// Colours that colour-blind readers can distinguish (Okabe and Ito), by the beginning of a series' name.
const COLOURS: [(&str, &str); 3] = [("AVSG", "#0072B2"), (LRU, "#000000"), (OPTIMUM, "#009E73")];
const OTHER_COLOUR: &str = "#D55E00";
const TITLE: &str = "How many of the selected rows are in the buffer already";

/// One series of the chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend, as in the tables.
    pub name: String,
    /// Whether it is a line, and not marks with their values.
    pub is_curve: bool,
    /// S and hit rate of each point in ascending order.
    pub points: Vec<(f64, f64)>,
}

/// Draws hit rates in percent over S into a file, or `no data` if there is no point. `subject` says what
/// they were computed on, and a line marks the S that was `chosen`.
///
/// # Errors
/// If the file cannot be written.
pub fn hit_rates(path: &Path, subject: &str, series: &[Series], chosen: Option<u32>) -> Result<()> {
    output_file::write(path, svg(subject, series, chosen).as_bytes())
}

fn svg(subject: &str, series: &[Series], chosen: Option<u32>) -> String {
    let mut out = Svg::default();
    out.text((24.0, 38.0), 22, "start", "black", TITLE);
    out.text((24.0, 66.0), 15, "start", "#5A5A5A", subject);
    let all: Vec<(f64, f64)> = series.iter().flat_map(|one| one.points.iter().copied()).collect();
    if all.is_empty() {
        out.text(((LEFT + RIGHT) / 2.0, (TOP + BOTTOM) / 2.0), 20, "middle", "#5A5A5A", "no data");
        return out.finish();
    }
    let (x, y) = (Axis::of_sizes(&all), Axis::of_rates(&all));
    let at = |&(slots, rate): &(f64, f64)| {
        (LEFT + (RIGHT - LEFT) * x.share(slots.log2()), BOTTOM - (BOTTOM - TOP) * y.share(rate))
    };
    let (rates, decimals) = y.round_values();
    for rate in rates {
        let (_, height) = at(&(1.0, rate));
        out.line(&[(LEFT, height), (RIGHT, height)], "#DEDEDE", "");
        out.text((LEFT - 10.0, height + 5.0), 15, "end", "#5A5A5A", &format!("{rate:.decimals$}"));
    }
    for slots in ticks(series) {
        let (place, _) = at(&(slots, 0.0));
        out.line(&[(place, BOTTOM), (place, BOTTOM + 5.0)], "#5A5A5A", "");
        out.text((place, BOTTOM + 22.0), 15, "middle", "#5A5A5A", &slots.to_string());
    }
    out.line(&[(LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM)], "#5A5A5A", "");
    let middle = (LEFT + RIGHT) / 2.0;
    out.text((middle, BOTTOM + 48.0), 16, "middle", "black", "S, slots per request and layer");
    let label = "hit rate after the first step, %";
    out.text((24.0, TOP - 12.0), 16, "start", "black", label);
    if let Some(slots) = chosen {
        let (place, _) = at(&(f64::from(slots), 0.0));
        out.line(&[(place, TOP), (place, BOTTOM)], "#5A5A5A", " stroke-dasharray=\"6 4\"");
        out.text((place, TOP + 14.0), 15, "middle", "#5A5A5A", &format!("take S = {slots}"));
    }
    for (one, height) in series.iter().zip((0..).map(|n| TOP + 16.0 + 26.0 * f64::from(n))) {
        let colour = COLOURS.iter().find(|(start, _)| one.name.starts_with(start));
        let colour = colour.map_or(OTHER_COLOUR, |&(_, colour)| colour);
        let places: Vec<_> = one.points.iter().map(at).collect();
        if one.is_curve {
            out.line(&places, colour, " stroke-width=\"2\"");
            out.line(&[(LEGEND, height), (LEGEND + 22.0, height)], colour, " stroke-width=\"2\"");
        } else {
            out.mark((LEGEND + 11.0, height), colour);
        }
        for (place, (_, rate)) in places.iter().zip(&one.points).filter(|_| !one.is_curve) {
            out.mark(*place, colour);
            out.text((place.0, place.1 + 22.0), 15, "middle", colour, &format!("{rate:.2}"));
        }
        out.text((LEGEND + 30.0, height + 5.0), 16, "start", "black", &one.name);
    }
    out.finish()
}

/// Returns the sizes of the marks, or powers of two if the marks are too many.
fn ticks(series: &[Series]) -> Vec<f64> {
    let marks = series.iter().filter(|one| !one.is_curve).flat_map(|one| &one.points);
    let mut sizes: Vec<f64> = marks.map(|point| point.0).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    sizes.dedup();
    if sizes.len() > MAX_TICKS {
        sizes.retain(|size| size.log2().fract() == 0.0);
    }
    sizes
}

/// The values at both ends of an axis.
struct Axis(f64, f64);

impl Axis {
    /// Returns the axis of the binary logarithms of S, with room for half of a mark's value at both ends.
    fn of_sizes(points: &[(f64, f64)]) -> Self {
        let (low, high) = ends(points.iter().map(|point| point.0.log2()));
        let room = 0.06 * (high - low).max(1.0);
        Self(low - room, high + room)
    }

    /// Returns the axis of hit rates, which begins where differences can be seen.
    fn of_rates(points: &[(f64, f64)]) -> Self {
        let (low, high) = ends(points.iter().map(|point| point.1));
        let room = 0.15 * (high - low).max(1.0);
        Self((low - room).max(0.0), high + room)
    }

    fn share(&self, value: f64) -> f64 {
        (value - self.0) / (self.1 - self.0)
    }

    /// Returns multiples of 1, 2 or 5 times a power of ten, and the decimals that they need.
    fn round_values(&self) -> (Vec<f64>, usize) {
        let rough = (self.1 - self.0) / ROWS;
        let power = 10f64.powf(rough.log10().floor());
        let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= rough).unwrap_or(10.0);
        let step = factor * power;
        let first = (self.0 / step).ceil();
        let all = (0..=ROWS as i32).map(|n| (first + f64::from(n)) * step);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        (all.filter(|&value| value <= self.1).collect(), decimals)
    }
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
}

/// The elements of the file.
#[derive(Default)]
struct Svg(String);

impl Svg {
    fn line(&mut self, points: &[(f64, f64)], colour: &str, more: &str) {
        let points: String = points.iter().map(|(x, y)| format!("{x:.1},{y:.1} ")).collect();
        let points = points.trim_end();
        self.add(format_args!(
            "<polyline fill=\"none\" stroke=\"{colour}\"{more} points=\"{points}\"/>"
        ));
    }

    fn mark(&mut self, (x, y): (f64, f64), colour: &str) {
        self.add(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{colour}\"/>"));
    }

    fn text(&mut self, (x, y): (f64, f64), size: u32, anchor: &str, colour: &str, words: &str) {
        let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{words}</text>"
        ));
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{element}");
    }

    fn finish(self) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"960\" height=\"560\" viewBox=\"0 0 960 560\" \
             font-family=\"sans-serif\">\n<rect width=\"960\" height=\"560\" fill=\"white\"/>\n{}</svg>\n",
            self.0
        )
    }
}

#[cfg(test)]
mod tests;
