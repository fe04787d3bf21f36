//! Tests of the program's measuring subcommands on small settings. Times are only checked to be
//! positive.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{file, folder, json, refused, text};

fn charts(folder: &Path) -> usize {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.extension().is_some_and(|e| e == "svg")).count()
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
    let trace = file("match.npz");
    let trace = trace.display();
    let line =
        format!("synth --gamma 0.7 --mu 0.5 --k 128 --steps 60 --context 2048 --out {trace}");
    let parameters = json(&line);
    assert_eq!((&parameters["k"], &parameters["steps"]), (&128.into(), &60.into()));

    let plots = folder("match-plots");
    let report = json(&format!(
        "bench match {trace} --k 64,128,256 --slots 64,256 --steps 30 --plot {}",
        plots.display()
    ));
    let rows = report["rows"].as_array().unwrap();
    // K = 128 exceeds S = 64, and K = 256 exceeds the trace's K. The table wide has two rules.
    assert_eq!(rows.len(), 9);
    for row in rows {
        if row["lifetime"] == "learned" {
            positive(row, &["learn_us", "over_constant"]);
        } else {
            assert!(row["learn_us"].is_null() && row["over_constant"].is_null(), "{row}");
        }
        positive(row, &TIMES);
        let rate = row["hit_rate"].as_f64().unwrap();
        assert!((20.0..100.0).contains(&rate), "{row}");
        assert_eq!(row["steps"], 30);
        assert!(row["machine"].is_string() && row["k"].is_u64() && row["slots"].is_u64());
        assert!(row["table"] == "paper" || row["table"] == "wide");
    }
    assert!(report["machine"]["cores"].as_u64() > Some(0));
    assert_eq!(charts(&plots), 4);
}

#[test]
fn transfer_reports_throughput_and_strategies() {
    let plots = folder("transfer-plots");
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
    assert_eq!(charts(&plots), 4);
}

#[test]
fn layers_compares_lists_and_forks() {
    let line =
        "bench layers --layers 3 --k 16 --slots 64 --misses 4 --copies 1,3 --repeats 2 --cores 2";
    let report = json(line);
    let calls = report["calls"].as_array().unwrap();
    assert_eq!(calls.iter().map(|row| &row["call"]).collect::<Vec<_>>(), ["transfer", "append"]);
    assert_eq!(calls.iter().map(|row| &row["rows_per_layer"]).collect::<Vec<_>>(), [8, 2]);
    calls.iter().for_each(|row| positive(row, &["each_layer_us", "one_call_us", "ratio"]));
    let forks = report["forks"].as_array().unwrap();
    assert_eq!(forks.len(), 2);
    for (row, copies) in forks.iter().zip([1, 3]) {
        // A few ids of a full table may find no link.
        let rows = row["rows"].as_u64().unwrap();
        assert!(
            (3 * copies * 60..=3 * copies * 64).contains(&rows) && row["copies"] == copies,
            "{row}"
        );
        positive(row, &["fork_us", "fork_gbs", "memcpy_us", "memcpy_gbs", "percent_of_memcpy"]);
    }
    assert!(text(line).contains("% of memcpy"));
}

#[test]
fn info_computes_the_sizes_by_their_formulas() {
    let report = json("info --k 2048 --slots 8192 --layers 78 --requests 2 --context 65536");
    let bytes = &report["bytes"];
    assert_eq!(
        bytes["table"].as_u64(),
        Some(64 + 4 * 8192 + 8192 + 64 + 4 * 8192 * 4 + 4096 + 8192 / 2)
    );
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
    let shown = text("info");
    assert!(shown.contains("Nothing of this was allocated") && shown.contains("736"), "{shown}");
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    let other = if cfg!(target_arch = "aarch64") { "avx512" } else { "neon" };
    let small = "bench match --steps 1 --k 64 --slots 256";
    for (line, part) in [
        ("synth --gamma 1.5 --out /nonexistent/x.npz", "gamma is 1.5"),
        ("synth --steps 2 --k 16 --out /nonexistent/x.npz", "/nonexistent"),
        ("bench match /nonexistent.npz", "/nonexistent.npz"),
        ("bench match --steps 0", "--steps is 0"),
        ("bench match --steps 1 --k 64 --slots 100", "multiple of 64"),
        ("bench match --steps 1 --k 64 --slots 192 --table paper", "power of two"),
        (&format!("{small} --spread 3"), "spread is 3"),
        (&format!("{small} --lifetime constant:x"), "constant:x"),
        (&format!("{small} --machine {other}"), other),
        ("bench match --steps 1 --k 4096 --slots 8192", "4096"),
        ("bench match --requests 0", "--requests is 0"),
        ("bench match --requests 8 --tokens 17", "--tokens is 17"),
        ("bench match --requests 8 --threads 65", "--threads is 65"),
        ("bench match --requests 8 --steps 1000000", "choose fewer --steps"),
        ("bench match --requests 1 --steps 1 --k 4096 --slots 8192", "4096"),
        ("bench match --requests 8 --plot /tmp", "--plot is /tmp"),
        ("bench busy --requests 0", "--requests is 0"),
        ("bench busy --steps 0", "--steps is 0"),
        ("bench busy --slots 1000 --steps 1", "1000"),
        ("bench transfer --reuse 100", "--reuse is 100"),
        ("bench transfer --row-bytes 0", "--row-bytes is 0"),
        ("bench transfer --requests 0", "--requests is 0"),
        ("bench transfer --rows-in-pool 4000000", "at most 2000000000 bytes"),
        ("bench transfer --k 64 --rows-in-pool 4096 --cores 0", "cores is 0"),
        ("bench layers --misses 2000", "--misses is 2000"),
        ("bench layers --copies 0", "--copies is 0"),
        ("bench layers --slots 100", "100"),
        ("bench layers --layers 200 --slots 32768", "at most 8000000000 bytes"),
        ("info --k 9000", "K is 9000"),
        ("info --requests 0", "--requests is 0"),
        ("info --layers 0", "layers is 0"),
        ("info --row-bytes 0", "segment bytes is 0"),
        ("info --context 18446744073709551615", "address space"),
    ] {
        refused(line, &[part]);
    }
    // The least K is named, and not a larger S.
    for line in ["info --k 0", "synth --k 0 --out /nonexistent/x.npz"] {
        let message = refused(line, &["1..="]).to_lowercase();
        assert!(message.contains("k is 0") && !message.contains("raise s"), "{message}");
    }
}

#[test]
fn match_races_whole_batches_against_the_host_lru() {
    let line = "bench match SAMPLE --requests 3 --tokens 4 --k 256,512 --slots 512,1024 --steps 20 \
                --lifetime constant:127";
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
    let shown = text(line);
    assert!(shown.contains("per request") && shown.contains("B = 3, N_q = 4"), "{shown}");
}

#[test]
fn busy_compares_steps_with_and_without_spinning_processes() {
    let report = json("bench busy SAMPLE --slots 512 --steps 8");
    assert_eq!((report["requests"].as_u64(), report["k"].as_u64()), (Some(8), Some(256)));
    for kind in ["undisturbed", "disturbed"] {
        positive(&report[kind], &["steps", "first_decile_us", "median_us", "mean_us", "worst_us"]);
    }
    positive(&report, &["median_ratio", "misses_per_step", "goal"]);
}
