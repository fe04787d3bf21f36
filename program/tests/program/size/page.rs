//! The page of `avsg size`: its words, and its copy in docs/sizing.md.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{command, has, json, npy, text};

/// Returns the points of a report, one for each S.
pub fn points(report: &Value) -> &[Value] {
    report["points"].as_array().expect("points")
}

/// Returns the words of a page without the lines of tables and without sizes, which depend on the CPUs of
/// the machine where working columns are among them.
pub fn words(text: &str) -> String {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c == '|').collect();
    let is_size = |pair: &[&str]| pair[1].starts_with("MB") || pair[1].starts_with("GB");
    let sizes: Vec<bool> = words.windows(2).map(is_size).collect();
    let kept = words.iter().zip(sizes.into_iter().chain([false]));
    let kept =
        kept.filter(|(word, is_size)| !word.is_empty() && !word.starts_with("---") && !is_size);
    kept.map(|(word, _)| *word).collect::<Vec<_>>().join(" ")
}

/// Returns what a command shows on a terminal of 80 columns in a folder.
fn shown_in(folder: &Path, line: &str) -> String {
    let output = command(line).env("COLUMNS", "80").current_dir(folder).output();
    String::from_utf8(output.expect("the program starts").stdout).expect("UTF-8")
}

#[test]
fn the_page_about_sizing_shows_what_the_command_prints() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let page = words(&fs::read_to_string(root.join("docs/sizing.md")).unwrap());
    let timed = "--requests 16 --link-gbs 30 --match-us 38.2";
    let disk = format!("{timed} --link disk:70000,1.5,100,512");
    let parts =
        [("", "take", ""), (timed, "take", "why"), (timed, "model  ", ""), (&disk, "disk  ", "")];
    for (options, from, to) in parts {
        let line = format!("size tests/data/nomicon-4k-k256.npz {options}");
        let shown = shown_in(root, &line);
        let end = if to.is_empty() { shown.len() } else { shown.find(to).expect("a label") };
        has(&page, &[&words(&shown[shown.find(from).expect("a label")..end])]);
    }
}

#[test]
fn a_page_says_what_the_axes_were_taken_for_and_how_to_say_otherwise() {
    let ids: Vec<i64> = (0..6 * 2 * 64).map(|at| at % 200).collect();
    let line = format!("size {}", npy("two.npy", &[6, 2, 64], &ids));
    let taken = |options: &str| {
        json(&format!("{line} {options}"))["taken"].as_str().expect("text").to_owned()
    };
    has(&words(&text(&line)), &[&taken("")]);
    let (request, layer) = ("one request (--request N or all)", "one layer (--layer N or all)");
    // Nothing but an option tells whether the two rows of a step are one request's.
    let warning =
        "warning   the 2 rows of a step are taken for tokens of one request (N_q = 2): --tokens 2";
    for command in ["size", "compare", "replay"] {
        let line = line.replacen("size", command, 1);
        assert!(text(&line).starts_with(warning), "{line}");
        for options in ["--tokens 2", "--request 0", "--mtp0"] {
            assert!(!text(&format!("{line} {options}")).contains("warning"), "{line} {options}");
        }
    }
    assert!(!text("size LLAMA").contains("warning"), "`stable` counts tokens of one request");
    for (options, request, layer, tokens) in [
        ("", request, layer, "2 = tokens of one request in a step (N_q)"),
        ("--mtp0", request, layer, "each token as a step (--mtp0)"),
        ("--layer 1", request, "layer 1", "one token per step"),
        ("--layer all", request, "all 2 layers", "one token per step"),
        ("--request all", "all 2 requests", layer, "one token per step"),
        ("--request 0", "request 0", layer, "one token per step"),
    ] {
        assert_eq!(taken(options), format!("{request}, {layer}, K 64, {tokens}"));
    }
}
