//! Tests of what all subcommands have in common: forms of output, help, manual pages, and the traces
//! that have little to count.

use std::fs;
use std::path::Path;
use std::process::Command;

use avsg_cli::trace::MAX_ID;
use serde_json::Value;

use crate::support::{command, errors, file, folder, has, json, npy, text};

/// Returns what a command shows on a terminal of 80 columns.
fn on_80_columns(line: &str) -> String {
    let output = command(line).env("COLUMNS", "80").output().expect("the program starts");
    assert!(output.status.success(), "{line}: {}", errors(&output));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The first line is the answer, and text, but no table, fits the terminal. Names of files are words.
#[test]
fn answers_come_first_and_sentences_fit_the_terminal() {
    let out = file("showing").display().to_string();
    for (line, answer) in [
        ("replay SHORT --slots 256 --steps 5", " rows right, 0 wrong: "),
        ("compare SHORT --steps 5", "take "),
        ("size SHORT --steps 5", "take S = "),
        ("synth --k 16 --steps 4 --context 64 --out OUT.npz", "4 steps of"),
        ("info", "It takes "),
        ("info --device ascend-sim --spread 2", "It takes "),
        ("emit --plan", "No file was written"),
        ("opp --out OUT", " files were written to "),
        ("bench match SHORT --slots 256 --steps 9", "One token matches in "),
        ("bench transfer --k 64 --rows-in-pool 4096 --repeats 2 --cores 1", "Rows of 1152 bytes "),
        ("bench step SHORT --layers 2 --slots 256 --row-bytes 64 --steps 4", "A step "),
    ] {
        let line =
            line.replace("SHORT", "../tests/data/llama-deepseek32-k64.npz").replace("OUT", &out);
        // The folder of the tests may have any length.
        let shown = on_80_columns(&line).replace(&out, "OUT");
        assert!(shown.lines().take(2).any(|first| first.contains(answer)), "{line}: {shown}");
        let lines = shown.lines().filter(|line| line.starts_with("| ")).count();
        assert!(lines <= 12 || !line.starts_with("bench"), "{shown}");
        for shown in shown.lines().filter(|line| !line.starts_with('|')) {
            let whole = shown.trim_start().split(' ').count() == 1 || shown.starts_with(' ');
            assert!(shown.chars().count() <= 80 || whole, "{line}: {shown}");
        }
        let help = line.split(' ').take(if line.starts_with("bench") { 2 } else { 1 });
        let help = on_80_columns(&format!("{} --help", help.collect::<Vec<_>>().join(" ")));
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{line}: {help}");
    }
}

#[test]
fn every_subcommand_has_a_manual_page_and_a_completion() {
    let dir = folder("man");
    text(&format!("man {}", dir.display()));
    for name in ["avsg", "avsg-replay", "avsg-bench", "avsg-bench-match", "avsg-man"] {
        let page = fs::read_to_string(dir.join(format!("{name}.1"))).unwrap();
        has(&page, &[&format!(".TH {name}")]);
    }
    has(&fs::read_to_string(dir.join("avsg-replay.1")).unwrap(), &["\\-\\-json", "TRACE"]);
    for shell in ["bash", "zsh", "fish"] {
        has(&text(&format!("completions {shell}")), &["transfer"]);
    }
}

#[test]
fn the_version_names_the_commit() {
    let version = text("--version");
    let (start, commit) = version.trim().split_once(env!("CARGO_PKG_VERSION")).unwrap();
    assert_eq!(start, "avsg ");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let head = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root).output();
    // An archive of the sources has no commit.
    let Some(head) = head.ok().filter(|output| output.status.success()) else { return };
    let commit = commit.trim_start_matches(" (").trim_end_matches(')');
    assert!(commit.len() >= 7 && head.stdout.starts_with(commit.as_bytes()), "{version}");
}

#[test]
fn ids_near_the_limit_need_a_sparse_pool_only() {
    let row = |step: i32| (0..64).map(move |i| MAX_ID - 97 * i - step);
    let path = npy("high.npy", &[3, 64], &[0, 0, 1].into_iter().flat_map(row).collect::<Vec<_>>());
    for page in ["0", "16"] {
        let report = json(&format!("replay {path} --page {page}"));
        assert_eq!((&report["pages"], &report["wrong_rows"]), (&"sparse".into(), &0.into()));
        assert_eq!((&report["verified_rows"], &report["misses"]), (&192.into(), &128.into()));
        assert_eq!(report["memory"]["host_rows_used"], 128);
    }
    // A trace that uses most of its rows has the pages that copy fastest.
    assert_ne!(json("replay SAMPLE --steps 2")["pages"], "sparse");
}

/// In a trace of one step everything is before the second.
#[test]
fn nothing_to_count_is_no_percentage() {
    let padding = npy("padding.npy", &[3, 16], &[-1; 3 * 16]);
    let once = npy("once.npy", &[1, 16], &(0..16).collect::<Vec<i32>>());
    for (path, with_first) in [(&padding, Value::Null), (&once, 0.0.into())] {
        let line = format!("replay {path} --slots 64");
        let report = json(&line);
        let rates = (&report["hit_rate"], &report["hit_rate_with_first"]);
        assert_eq!(rates, (&Value::Null, &with_first));
        assert!(!text(&line).contains("of hits"));
        let line = format!("compare {path} --slots 64");
        assert!(json(&line)["policies"][0]["at"][0]["hit_rate"].is_null());
        let model = "--tpot-ms 50 --step-ms 40 --link-gbs 50";
        let size = format!("size {path} --hit-rate 95 {model}");
        let report = json(&size);
        for name in ["hit_rate", "copies"] {
            assert_eq!(report["points"][0][name], Value::Null, "{path}");
        }
        for name in ["recommended", "ceiling", "no_buffer"] {
            assert_eq!(report[name], Value::Null, "{path}");
        }
        for line in [line, size] {
            let shown = text(&line);
            has(&shown, &["No step after the first selects an id"]);
            let is_number = ["0.00", "NaN"].iter().any(|number| shown.contains(number));
            assert!(!is_number && !shown.starts_with("take "), "{shown}");
        }
    }
}

#[test]
fn defaults_are_sizes_and_rules_that_exist_and_info_sizes_for_the_device_that_is_named() {
    let path = npy("9000.npy", &[2, 9000], &(0..18_000).map(|at| at % 9000).collect::<Vec<i32>>());
    assert_eq!(json(&format!("replay {path}"))["geometry"]["slots"], 32768);
    assert_eq!(json("info --slots 4096")["geometry"]["lifetime"], "learned");
    assert_eq!(json("info --slots 2048")["geometry"]["lifetime"], "constant:127");

    let report = json("info --device ascend-sim --spread 2");
    let device = &report["device"];
    assert_eq!((&device["name"], &device["vector_cores"]), (&"ascend-sim".into(), &40.into()));
    assert!(device["free_bytes"].as_u64().unwrap() > 1 << 30);
    assert!(device["unified_buffer_bytes"].as_u64().unwrap() < 188_416);
    assert!(report["fits_here"].is_boolean() && report["bytes"]["working_columns"].is_null());
    has(&text("info --device ascend --spread 2"), &["device    ascend: "]);
}
