//! Charts of measurements as SVG files.
//!
//! The viewer lays out the text, so no font is needed here, and the same numbers give the same file.

mod axis;
mod colour;

use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::output_file;
use avsg::{Error, Result};
use axis::{Scale, Ticks, span};

/// Width and height of a chart in pixels.
const SIZE: (u32, u32) = (960, 560);
/// The left edge of the titles, and their baselines' distance from the top, in pixels.
const TITLES: (i32, i32) = (24, 18);
/// The height of the area of the titles in pixels.
const TITLE_HEIGHT: u32 = 76;
/// The x coordinate of the legend in pixels; the legend stands to the right of the chart.
const LEGEND_X: i32 = 770;
/// The colours of the axes, of the second title and of the lines at the ticks.
const GREY: RGBColor = RGBColor(90, 90, 90);
const LIGHT: RGBColor = RGBColor(222, 222, 222);
/// The radius of a mark in pixels.
const RADIUS: i32 = 5;
/// The distance of marks that stand side by side in pixels.
const BESIDE: i32 = 13;
/// The width and the height of the value of a mark in pixels.
const VALUE: (i32, i32) = (38, 16);

/// The text of a chart.
pub struct Labels<'a> {
    /// What the chart shows.
    pub title: &'a str,
    /// What it was measured on.
    pub subject: &'a str,
    /// The horizontal axis, with its unit.
    pub x: &'a str,
    /// The vertical axis, with its unit.
    pub y: &'a str,
}

/// How the points of a series are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A line without marks, for values that are known everywhere. It gives the axis no ticks.
    Curve,
    /// A mark at each point, and a line that joins the marks.
    Joined,
    /// Marks alone, for values between which there are no others.
    Marks,
}

/// One series of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend, as in the tables.
    pub name: String,
    /// How its points are drawn.
    pub shape: Shape,
    /// (x, y) of each point, in the order of the line. Points that are not finite are left out.
    pub points: Vec<(f64, f64)>,
}

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ticks, Ticks>>;
type DrawResult<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Draws a chart into a file, or `no data` if no point is finite. The y axis starts at 0 if the values
/// reach down to the lower half of such an axis. Marks show their values if one series alone has marks
/// without a line.
///
/// # Errors
/// If the file cannot be written.
pub fn chart(path: impl AsRef<Path>, labels: &Labels<'_>, series: &[Series]) -> Result<()> {
    let mut text = String::new();
    {
        let canvas = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        let drawn = draw(&canvas, labels, series).and_then(|()| Ok(canvas.present()?));
        drawn.map_err(|e| {
            Error::invalid("chart", labels.title, e.to_string(), "check the numbers of the chart")
        })?;
    }
    output_file::write(path.as_ref(), text.as_bytes())
}

fn draw(canvas: &Canvas<'_>, labels: &Labels<'_>, series: &[Series]) -> DrawResult<()> {
    canvas.fill(&WHITE)?;
    let (left, top) = TITLES;
    canvas.draw(&Text::new(labels.title, (left, top), ("sans-serif", 22)))?;
    let subject = ("sans-serif", 15).into_font().color(&GREY);
    canvas.draw(&Text::new(labels.subject, (left, top + 30), subject))?;

    let all = |one: &Series| one.points.iter().copied().filter(finite).collect::<Vec<_>>();
    let points: Vec<_> = series.iter().map(all).collect();
    let flat = || points.iter().flatten();
    let (_, below) = canvas.split_vertically(TITLE_HEIGHT);
    let (area, _) = below.split_horizontally(LEGEND_X);
    if flat().next().is_none() {
        let (width, height) = area.dim_in_pixel();
        let style = centred(20, &GREY);
        area.draw(&Text::new("no data", (width as i32 / 2, height as i32 / 2), style))?;
        return Ok(());
    }

    let marked = series.iter().zip(&points).filter(|(one, _)| one.shape != Shape::Curve);
    let marked = marked.flat_map(|(_, points)| points).map(|p| p.0);
    let scale = Scale::new(flat().map(|p| p.0), marked);
    let mut builder = ChartBuilder::on(&area);
    builder.margin_left(16).margin_bottom(10).x_label_area_size(56).y_label_area_size(72);
    let y = Ticks::round(from_zero(span(flat().map(|p| p.1))));
    let decimals = y.decimals;
    let x = Ticks::new(scale.range.clone(), scale.ticks.clone());
    let mut chart = builder.build_cartesian_2d(x, y)?;
    let (x_tick, y_tick) = (|at: &f64| scale.label(*at), |at: &f64| axis::tick(*at, decimals));
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(labels.x).y_desc(labels.y).disable_x_mesh();
    mesh.bold_line_style(LIGHT).light_line_style(TRANSPARENT).axis_style(GREY);
    mesh.x_label_formatter(&x_tick).y_label_formatter(&y_tick);
    mesh.label_style(("sans-serif", 15)).axis_desc_style(("sans-serif", 16)).draw()?;

    let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
    let colours = colour::of(&names);
    let sets = series.iter().filter(|one| one.shape == Shape::Marks).count() as i32;
    let curves = series.iter().zip(&points).filter(|(one, _)| one.shape == Shape::Curve);
    let curves: Vec<_> = curves.flat_map(|(_, points)| points).collect();
    let curve_at = |x: f64| {
        let before = curves.iter().filter(|point| point.0 <= x);
        before.map(|point| point.1).fold(f64::NEG_INFINITY, f64::max)
    };
    // Marks of several series at one place stand side by side.
    let mut aside = -BESIDE * (sets - 1) / 2;
    for ((one, points), colour) in series.iter().zip(&points).zip(&colours) {
        let places: Vec<_> = points.iter().map(|&(x, y)| (scale.at(x), y)).collect();
        let mark = |dx: i32| {
            let circle = move || Circle::new((dx, 0), RADIUS, colour.filled());
            places.iter().map(move |&place| EmptyElement::at(place) + circle())
        };
        match one.shape {
            Shape::Curve | Shape::Joined => {
                chart.draw_series(LineSeries::new(places.clone(), colour.stroke_width(2)))?;
            }
            Shape::Marks if sets == 1 => {
                let is_below = |at: usize| curve_at(points[at].0) > points[at].1;
                values(&mut chart, &places, is_below, colour)?;
            }
            Shape::Marks => (),
        }
        match one.shape {
            Shape::Curve => (),
            Shape::Joined => drop(chart.draw_series(mark(0))?),
            Shape::Marks => {
                chart.draw_series(mark(aside))?;
                aside += BESIDE;
            }
        }
    }
    legend(canvas, series, &colours)
}

/// Writes the value of each point, as far as it has room beside that of the last point: to the lower right
/// of a point that is below a curve, or else to its upper left.
fn values(
    chart: &mut Chart<'_, '_>,
    places: &[(f64, f64)],
    is_below: impl Fn(usize) -> bool,
    colour: &RGBColor,
) -> DrawResult<()> {
    let (width, height) = VALUE;
    let mut last = None;
    for (index, &place) in places.iter().enumerate() {
        let (x, _) = chart.backend_coord(&place);
        if last.is_none_or(|last| x - last >= VALUE.0) {
            let side = if is_below(index) { 1 } else { -1 };
            let (x_centre, y_centre) = (side * (width / 2 - 3), side * (8 + height / 2));
            let (left, top) = (x_centre - width / 2, y_centre - height / 2);
            // What is below the text must not cross it.
            let free = Rectangle::new([(left, top), (left + width, top + height)], WHITE.filled());
            let text = format!("{:.2}", place.1);
            let text = Text::new(text, (x_centre, y_centre), centred(15, colour));
            chart.plotting_area().draw(&(EmptyElement::at(place) + free + text))?;
            last = Some(x);
        }
    }
    Ok(())
}

fn centred(size: i32, colour: &RGBColor) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(colour).pos(Pos::new(HPos::Center, VPos::Center))
}

/// Draws a line or a mark and the name of each series, one below the other.
fn legend(canvas: &Canvas<'_>, series: &[Series], colours: &[RGBColor]) -> DrawResult<()> {
    let top = TITLE_HEIGHT as i32 + 16;
    for ((one, colour), y) in series.iter().zip(colours).zip((top..).step_by(26)) {
        if one.shape != Shape::Marks {
            let line = vec![(LEGEND_X, y), (LEGEND_X + 22, y)];
            canvas.draw(&PathElement::new(line, colour.stroke_width(2)))?;
        }
        if one.shape != Shape::Curve {
            canvas.draw(&Circle::new((LEGEND_X + 11, y), RADIUS, colour.filled()))?;
        }
        let beside = Pos::new(HPos::Left, VPos::Center);
        let style = ("sans-serif", 16).into_font().color(&BLACK).pos(beside);
        canvas.draw(&Text::new(one.name.clone(), (LEGEND_X + 30, y), style))?;
    }
    Ok(())
}

fn finite(point: &(f64, f64)) -> bool {
    point.0.is_finite() && point.1.is_finite()
}

/// Adds a margin above the range, and extends it down to 0 if at most half of the axis is empty then.
fn from_zero(range: Range<f64>) -> Range<f64> {
    let margin = (range.end - range.start) * 0.1;
    let near = range.start <= range.end - range.start;
    let low = match range.start {
        start if start >= 0.0 && near => 0.0,
        // A margin must not reach below 0, where no rate or time is.
        start if start >= 0.0 => (start - margin).max(0.0),
        start => start - margin,
    };
    low..range.end + margin
}
