//! Charts of measurements as SVG files.
//!
//! The viewer lays out the text, so no font is needed here, and the same numbers give the same file.

mod axis;
mod colour;

use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::output_file;
use avsg::{Error, Result};
use axis::{Scale, Ticks, span, tick};

/// Width and height of a chart in pixels.
const SIZE: (u32, u32) = (960, 600);
/// The x coordinate of the legend in pixels; the legend stands to the right of the chart.
const LEGEND_X: i32 = 770;

/// One line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// (x, y) of each point, in the order of the line. Points that are not finite are left out.
    pub points: Vec<(f64, f64)>,
}

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plane = Cartesian2d<Ticks, RangedCoordf64>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Plane>;

/// Draws a line chart with a mark at every point into a file. The y axis starts at 0 if the values reach
/// down to the lower half of such an axis.
///
/// # Errors
/// If the file cannot be written.
pub fn lines(
    path: impl AsRef<Path>,
    title: &str,
    x_label: &str,
    y_label: &str,
    series: &[Series],
) -> Result<()> {
    let points = || series.iter().flat_map(|s| s.points.iter().copied()).filter(finite);
    let scale = Scale::new(points().map(|p| p.0));
    let y = from_zero(span(points().map(|p| p.1)));
    let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
    let colours = colour::of(&names);
    let text = svg(title, |canvas| {
        let x = Ticks::new(scale.range.clone(), scale.ticks.clone());
        let mut chart = frame(canvas, title, x, y)?;
        mesh(&mut chart, x_label, y_label, &|place| scale.label(*place))?;
        for (one, colour) in series.iter().zip(&colours) {
            let finite = one.points.iter().copied().filter(finite);
            let points: Vec<_> = finite.map(|(x, y)| (scale.at(x), y)).collect();
            let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2));
            chart.draw_series(line)?;
            chart.draw_series(points.iter().map(|&p| Circle::new(p, 3, colour.filled())))?;
        }
        legend(canvas, &names, &colours)
    })?;
    output_file::write(path.as_ref(), text.as_bytes())
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

/// Creates a chart with a title and two axes.
fn frame<'b>(
    canvas: &Canvas<'b>,
    title: &str,
    x: Ticks,
    y: Range<f64>,
) -> DrawResult<Chart<'b, 'b>> {
    canvas.fill(&WHITE)?;
    let (left, _) = canvas.split_horizontally(LEGEND_X);
    let mut builder = ChartBuilder::on(&left);
    builder.caption(title, ("sans-serif", 24)).margin(16);
    builder.x_label_area_size(52).y_label_area_size(76);
    Ok(builder.build_cartesian_2d(x, y)?)
}

/// Draws the axes, their labels and the lines at their ticks.
fn mesh(
    chart: &mut Chart<'_, '_>,
    x_label: &str,
    y_label: &str,
    x_tick: &dyn Fn(&f64) -> String,
) -> DrawResult<()> {
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(x_label).y_desc(y_label).max_light_lines(1).light_line_style(TRANSPARENT);
    mesh.x_label_formatter(&x_tick).y_label_formatter(&|v| tick(*v));
    Ok(mesh.label_style(("sans-serif", 16)).axis_desc_style(("sans-serif", 18)).draw()?)
}

/// Draws a coloured rectangle and the name of each series, one below the other.
fn legend(canvas: &Canvas<'_>, names: &[&str], colours: &[RGBColor]) -> DrawResult<()> {
    for ((name, colour), y) in names.iter().zip(colours).zip((64..).step_by(26)) {
        let swatch = [(LEGEND_X, y), (LEGEND_X + 18, y + 8)];
        canvas.draw(&Rectangle::new(swatch, colour.filled()))?;
        canvas.draw(&Text::new(*name, (LEGEND_X + 26, y - 4), ("sans-serif", 16)))?;
    }
    Ok(())
}

fn finite(point: &(f64, f64)) -> bool {
    point.0.is_finite() && point.1.is_finite()
}

/// Adds a margin above the range, and extends it down to 0 if at most half of the axis is empty then.
fn from_zero(range: Range<f64>) -> Range<f64> {
    let margin = (range.end - range.start) * 0.08;
    let near = range.start <= range.end - range.start;
    let low = match range.start {
        start if start >= 0.0 && near => 0.0,
        // A margin must not reach below 0, where no rate or time is.
        start if start >= 0.0 => (start - margin).max(0.0),
        start => start - margin,
    };
    low..range.end + margin
}
