//! Tests of `avsg paper` as a user runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use avsg_testkit::tier::thorough;
use serde_json::Value;

fn avsg(line: &str) -> Output {
    let words = line.split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_avsg")).args(words).output().expect("the binary starts")
}

fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli_paper_{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn figures(table: &Value) -> impl Iterator<Item = &Value> {
    table["rows"].as_array().unwrap().iter().flat_map(|row| row["figures"].as_array().unwrap())
}

#[test]
fn every_form_has_every_figure_with_its_difference() {
    let folder = folder("forms");
    let file = |name: &str| folder.join(name);
    let [markdown, html, json] = ["p.md", "p.html", "p.json"].map(file);
    let output = avsg(&format!(
        "paper --sections transfer --markdown {} --html {} --json {}",
        markdown.display(),
        html.display(),
        json.display()
    ));
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let report: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
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
    assert!(markdown.contains("`avsg paper --sections transfer` wrote it"), "{markdown}");
    assert!(html.matches("<svg").count() == 3 && html.ends_with("</html>\n"), "{html}");
    assert!(!html.contains("<script") && !html.contains("href="), "the page needs another file");
    for text in [markdown, html] {
        assert!(text.contains("What cannot be reproduced here") && text.contains("not public"));
    }
}

#[test]
fn a_recorded_trace_stands_beside_the_synthetic_requests() {
    if !thorough() {
        println!("default tier: the whole report is left to docs/figures.py and the thorough tier");
        return;
    }
    let output = avsg("paper ../tests/data/nomicon-4k-k256.npz --json -");
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
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
        let output = avsg(line);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
        assert!(errors.starts_with("avsg: ") && errors.lines().count() == 1, "{line}: {errors}");
        names.iter().for_each(|name| assert!(errors.contains(name), "{line}: {errors}"));
    }
}
