//! Tests of `avsg-research paper` as a user runs it.

use std::fs;

use serde_json::Value;

use crate::tests::{json, left_out, refused};

fn figures(table: &Value) -> impl Iterator<Item = &Value> {
    table["rows"].as_array().unwrap().iter().flat_map(|row| row["figures"].as_array().unwrap())
}

#[test]
fn every_form_has_every_figure_with_its_difference() {
    let folder = tempfile::tempdir().unwrap();
    let [markdown, html] = ["p.md", "p.html"].map(|name| folder.path().join(name));
    let report = json(&format!(
        "paper --sections transfer --markdown {} --html {}",
        markdown.display(),
        html.display()
    ));
    let tables = report["sections"][0]["tables"].as_array().unwrap();
    assert_eq!((figures(&tables[0]).count(), figures(&tables[1]).count()), (24 * 3, 24 * 2));
    for figure in figures(&tables[0]).chain(figures(&tables[1])) {
        let number = |name: &str| figure[name].as_f64().unwrap();
        let expected = 100.0 * (number("here") / number("paper") - 1.0);
        assert!((number("difference") - expected).abs() < 1e-9, "{figure}");
    }
    let (markdown, html) =
        (fs::read_to_string(markdown).unwrap(), fs::read_to_string(html).unwrap());
    assert!(markdown.contains("| 1 | 25 | 2.7 |") && markdown.contains("93.7"), "{markdown}");
    assert!(markdown.contains("from a model, not measured"), "{markdown}");
    assert!(markdown.contains("`avsg-research paper --sections transfer` wrote it"), "{markdown}");
    assert!(html.matches("<svg").count() == 3 && html.ends_with("</html>\n"), "{html}");
    assert!(!html.contains("<script") && !html.contains("href="), "the page needs another file");
    for text in [markdown, html] {
        assert!(text.contains("What cannot be reproduced here") && text.contains("not public"));
    }
}

#[test]
fn a_recorded_trace_stands_beside_the_synthetic_requests() {
    if left_out() {
        return;
    }
    let report = json("paper ../tests/data/nomicon-4k-k256.npz");
    let sections = report["sections"].as_array().unwrap();
    let names: Vec<_> = sections.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["reuse", "requests", "transfer", "matching", "serving"]);
    let tables = sections[1]["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 6);
    // The paper's own adjacent-step reuse is what the synthetic requests are made for.
    let adjacent = figures(&tables[0]).next().unwrap();
    assert!(adjacent["difference"].as_f64().unwrap().abs() < 0.05, "{adjacent}");
    let reuse = figures(&sections[0]["tables"][0]);
    let squares = reuse.map(|figure| figure["difference"].as_f64().unwrap().powi(2));
    assert!((squares.sum::<f64>() / 18.0).sqrt() < 0.6, "{}", sections[0]);
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    for (line, names) in [
        ("paper --seeds 0", ["--seeds is 0", "choose 5"]),
        ("paper --html - --json -", ["standard output", "name files"]),
        ("paper /nonexistent.npz", ["/nonexistent.npz", ""]),
        ("paper --sections transfer --html /nonexistent/x.html", ["/nonexistent/x.html", ""]),
    ] {
        refused(line, &names);
    }
}
