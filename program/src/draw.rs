//! The chart of hit rates over S as an SVG file.
//!
//! The viewer lays out the text, so no font is needed here, and the same numbers give the same file.

use std::fmt::Write;
use std::path::PathBuf;

use crate::output_file;
use anyhow::Result;

/// The left, right, top and bottom edges of the area of the points in pixels.
const LEFT: f64 = 88.0;
const RIGHT: f64 = 720.0;
const TOP: f64 = 104.0;
const BOTTOM: f64 = 476.0;
/// The x coordinate of the legend in pixels; the legend stands to the right of the points.
const LEGEND: f64 = 744.0;
/// The most marked sizes that all get a tick; of more, those that are powers of two.
const MAX_TICKS: usize = 14;
/// Ticks of the vertical axis, about.
const ROWS: f64 = 8.0;
/// The colour of axes and of what they say.
const GREY: &str = "#5A5A5A";
/// Colours of rules that colour-blind readers can distinguish (Okabe and Ito), in turn.
const COLOURS: [&str; 3] = ["#0072B2", "#D55E00", "#CC79A7"];
const TITLE: &str = "How many of the selected rows are in the buffer already";

/// S and hit rate in percent.
pub type Point = (f64, f64);
/// The values at both ends of an axis.
type Axis = (f64, f64);

/// Draws hit rates over S into a file, or `no data` if there is no point, and returns its path. `subject` says what
/// they were computed on, `curves` are policies, `own` are points with their rules, and a line marks the S that was
/// `chosen`.
///
/// # Errors
/// If the file cannot be written.
pub fn hit_rates<'a>(
    path: PathBuf,
    subject: &str,
    curves: &[(&str, Vec<Point>)],
    own: impl Iterator<Item = (&'a str, Point)>,
    chosen: Option<u32>,
) -> Result<PathBuf> {
    output_file::write(&path, svg(subject, curves, &own.collect::<Vec<_>>(), chosen).as_bytes())?;
    Ok(path)
}

/// Draws the chart. Values stand below the axis and names in the legend, where no line crosses them.
fn svg(
    subject: &str,
    curves: &[(&str, Vec<Point>)],
    own: &[(&str, Point)],
    chosen: Option<u32>,
) -> String {
    let mut out = Svg::default();
    out.text((24.0, 38.0), 22, "start", "black", TITLE);
    out.text((24.0, 66.0), 15, "start", GREY, subject);
    let all =
        curves.iter().flat_map(|(_, points)| points).chain(own.iter().map(|(_, point)| point));
    let all: Vec<Point> = all.copied().collect();
    if all.is_empty() {
        out.text(((LEFT + RIGHT) / 2.0, (TOP + BOTTOM) / 2.0), 20, "middle", GREY, "no data");
        return out.finish();
    }
    let x = axis(all.iter().map(|point| point.0.log2()), 0.06);
    // The axis of hit rates begins where differences can be seen.
    let mut y = axis(all.iter().map(|point| point.1), 0.15);
    y.0 = y.0.max(0.0);
    let share = |(low, high): Axis, value: f64| (value - low) / (high - low);
    let at = |&(slots, rate): &Point| {
        (LEFT + (RIGHT - LEFT) * share(x, slots.log2()), BOTTOM - (BOTTOM - TOP) * share(y, rate))
    };
    let (rates, decimals) = round_values(y);
    for rate in rates {
        let (_, height) = at(&(1.0, rate));
        out.line(&[(LEFT, height), (RIGHT, height)], "#DEDEDE", "");
        out.text((LEFT - 10.0, height + 5.0), 15, "end", GREY, &format!("{rate:.decimals$}"));
    }
    let mut rules: Vec<&str> = own.iter().map(|(rule, _)| *rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let colour = |rule: &str| COLOURS[rules.iter().position(|r| *r == rule).unwrap_or(0) % 3];
    out.text((LEFT - 10.0, BOTTOM + 42.0), 15, "end", "black", "AVSG, %");
    let is_shown = |slots: f64| own.len() <= MAX_TICKS || slots.log2().fract() == 0.0;
    for &(rule, (slots, rate)) in own.iter().filter(|(_, (slots, _))| is_shown(*slots)) {
        let (place, _) = at(&(slots, 0.0));
        out.line(&[(place, BOTTOM), (place, BOTTOM + 5.0)], GREY, "");
        out.text((place, BOTTOM + 22.0), 15, "middle", GREY, &slots.to_string());
        out.text((place, BOTTOM + 42.0), 15, "middle", colour(rule), &format!("{rate:.2}"));
    }
    out.line(&[(LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM)], GREY, "");
    let label = "S, slots per request and layer (logarithmic)";
    out.text(((LEFT + RIGHT) / 2.0, BOTTOM + 68.0), 16, "middle", "black", label);
    let mut label = "hit rate after the first step, %".to_owned();
    if y.0 > 0.0 {
        label += &format!(" (the axis begins at {:.1}, not at 0)", y.0);
    }
    out.text((24.0, TOP - 12.0), 16, "start", "black", &label);
    let mut heights = (0..).map(|n| TOP + 16.0 + 26.0 * f64::from(n));
    let mut name = |out: &mut Svg, name: &str| {
        let height = heights.next().unwrap_or(TOP);
        out.text((LEGEND + 30.0, height + 5.0), 15, "start", "black", name);
        [(LEGEND, height), (LEGEND + 22.0, height)]
    };
    if let Some(slots) = chosen {
        let (place, _) = at(&(f64::from(slots), 0.0));
        for line in [[(place, TOP), (place, BOTTOM)], name(&mut out, &format!("take S = {slots}"))]
        {
            out.line(&line, GREY, " stroke-dasharray=\"6 4\"");
        }
    }
    for ((curve, points), colour) in curves.iter().zip(["#000000", "#009E73"]) {
        out.line(&points.iter().map(at).collect::<Vec<_>>(), colour, " stroke-width=\"2\"");
        let line = name(&mut out, curve);
        out.line(&line, colour, " stroke-width=\"2\"");
    }
    for rule in &rules {
        let [left, right] = name(&mut out, &format!("AVSG, {rule}"));
        out.mark((f64::midpoint(left.0, right.0), left.1), colour(rule));
    }
    own.iter().for_each(|(rule, point)| out.mark(at(point), colour(rule)));
    out.finish()
}

/// Returns the ends of an axis, with room for this share of the values beside them.
fn axis(values: impl Iterator<Item = f64>, room: f64) -> Axis {
    let ends = |(low, high): Axis, value: f64| (low.min(value), high.max(value));
    let (low, high) = values.fold((f64::MAX, f64::MIN), ends);
    let room = room * (high - low).max(1.0);
    (low - room, high + room)
}

/// Returns multiples of 1, 2 or 5 times a power of ten between the ends, and the decimals that they need.
fn round_values((low, high): Axis) -> (Vec<f64>, usize) {
    let rough = (high - low) / ROWS;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= rough).unwrap_or(10.0);
    let step = factor * power;
    let first = (low / step).ceil();
    let all = (0..=ROWS as i32).map(|n| (first + f64::from(n)) * step);
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    (all.filter(|&value| value <= high).collect(), decimals)
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
