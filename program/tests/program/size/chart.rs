//! Tests of the charts of `size` and `compare`.

use std::fs;

use crate::support::{folder, has, text};

/// Returns the value of an attribute of an SVG element.
fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
    let start = element.find(&format!(" {name}=\"")).expect("an attribute") + name.len() + 3;
    element[start..].split('"').next().expect("a value")
}

#[test]
fn a_chart_has_no_text_on_a_line_says_where_its_axis_begins_and_names_rules() {
    let charts = folder("chart-lines");
    for (command, name) in [("size SAMPLE --mtp0", "size"), ("compare SAMPLE", "compare")] {
        let shown = text(&format!("{command} --plot {}", charts.display()));
        let path = charts.join(format!("{name}-hit-rate.svg"));
        has(&shown, &[&format!("written   {}", path.display())]);
        let chart = fs::read_to_string(path).unwrap();
        has(&chart, &["(the axis begins at ", ">AVSG, learned<", "(logarithmic)"]);
        let number = |element: &str, name| attribute(element, name).parse::<f64>().unwrap();
        let mut lines = Vec::new();
        for line in chart.lines().filter(|line| line.starts_with("<polyline")) {
            let numbers = attribute(line, "points").split([' ', ',']);
            let numbers: Vec<f64> = numbers.map(|number| number.parse().unwrap()).collect();
            let points = numbers.as_chunks::<2>().0;
            lines.extend(points.windows(2).map(|ends| (ends[0], ends[1])));
        }
        for words in chart.lines().filter(|line| line.starts_with("<text")) {
            let (x, y, size) = (number(words, "x"), number(words, "y"), number(words, "font-size"));
            let letters = words.split(['>', '<']).nth(2).unwrap().chars().count();
            let width = 0.62 * size * letters as f64;
            let anchor = attribute(words, "text-anchor");
            let before = ["start", "middle", "end"].iter().position(|at| *at == anchor).unwrap();
            let left = x - width * before as f64 / 2.0;
            // Points of a line are nearer to each other than a letter is wide.
            for &([x0, y0], [x1, y1]) in &lines {
                let crosses = (0..=400).map(|n| f64::from(n) / 400.0).any(|t| {
                    let (px, py) = (x0 + t * (x1 - x0), y0 + t * (y1 - y0));
                    (left..left + width).contains(&px)
                        && (y - 0.8 * size..y + 0.2 * size).contains(&py)
                });
                assert!(!crosses, "{words} lies on {x0},{y0} to {x1},{y1}");
            }
        }
    }
}
