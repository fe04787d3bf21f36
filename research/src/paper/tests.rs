//! Tests of `avsg-research paper`.

use super::{compute, text};
use crate::Command;
use crate::tests::{command, left_out, refused};

#[test]
fn the_page_has_the_figures_of_its_sections() {
    if left_out() {
        return;
    }
    let Command::Paper(options) = command("paper --sections transfer") else { unreachable!() };
    let sections = compute(&options).unwrap();
    let rows = |table: usize| sections[0].tables[table].rows.iter().map(|row| row.figures.len());
    assert_eq!((rows(0).sum::<usize>(), rows(1).sum::<usize>()), (24 * 3, 24 * 2));
    let markdown = text(&options, &sections);
    assert!(markdown.contains("| 1 | 25 | 2.7 | 2.7 | +0.4 % |"), "{markdown}");
    assert!(markdown.contains("`avsg-research paper --sections transfer` wrote"), "{markdown}");
    for part in ["from a model, not measured", "not public"] {
        assert!(markdown.contains(part), "{part} is not in {markdown}");
    }
}

#[test]
fn a_recorded_trace_stands_beside_the_synthetic_requests() {
    if left_out() {
        return;
    }
    let trace = "paper ../tests/data/nomicon-4k-k256.npz";
    let Command::Paper(options) = command(trace) else { unreachable!() };
    let sections = compute(&options).unwrap();
    assert_eq!((sections.len(), sections[1].tables.len()), (5, 6));
    // The paper's own adjacent-step reuse is what the synthetic requests are made for.
    let adjacent = &sections[1].tables[0].rows[0].figures[0];
    assert!((adjacent.here - adjacent.paper.unwrap()).abs() < 0.05, "{adjacent:?}");
    assert!(sections[0].tables[0].rms(0) < 0.6, "{sections:?}");
    let here = |table: usize| {
        let rows = sections[1].tables[table].rows.iter();
        rows.map(|row| row.figures[0].here).collect::<Vec<f64>>()
    };
    let [rates, ablation, start] = [3, 4, 5].map(here);
    assert!(rates[0] < rates[1] && rates[1] < rates[2] && rates[2] < 100.0, "{rates:?}");
    assert_eq!((ablation.len(), ablation[3]), (6, rates[2]), "L = 8 is in both tables");
    assert!(ablation[0] < ablation[3], "{ablation:?}");
    assert!(start[0] == 0.0 && start.is_sorted(), "{start:?}");
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    refused("paper /nonexistent.npz", &["/nonexistent.npz"]);
}
