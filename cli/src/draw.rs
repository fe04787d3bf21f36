//! Charts of measurements as SVG files.
//!
//! The viewer lays out the text, so no font is needed here, and the same numbers give the same file.

use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use avsg::{Error, Result};

/// Width and height of a chart in pixels.
const SIZE: (u32, u32) = (960, 600);
/// The x coordinate of the legend in pixels; the legend stands to the right of the chart.
const LEGEND_X: i32 = 770;
/// Colours of the series: the palette of Okabe and Ito, which colour-blind readers can distinguish.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// One line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// (x, y) of each point, in the order of the line. Points that are not finite are left out.
    pub points: Vec<(f64, f64)>,
}

/// The bars of one colour in a bar chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// Name in the legend.
    pub name: String,
    /// One value per group. A value that is not finite has no bar.
    pub values: Vec<f64>,
}

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Draws a line chart into a file.
pub fn lines(
    path: impl AsRef<Path>,
    title: &str,
    x_label: &str,
    y_label: &str,
    series: &[Series],
) -> Result<()> {
    save(path.as_ref(), &lines_svg(title, x_label, y_label, series)?)
}

/// Draws a bar chart into a file.
pub fn bars(
    path: impl AsRef<Path>,
    title: &str,
    y_label: &str,
    groups: &[String],
    series: &[Bars],
) -> Result<()> {
    save(path.as_ref(), &bars_svg(title, y_label, groups, series)?)
}

/// Returns a line chart with a mark at every point. The y axis starts at 0 unless all values are far
/// above 0.
pub fn lines_svg(title: &str, x_label: &str, y_label: &str, series: &[Series]) -> Result<String> {
    let points = || series.iter().flat_map(|s| s.points.iter().copied()).filter(finite);
    let x = span(points().map(|p| p.0));
    let y = from_zero(span(points().map(|p| p.1)));
    svg(title, |canvas| {
        let mut chart = frame(canvas, title, x, y)?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(x_label).y_desc(y_label).max_light_lines(1).light_line_style(TRANSPARENT);
        mesh.x_labels(11).x_label_formatter(&|v| tick(*v)).y_label_formatter(&|v| tick(*v));
        mesh.label_style(("sans-serif", 16)).axis_desc_style(("sans-serif", 18)).draw()?;
        for (one, colour) in series.iter().zip(COLOURS.iter().cycle()) {
            let points: Vec<_> = one.points.iter().copied().filter(finite).collect();
            let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2));
            chart.draw_series(line)?;
            chart.draw_series(points.iter().map(|&p| Circle::new(p, 3, colour.filled())))?;
        }
        legend(canvas, series.iter().map(|one| &one.name))
    })
}

/// Returns a bar chart: groups side by side, with one bar of each colour per group.
pub fn bars_svg(title: &str, y_label: &str, groups: &[String], series: &[Bars]) -> Result<String> {
    let y = from_zero(span(series.iter().flat_map(|s| s.values.iter().copied()).chain([0.0])));
    let count = groups.len().max(1);
    let width = 0.8 / series.len().max(1) as f64;
    // Ticks at whole numbers are in the middle of a group and show its name; other ticks show nothing.
    let label = |v: &f64| {
        let at = v.round();
        let near = (v - at).abs() < 1e-6 && at >= 0.0;
        groups.get(at as usize).filter(|_| near).cloned().unwrap_or_default()
    };
    svg(title, |canvas| {
        let mut chart = frame(canvas, title, -0.5..count as f64 - 0.5, y)?;
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh().y_desc(y_label).max_light_lines(1).light_line_style(TRANSPARENT);
        mesh.x_labels(count + 1).x_label_formatter(&label).y_label_formatter(&|v| tick(*v));
        mesh.label_style(("sans-serif", 16)).axis_desc_style(("sans-serif", 18)).draw()?;
        for (number, (one, colour)) in series.iter().zip(COLOURS.iter().cycle()).enumerate() {
            let values = one.values.iter().take(groups.len()).enumerate();
            let shown = values.filter(|(_, value)| value.is_finite());
            let rectangles = shown.map(|(group, &value)| {
                let left = group as f64 - 0.4 + number as f64 * width;
                Rectangle::new([(left, 0.0), (left + width * 0.92, value)], colour.filled())
            });
            chart.draw_series(rectangles)?;
        }
        legend(canvas, series.iter().map(|one| &one.name))
    })
}

type DrawResult<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Returns the text of a chart; errors contain its title.
fn svg(title: &str, draw: impl FnOnce(&Canvas<'_>) -> DrawResult<()>) -> Result<String> {
    let mut text = String::new();
    {
        let canvas = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        let drawn = draw(&canvas).and_then(|()| Ok(canvas.present()?));
        drawn.map_err(|e| {
            Error::invalid("chart", title, e.to_string(), "check the numbers of the chart")
        })?;
    }
    Ok(text)
}

fn save(path: &Path, text: &str) -> Result<()> {
    let remedy = "check that the folder exists, is writable and has free space";
    let what = path.display().to_string();
    std::fs::write(path, text).map_err(|source| Error::Os { call: "write", what, source, remedy })
}

fn frame<'b>(
    canvas: &Canvas<'b>,
    title: &str,
    x: Range<f64>,
    y: Range<f64>,
) -> DrawResult<Chart<'b, 'b>> {
    canvas.fill(&WHITE)?;
    let (left, _) = canvas.split_horizontally(LEGEND_X);
    let mut builder = ChartBuilder::on(&left);
    builder.caption(title, ("sans-serif", 24)).margin(16);
    builder.x_label_area_size(52).y_label_area_size(76);
    Ok(builder.build_cartesian_2d(x, y)?)
}

/// Draws a coloured rectangle and the name of each series, one below the other.
fn legend<'a>(canvas: &Canvas<'_>, names: impl Iterator<Item = &'a String>) -> DrawResult<()> {
    for ((name, colour), y) in names.zip(COLOURS.iter().cycle()).zip((64..).step_by(26)) {
        let swatch = [(LEGEND_X, y), (LEGEND_X + 18, y + 8)];
        canvas.draw(&Rectangle::new(swatch, colour.filled()))?;
        canvas.draw(&Text::new(name.as_str(), (LEGEND_X + 26, y - 4), ("sans-serif", 16)))?;
    }
    Ok(())
}

fn finite(point: &(f64, f64)) -> bool {
    point.0.is_finite() && point.1.is_finite()
}

/// Returns the range of the finite values; it is never empty.
fn span(values: impl Iterator<Item = f64>) -> Range<f64> {
    let finite = values.filter(|v| v.is_finite());
    let (low, high) = finite.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
    match low.partial_cmp(&high) {
        Some(std::cmp::Ordering::Less) => low..high,
        Some(std::cmp::Ordering::Equal) => low - 0.5..low + 0.5,
        _ => 0.0..1.0,
    }
}

/// Adds a margin above the range, and extends it down to 0 if that does not flatten the curves.
fn from_zero(range: Range<f64>) -> Range<f64> {
    let margin = (range.end - range.start) * 0.08;
    let near = range.start <= 2.0 * (range.end - range.start);
    let low = if range.start >= 0.0 && near { 0.0 } else { range.start - margin };
    low..range.end + margin
}

/// Formats the label of a tick: four decimals at most, and a unit for large numbers (1500000 is 1.5M).
fn tick(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let rounded = (scaled * 1e4).round() / 1e4;
    format!("{rounded}{unit}")
}
