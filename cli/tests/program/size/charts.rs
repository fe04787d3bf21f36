//! The chart of `avsg size`.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::support::{LLAMA, command, folder, npy, text};

#[test]
fn a_chart_and_standard_input_work() {
    let charts = folder("stdin-chart");
    let mut program = command(&format!("size - --slots 256 --plot {}", charts.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let bytes = fs::read(LLAMA).unwrap();
    program.stdin.take().expect("a pipe").write_all(&bytes).unwrap();
    let output = program.wait_with_output().unwrap();
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success() && shown.contains("standard input: 48 steps"), "{shown}");
    let chart = fs::read_to_string(charts.join("size-hit-rate.svg")).unwrap();
    assert!(chart.contains("exact LRU") && chart.contains("AVSG"));
}

/// Returns the chart of a trace, and the (x, y) in pixels of the points of its first line.
fn chart(name: &str, options: &str) -> (String, Vec<(i32, i32)>) {
    let charts = folder(name);
    text(&format!("size {options} --plot {}", charts.display()));
    let chart = fs::read_to_string(charts.join("size-hit-rate.svg")).unwrap();
    let line = chart.split("stroke-width=\"2\" points=\"").nth(1).unwrap_or_default();
    let line = line.split('"').next().unwrap_or_default();
    let point = |point: &str| {
        let (x, y) = point.split_once(',').expect("a point");
        (x.parse().expect("pixels"), y.parse().expect("pixels"))
    };
    let points = line.split_whitespace().map(point).collect();
    (chart, points)
}

#[test]
fn a_chart_marks_the_measured_sizes_and_draws_a_line_through_no_others() {
    let (svg, lru) = chart("marks", "SAMPLE --mtp0 --slots 256,1024,16384");
    let line_of = |text: &str| svg.lines().position(|line| line.trim() == text);
    // The ticks are the measured sizes, in all their digits.
    for size in ["256", "1024", "16384"] {
        assert!(line_of(size).is_some(), "{size} is no tick: {svg}");
    }
    assert!(line_of("512").is_none() && !svg.contains("16.384k"), "{svg}");
    // Three marks and that of the legend; one line and that of the legend.
    assert_eq!(svg.matches("<circle").count(), 4);
    assert_eq!(svg.matches("stroke-width=\"2\"").count(), 2);
    // Exact LRU runs on flat to the last S, where the last mark is.
    let [.., before, last] = lru[..] else { panic!("{lru:?}") };
    assert!(before.1 == last.1 && before.0 < last.0, "{before:?} {last:?}");
    assert!(svg.contains(&format!("cx=\"{}\"", last.0)), "{last:?}");
}

#[test]
fn a_chart_without_points_says_so() {
    let once = npy("chart.npy", &[1, 2, 8], &(0..16).collect::<Vec<i64>>());
    let (svg, _) = chart("empty", &once);
    assert!(svg.contains("no data") && svg.contains("chart: 1 step, N_q 2, K 8"), "{svg}");
    assert!(!chart("full", "SAMPLE").0.contains("no data"));
}
