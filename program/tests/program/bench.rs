//! Tests of the program's measuring subcommands on small settings. Times are only checked to be
//! positive.

use serde_json::Value;

use crate::support::{file, json, text};

fn positive(row: &Value, fields: &[&str]) {
    for field in fields {
        assert!(row[field].as_f64().is_some_and(|v| v > 0.0), "{field} of {row}");
    }
}

#[test]
fn match_times_the_operator_with_each_rule_beside_the_others() {
    let trace = file("match.npz");
    let trace = trace.display();
    text(&format!("synth --gamma 0.7 --mu 0.5 --k 128 --steps 60 --context 2048 --out {trace}"));
    let names = |options: &str| -> Vec<String> {
        let report = json(&format!("bench match {trace} --k 64 --steps 30 {options}"));
        assert_eq!((&report["k"], &report["steps"]), (&64.into(), &30.into()));
        assert_eq!(report["disturbance"]["samples"], 30);
        let rows = report["rows"].as_array().unwrap().iter();
        rows.map(|row| {
            positive(row, &["median_us", "first_decile_us", "ninth_decile_us"]);
            assert!(row["hit_rate"].as_f64().is_none_or(|rate| (20.0..100.0).contains(&rate)));
            assert_eq!(row["learn_us"].is_null(), row["what"] != "AVSG, learned", "{row}");
            row["what"].as_str().unwrap().to_owned()
        })
        .collect()
    };
    let others = ["exact LRU by a linked list", "the step before, by sort and merge"];
    let own = ["AVSG, learned", "AVSG, constant:127", "AVSG, learned, one lane at a time"];
    assert_eq!(names("--slots 256"), [&own[..], &others].concat());
    let own = ["AVSG, constant:8", "AVSG, constant:8, one lane at a time"];
    let paper = "--slots 64 --table paper --lifetime constant:8 --machine emu";
    assert_eq!(names(paper), [&own[..], &others].concat());
}

#[test]
fn transfer_reports_throughput() {
    let line =
        "bench transfer --k 64 --rows-in-pool 4096 --row-bytes 1152,656 --repeats 4 --cores 2";
    let report = json(line);
    let throughput = report["throughput"].as_array().unwrap();
    assert_eq!(throughput.len(), 2);
    for row in throughput {
        positive(row, &["engine_gbs", "memcpy_gbs", "best_loop_gbs", "percent_of_best"]);
        assert_eq!(row["rows"], 512);
    }
}

#[test]
fn info_computes_the_sizes_by_their_formulas() {
    let report = json("info --k 2048 --slots 8192 --layers 78 --requests 2 --context 65536");
    let bytes = &report["bytes"];
    let table = 64 + 4 * 8192 + 8192 + 64 + 4 * 8192 * 4 + 4096 + 8192 / 2;
    assert_eq!(bytes["table"].as_u64(), Some(table));
    assert_eq!(bytes["slots"].as_u64(), Some(2 * 78 * 8192 * 1152));
    let pool = bytes["host_pool"].as_u64().unwrap();
    assert!((2 * 78 * 65536 * 1152..2 * 78 * 65536 * 1160).contains(&pool), "{pool}");
    assert!(report["available_bytes"].is_u64());
    assert!(!report["cpu"]["machines"].as_array().unwrap().is_empty());

    let two = json("info --row-bytes 1024,128 --spread 2 --indexers 21 --page 128 --context 100");
    let geometry = &two["geometry"];
    assert_eq!((&geometry["retries"], &geometry["context"]), (&7.into(), &128.into()));
    let table = two["bytes"]["table"].as_u64().unwrap();
    assert_eq!(two["bytes"]["tables"].as_u64(), Some(21 * table.next_multiple_of(64)));
    let shown = text("info");
    assert!(shown.starts_with("It takes 752.") && shown.contains("736"), "{shown}");
}

#[test]
fn step_times_plans_and_transfers_beside_what_they_replace() {
    let line = "bench step SAMPLE --layers 3 --requests 2 --slots 1024 --steps 8 --row-bytes 64 --threads 2";
    let of = |report: &Value| -> Vec<(String, u64, u64)> {
        let rows = report["rows"].as_array().unwrap().iter();
        rows.map(|row| {
            positive(row, &["us_per_request", "us_first_decile", "us_ninth_decile", "step_us"]);
            let number = |field: &str| row[field].as_u64().unwrap();
            (row["what"].as_str().unwrap().to_owned(), number("layers"), number("buffers"))
        })
        .collect()
    };
    let row = |what: &str, layers, buffers| (what.to_owned(), layers, buffers);
    let report = json(line);
    let baselines = |buffers| {
        [
            row("lru_resident_compact", 3, buffers),
            row("a loop that copies every selected row", 3, 0),
            row("a loop that reads the tables in order", 3, buffers),
        ]
    };
    let own = [("plan", 3, 6), ("transfer", 3, 6), ("plan", 1, 2), ("transfer", 1, 2)];
    let own = own.map(|(part, layers, tables)| row(&format!("AVSG: {part}"), layers, tables));
    assert_eq!(of(&report), [&own[..], &baselines(6)].concat());
    assert_eq!((&report["threads"], &report["k"]), (&2.into(), &256.into()));
    let misses = report["misses_per_layer"].as_f64().unwrap();
    assert!((1.0..512.0).contains(&misses), "{misses}");

    // Layers that share an indexer share its plan and its tables.
    let shared = of(&json(&format!("{line} --indexers 1")));
    let list = row("AVSG: transfer, one call for the layers of an indexer", 3, 2);
    assert_eq!(shared[..3], [row("AVSG: plan", 3, 2), row("AVSG: transfer", 3, 2), list]);

    // Without copies, and with a buffer for each token as lru_resident_compact has.
    let plans = of(&json(&format!("{line} --tokens 4 --plans-only")));
    assert_eq!(
        plans,
        [
            row("AVSG: plan", 3, 6),
            row("AVSG: plan", 1, 2),
            row("AVSG, a table for each token: plan", 3, 24),
            row("lru_resident_compact", 3, 24),
            row("a loop that reads the tables in order", 3, 6),
        ]
    );
    let shown = text(line);
    assert!(shown.starts_with("A step takes ") && shown.contains("N_q = 1"), "{shown}");
}
