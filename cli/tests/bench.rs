//! Tests of the program's measuring subcommands on small settings. Times are only checked to be
//! positive.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn avsg(line: &str) -> Output {
    let words = line.split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_avsg")).args(words).output().expect("the binary starts")
}

/// Runs a command with `--json -` and returns the JSON, which must be all of standard output.
fn json(line: &str) -> Value {
    let output = avsg(&format!("{line} --json -"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {errors}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Checks that a command exits with status 2 and one line on standard error that contains `names`.
fn refused(line: &str, names: &[&str]) {
    let output = avsg(line);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
    let messages: Vec<&str> = errors.lines().filter(|l| !l.starts_with("skipped: ")).collect();
    assert_eq!(messages.len(), 1, "{line}: {errors}");
    assert!(messages[0].starts_with("avsg: ") && !messages[0].contains("panicked"), "{errors}");
    names.iter().for_each(|name| assert!(messages[0].contains(name), "{line}: {errors}"));
}

/// Creates an empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli_bench_{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn charts(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let svg = names.filter(|path| path.extension().is_some_and(|e| e == "svg"));
    svg.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

fn positive(row: &Value, fields: &[&str]) {
    for field in fields {
        assert!(row[field].as_f64().is_some_and(|v| v > 0.0), "{field} of {row}");
    }
}

const TIMES: [&str; 8] = [
    "median_us",
    "trimmed_mean_us",
    "mean_us",
    "emu_us",
    "scalar_us",
    "dual_pointer_us",
    "hashmap_lru_us",
    "lru_crate_us",
];

#[test]
fn match_reads_the_trace_that_synth_writes() {
    let dir = folder("synth");
    let trace = dir.join("t.npz");
    let trace = trace.display();
    let line =
        format!("synth --gamma 0.7 --mu 0.5 --k 128 --steps 60 --context 2048 --out {trace}");
    let parameters = json(&line);
    assert_eq!((parameters["k"].as_u64(), parameters["steps"].as_u64()), (Some(128), Some(60)));

    let plots = dir.join("plots");
    let report = json(&format!(
        "bench match {trace} --k 64,128,256 --slots 64,256 --steps 30 --plot {}",
        plots.display()
    ));
    let rows = report["rows"].as_array().unwrap();
    // K = 128 exceeds S = 64, and K = 256 exceeds the trace's K.
    assert_eq!(rows.len(), 6);
    for row in rows {
        positive(row, &TIMES);
        let rate = row["hit_rate"].as_f64().unwrap();
        assert!((20.0..100.0).contains(&rate), "{row}");
        assert_eq!(row["steps"], 30);
        assert!(row["machine"].is_string() && row["k"].is_u64() && row["slots"].is_u64());
        assert!(row["table"] == "paper" || row["table"] == "wide");
    }
    assert!(report["machine"]["cores"].as_u64() > Some(0));
    assert_eq!(charts(&plots).len(), 4);
}

#[test]
fn match_on_the_default_workload_prints_a_table() {
    let output = avsg("bench match --k 256 --slots 1024 --table wide --machine emu --steps 3");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("dual pointer"), "{text}");
    assert!(text.contains("x)") && text.contains("emu"), "{text}");
}

#[test]
fn transfer_reports_throughput_and_strategies() {
    let plots = folder("transfer");
    let report = json(&format!(
        "bench transfer --k 64 --rows-in-pool 4096 --row-bytes 1152,656 --requests 1,8 \
         --reuse 0,75 --repeats 2 --cores 2 --plot {}",
        plots.display()
    ));
    let throughput = report["throughput"].as_array().unwrap();
    assert_eq!(throughput.len(), 2);
    for row in throughput {
        positive(row, &["engine_gbs", "memcpy_gbs", "best_loop_gbs", "percent_of_best"]);
        assert_eq!(row["rows"], 512);
    }
    let rows = report["strategies"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    for row in rows {
        let measured = row["measured_us"].as_array().unwrap();
        assert!(measured.iter().all(|v| v.as_f64().is_some_and(|v| v > 0.0)), "{row}");
    }
    assert_eq!(charts(&plots).len(), 4);
}

#[test]
fn info_computes_the_sizes_by_their_formulas() {
    let report = json("info --k 2048 --slots 8192 --layers 78 --requests 2 --context 65536");
    let bytes = &report["bytes"];
    assert_eq!(bytes["table"].as_u64(), Some(64 + 4 * 8192 + 8192 + 64 + 4 * 8192 * 4));
    assert_eq!(bytes["slots_per_request"].as_u64(), Some(78 * 8192 * 1152));
    assert_eq!(bytes["slots"].as_u64(), Some(2 * 78 * 8192 * 1152));
    let pool = bytes["host_pool_per_request"].as_u64().unwrap();
    assert!((78 * 65536 * 1152..78 * 65536 * 1160).contains(&pool), "{pool}");
    assert!(report["memory"]["pages_of_trial_pool"].is_string());
    assert!(!report["cpu"]["machines"].as_array().unwrap().is_empty());

    let two = json("info --segments 1024,128 --spread 2 --indexers 21 --page 128 --context 100");
    assert_eq!(
        (&two["geometry"]["retries"], &two["geometry"]["context"]),
        (&7.into(), &128.into())
    );
    let table = two["bytes"]["table"].as_u64().unwrap();
    assert_eq!(two["bytes"]["tables_per_request"].as_u64(), Some(21 * table));
    let output = avsg("info");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Nothing of this was allocated") && text.contains("736"), "{text}");
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    refused("synth --gamma 1.5 --out /nonexistent/x.npz", &["gamma", "1.5"]);
    refused("synth --k 0 --out /nonexistent/x.npz", &["k is 0"]);
    refused("synth --steps 2 --k 16 --out /nonexistent/x.npz", &["/nonexistent"]);
    refused("bench match /nonexistent.npz", &["/nonexistent.npz"]);
    refused("bench match --steps 0", &["--steps is 0"]);
    refused("bench match --steps 1 --k 64 --slots 100", &["100", "power of two"]);
    refused("bench match --steps 1 --k 64 --slots 256 --spread 3", &["spread is 3"]);
    refused("bench match --steps 1 --k 64 --slots 256 --lifetime constant:x", &["constant:x"]);
    refused("bench match --steps 1 --k 4096 --slots 8192", &["4096"]);
    let other = if cfg!(target_arch = "aarch64") { "avx512" } else { "neon" };
    let line = format!("bench match --steps 1 --k 64 --slots 256 --machine {other}");
    refused(&line, &[other]);
    refused("bench transfer --reuse 100", &["--reuse is 100"]);
    refused("bench transfer --row-bytes 0", &["--row-bytes is 0"]);
    refused("bench transfer --requests 0", &["--requests is 0"]);
    refused("bench transfer --rows-in-pool 4000000", &["memory", "at most"]);
    refused("bench transfer --k 64 --rows-in-pool 4096 --cores 0", &["cores is 0"]);
    refused("info --k 9000", &["K is 9000"]);
    refused("info --requests 0", &["--requests is 0"]);
    refused("info --layers 0", &["layers is 0"]);
    refused("info --row-bytes 0", &["segment bytes is 0"]);
    refused("info --context 18446744073709551615", &["address space"]);
}

#[test]
fn match_races_whole_batches_against_the_host_lru() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/nomicon-4k-k256.npz");
    let line = format!(
        "bench match {} --requests 3 --tokens 4 --k 256,512 --slots 512,1024 --steps 20",
        trace.display()
    );
    let report = json(&format!("{line} --threads 2"));
    assert_eq!((report["requests"].as_u64(), report["threads"].as_u64()), (Some(3), Some(2)));
    let rows = report["rows"].as_array().unwrap();
    // K = 512 exceeds the trace's K. S = 512 has no room for the 1024 ids of four tokens.
    assert_eq!(rows.len(), 2 + 3);
    for row in rows {
        positive(row, &["median_us", "first_decile_us", "misses_per_step", "median_ratio"]);
    }
    let (lru, own) = (&rows[2], &rows[3]);
    assert!(lru["planner"] == "lru_resident_compact" && lru["buffers"] == 12);
    let misses = |row: &Value| row["misses_per_step"].as_f64().unwrap();
    assert!((misses(own) / misses(lru) - 1.0).abs() < 0.05, "{lru} {own}");
    assert!(rows[4]["buffers"] == 3 && misses(&rows[4]) < misses(lru));
    let text = String::from_utf8(avsg(&line).stdout).unwrap();
    assert!(text.contains("per request") && text.contains("B = 3, N_q = 4"), "{text}");
    refused("bench match --requests 0", &["--requests is 0"]);
    refused("bench match --requests 8 --tokens 9", &["--tokens is 9"]);
    refused("bench match --requests 8 --threads 65", &["--threads is 65"]);
    refused("bench match --requests 8 --steps 1000000", &["choose fewer --steps"]);
    refused("bench match --requests 1 --steps 1 --k 4096 --slots 8192", &["4096"]);
    refused("bench match --requests 8 --plot /tmp", &["--plot", "leave it out"]);
}

#[test]
fn busy_compares_steps_with_and_without_spinning_processes() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/nomicon-4k-k256.npz");
    let line = format!("bench busy {} --slots 512 --steps 8", trace.display());
    let report = json(&line);
    assert_eq!((report["requests"].as_u64(), report["k"].as_u64()), (Some(8), Some(256)));
    for kind in ["undisturbed", "disturbed"] {
        positive(&report[kind], &["steps", "first_decile_us", "median_us", "mean_us", "worst_us"]);
    }
    positive(&report, &["median_ratio", "misses_per_step", "goal"]);
    refused("bench busy --requests 0", &["--requests is 0"]);
    refused("bench busy --steps 0", &["--steps is 0"]);
    refused("bench busy --slots 1000 --steps 1", &["1000"]);
}
