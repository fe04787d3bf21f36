//! The page of `avsg size`: its words, its width, and its copy in docs/sizing.md.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{json, npy, text};

/// Returns the words of a page without its frames and without sizes, which depend on the CPUs of the
/// machine where working columns are among them.
pub fn words(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || "─│┌┐└┘╞╡═".contains(c)).collect();
    let is_size = |pair: &[&str]| pair[1].starts_with("MB") || pair[1].starts_with("GB");
    let sizes: Vec<bool> = words.windows(2).map(is_size).collect();
    let kept = words.iter().zip(sizes.into_iter().chain([false]));
    let kept = kept.filter(|(word, is_size)| !word.is_empty() && !is_size);
    kept.map(|(word, _)| *word).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_page_about_sizing_shows_what_the_command_prints() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let sample = "tests/data/nomicon-4k-k256.npz";
    let timed = ["size", sample, "--requests", "16", "--link-gbs", "30", "--match-us", "38.2"];
    let page = words(&fs::read_to_string(format!("{root}/docs/sizing.md")).unwrap());
    for (args, from) in [(&["size", sample][..], "trace"), (&timed, "model")] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_avsg"));
        let program = program.args(args).env("COLUMNS", "80").current_dir(root);
        let output = program.output().expect("the program starts");
        let shown = String::from_utf8(output.stdout).expect("UTF-8");
        let shown = words(&shown[shown.find(from).expect("a label")..]);
        assert!(page.contains(&shown), "not in docs/sizing.md: {shown}");
    }
}

#[test]
fn a_page_says_what_the_axes_were_taken_for_and_how_to_say_otherwise() {
    let path = npy("two.npy", &[6, 2, 64], (0..6 * 2 * 64).map(|at| at % 200).collect());
    let taken = |args: &[&str]| {
        let report = json(&[&["size", &path][..], args].concat());
        report["taken"].as_str().expect("text").to_owned()
    };
    let plain = taken(&[]);
    assert!(plain.contains("2 = tokens of one request in a step (N_q)"), "{plain}");
    assert!(plain.contains("--layer all") && plain.contains("--request N"), "{plain}");
    assert!(words(&text(&["size", &path])).contains(&plain), "{plain}");
    assert_eq!(taken(&["--mtp0"]), "one request, one layer, K 64, each token as a step (--mtp0)");
    assert_eq!(taken(&["--layer", "1"]), "one request, layer 1, K 64, one token per step");
    assert_eq!(taken(&["--layer", "all"]), "one request, all 2 layers, K 64, one token per step");
    assert_eq!(taken(&["--request", "0"]), "request 0, one layer, K 64, one token per step");
}

#[test]
fn every_line_fits_80_columns() {
    let path = npy("narrow.npy", &[6, 3, 64], (0..6 * 3 * 64).map(|at| at % 500).collect());
    let folder = Path::new(&path).parent().expect("a folder");
    let model = ["--link-gbs", "50", "--step-ms", "12345", "--requests", "1234"];
    for args in [&[][..], &["--layer", "all"], &model, &[&["--layer", "all"][..], &model].concat()]
    {
        let mut program = Command::new(env!("CARGO_BIN_EXE_avsg"));
        program.args(["size", "narrow.npy"]).args(args).env("COLUMNS", "80").current_dir(folder);
        let shown = String::from_utf8(program.output().unwrap().stdout).expect("UTF-8");
        assert!(shown.contains("no buffer"), "{shown}");
        let wide = shown.lines().find(|line| line.chars().count() > 80);
        assert!(wide.is_none(), "{wide:?}");
    }
}
