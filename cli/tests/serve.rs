//! Tests of `avsg serve` as a user runs it; the model's own tests are beside its code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use avsg_cli::trace::Trace;
use serde_json::Value;

fn avsg(line: &str) -> Output {
    let words = line.split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_avsg")).args(words).output().expect("the binary starts")
}

fn json(line: &str) -> Value {
    let output = avsg(&format!("{line} --json -"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {errors}");
    serde_json::from_slice(&output.stdout).expect("JSON and nothing else")
}

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli_serve");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A run that takes little time.
const SMALL: &str = "serve --requests 40 --output 60 --max-output 500 --seeds 1";

#[test]
fn bad_input_names_value_limit_and_remedy() {
    for (line, names) in [
        ("serve --seeds 0", ["--seeds is 0", "1..=100", "choose"]),
        ("serve --ranks 0", ["--ranks is 0", "1 to", "choose"]),
        ("serve --acceptance 1.5", ["--acceptance is 1.5", "0 to 1", "choose"]),
        ("serve --hit-rate 101", ["--hit-rate is 101", "0 to 100", "choose"]),
        ("serve --hit-rate nan", ["--hit-rate is NaN", "0 to 100", "choose"]),
        ("serve --link-gbs 0", ["--link-gbs is 0", "above 0", "choose"]),
        ("serve --rate 0", ["--rate is 0", "to 1000000000", "choose"]),
        ("serve --max-context 200000", ["--max-context is 200000", "145536", "--kv-tokens"]),
        ("serve --output 40000", ["--output is 40000", "1 to 32768", "choose"]),
        ("serve --prompt 131000", ["--prompt is 131000", "129971", "choose"]),
        ("serve --row-bytes 0", ["segment bytes is 0", "", ""]),
        ("serve /nonexistent.npz", ["/nonexistent.npz", "", ""]),
        ("serve --measured /nonexistent.json", ["/nonexistent.json", "", ""]),
    ] {
        let output = avsg(line);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
        assert!(errors.starts_with("avsg: ") && errors.lines().count() == 1, "{line}: {errors}");
        names.iter().for_each(|name| assert!(errors.contains(name), "{line}: {errors}"));
    }
}

#[test]
fn every_output_says_that_it_is_a_model_and_the_paper_stands_only_beside_its_deployment() {
    let output = avsg(SMALL);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("model, not measured").count(), 2, "{text}");
    assert!(text.contains("No Offload") && !text.contains("In brackets"), "{text}");
    let report = json(SMALL);
    assert_eq!(report["label"], "model, not measured");
    let settings = report["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 3);
    for setting in settings {
        assert!(setting["measured"].is_null(), "{setting}");
        let figures = ["ttft_s", "tpot_ms", "tpot_p99_ms", "e2e_s", "output_tok_s", "running"];
        for figure in figures.into_iter().chain(["request_rate", "step_ms", "hbm_mean_percent"]) {
            assert!(setting[figure].as_f64().is_some_and(|v| v > 0.0), "{figure} of {setting}");
        }
    }
    assert_eq!(report, json(SMALL), "two runs give the same figures");
    let full = avsg(&format!("{SMALL} --weights-gb 48 --concurrency 40 --rate 100"));
    let full = String::from_utf8(full.stdout).unwrap();
    assert!(full.contains("does not hold its buffers") && full.contains("--batch"), "{full}");
}

#[test]
fn the_hit_rate_of_a_trace_is_that_of_replay() {
    let trace = "../tests/data/nomicon-4k-k256.npz";
    let replay = json(&format!("replay {trace} --slots 1024"));
    let serve = json(&format!("{SMALL} {trace} --slots 1024"));
    assert_eq!(replay["hit_rate"], serve["deployment"]["hit_rate"]);
    assert_eq!(serve["deployment"]["k"], 256);
}

#[test]
fn extreme_traces_have_their_hit_rates_or_are_refused() {
    let folder = folder();
    let serve = |name: &str, ids: Vec<i32>, steps: usize, slots: usize| {
        let path = folder.join(name);
        let k = ids.len() / steps;
        Trace::new(ids, None, [steps, 1, k]).unwrap().write(&path).unwrap();
        avsg(&format!("{SMALL} --tokens 1 --slots {slots} {} --json -", path.display()))
    };
    let rate = |output: Output| {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["deployment"]["hit_rate"].as_f64().unwrap()
    };
    assert_eq!(rate(serve("misses.npz", (0..640).collect(), 10, 64)), 0.0);
    assert_eq!(rate(serve("one.npz", vec![7; 10], 10, 64)), 100.0);
    let repeated = (0..10).flat_map(|_| 0..64).collect();
    assert_eq!(rate(serve("full.npz", repeated, 10, 64)), 100.0, "K = S");
    for (name, ids, steps) in [("padding.npz", vec![-1; 64], 8), ("step.npz", vec![1, 2, 3], 1)] {
        let output = serve(name, ids, steps, 64);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {errors}");
        assert!(errors.contains("no hit rate") && errors.contains("--hit-rate"), "{errors}");
    }
}

#[test]
fn own_figures_stand_beside_the_model_and_calibrate_it() {
    let file = folder().join("mine.json");
    let mine = |setting: &str, tpot: f64| {
        serde_json::json!({
            "setting": setting, "kv_tokens": 200_000, "hbm_percent": 80.0, "ttft_s": 5.0, "tpot_ms": tpot,
            "tpot_p99_ms": 2.0 * tpot, "e2e_s": 20.0, "output_tok_s": 60.0, "request_rate": 1.0,
        })
    };
    let both =
        serde_json::json!({ "settings": [mine("no_offload", 30.0), mine("kv_offload", 50.0)] });
    fs::write(&file, both.to_string()).unwrap();
    let line = format!("{SMALL} --measured {}", file.display());
    let report = json(&line);
    assert_eq!(report["settings"][1]["measured"]["tpot_ms"], 50.0);
    assert!(report["settings"][2]["measured"].is_null() && report["calibration"].is_null());
    let report = json(&format!("{line} --calibrate"));
    let tpot = |at: usize| report["settings"][at]["tpot_ms"].as_f64().unwrap();
    assert!((tpot(0) / 30.0 - 1.0).abs() < 0.05 && (tpot(1) / 50.0 - 1.0).abs() < 0.05, "{report}");
    assert_eq!(report["settings"][0]["capacity_tokens"], 200_000);
    assert_eq!(report["calibration"]["constants"].as_array().unwrap().len(), 8);

    fs::write(&file, r#"{"settings": [{"setting": "half_offload"}]}"#).unwrap();
    let errors = String::from_utf8(avsg(&line).stderr).unwrap();
    assert!(errors.contains("half_offload") && errors.contains("serving.json"), "{errors}");
    fs::write(&file, serde_json::json!({ "settings": [mine("no_offload", 0.0)] }).to_string())
        .unwrap();
    let errors = String::from_utf8(avsg(&line).stderr).unwrap();
    assert!(errors.contains("No Offload is not above 0"), "{errors}");
}
