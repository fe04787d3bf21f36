//! Tests of `avsg size`: it agrees with `avsg replay` at every S and with exact LRU, and answers for
//! traces of every shape.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use avsg_cli::baseline::{ExactLru, count_hits};
use avsg_cli::trace::Trace;
use npyz::{AutoSerialize, WriteOptions, WriterBuilder};
use serde_json::Value;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/nomicon-4k-k256.npz");
const LLAMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/llama-deepseek32-k64.npz");

fn avsg(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_avsg")).args(args).output().expect("the program starts")
}

fn json(args: &[&str]) -> Value {
    let output = avsg(&[args, &["--json", "-"]].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON alone")
}

fn text(args: &[&str]) -> String {
    let output = avsg(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Checks that a command is refused with one line that contains all of `parts`.
fn refused(args: &[&str], parts: &[&str]) {
    let output = avsg(args);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

fn file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("size");
    fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn npy<T: AutoSerialize>(name: &str, shape: &[u64], data: Vec<T>) -> String {
    let path = file(name);
    let mut image = Vec::new();
    let mut out =
        WriteOptions::new().default_dtype().shape(shape).writer(&mut image).begin_nd().unwrap();
    out.extend(data).unwrap();
    out.finish().unwrap();
    fs::write(&path, image).unwrap();
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn size_agrees_with_replay_at_every_tested_s() {
    for (trace, least) in [(SAMPLE, 1024), (LLAMA, 256)] {
        let report = json(&["size", trace]);
        let points = report["points"].as_array().expect("points");
        assert_eq!(points[0]["slots"], least);
        for point in points {
            let slots = point["slots"].to_string();
            let replay = json(&["replay", trace, "--slots", &slots]);
            let rate = |value: &Value| value["hit_rate"].as_f64().expect("a rate");
            assert!((rate(point) - rate(&replay)).abs() < 1e-9, "{trace}, S = {slots}");
        }
        // The largest S that is tested has all hits that exact LRU can have.
        let curve = report["lru_curve"].as_array().expect("a curve");
        let last = points.last().expect("a point");
        assert_eq!(curve.last().expect("a point")["hit_rate"], last["lru_hit_rate"]);
    }
}

#[test]
fn the_curve_is_exact_lru_at_every_multiple_of_64() {
    let report = json(&["size", LLAMA, "--slots", "256"]);
    let trace = Trace::read(LLAMA).unwrap();
    let curve = report["lru_curve"].as_array().expect("a curve");
    for (point, slots) in curve.iter().zip((256usize..).step_by(64)) {
        assert_eq!(point["slots"], slots);
        let lru = count_hits(&trace, &mut ExactLru::new(slots).unwrap());
        // The parser of JSON rounds the last digit, so the misses are compared.
        let rate = point["hit_rate"].as_f64().expect("a rate");
        let selected = (lru.selected - lru.first_selected) as f64;
        let misses = (100.0 - rate) / 100.0 * selected;
        assert_eq!(misses.round() as u64, lru.misses(), "S = {slots}");
        assert!((misses - misses.round()).abs() < 1e-6, "{misses}");
    }
    assert!(curve.len() > 3, "{}", curve.len());
    let lines = text(&["size", LLAMA, "--slots", "256", "--curve", "--format", "csv"]);
    assert_eq!(lines.lines().count(), 1 + curve.len());
    assert!(lines.starts_with("S,\"AVSG, %\",\"exact LRU, %\""), "{lines}");
}

#[test]
fn the_page_about_sizing_shows_what_the_command_prints() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let args = ["size", "tests/data/nomicon-4k-k256.npz", "--hit-rate", "95"];
    let mut program = Command::new(env!("CARGO_BIN_EXE_avsg"));
    let output = program.args(args).current_dir(root).output().expect("the program starts");
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    let page = fs::read_to_string(format!("{root}/docs/sizing.md")).unwrap();
    // The working columns, which device bytes contain, depend on the CPUs of the machine.
    for line in shown.lines().filter(|line| !line.contains(" MB │")) {
        assert!(page.contains(line), "not in docs/sizing.md: {line}");
    }
}

/// A dump holds `torch.topk(..).indices` of each step as `[steps, N_q, K]`, and nothing else.
#[test]
fn a_dump_of_torch_topk_gives_the_least_s_in_one_command() {
    let ids = Trace::read(SAMPLE).unwrap().ids.into_iter().map(i64::from).collect();
    let path = npy("topk.npy", &[64, 4, 256], ids);
    let shown = text(&["size", &path, "--hit-rate", "95"]);
    assert!(shown.contains("least S     for 95 % of hits: 1024 (97.4"), "{shown}");
    let report = json(&["size", &path, "--hit-rate", "98"]);
    assert_eq!(report["least"][0]["slots"], 2048);
    let lru = report["least"][0]["lru_slots"].as_u64().expect("a size");
    assert!((1216..1600).contains(&lru), "{lru}");
}

#[test]
fn bytes_and_times_follow_from_the_misses() {
    let model = ["--step-ms", "40", "--link-gbs", "50", "--tpot-ms", "10.08"];
    let deployment = ["--layers", "10", "--requests", "8", "--row-bytes", "656"];
    let report = json(&[&["size", SAMPLE][..], &model, &deployment].concat());
    let number = |value: &Value| value.as_f64().expect("a number");
    for point in report["points"].as_array().expect("points") {
        let bytes = number(&point["misses_per_step"]) * 656.0 * 80.0;
        assert!((number(&point["bytes_per_step"]) - bytes).abs() < 1e-6 * bytes);
        let tpot = (40.0 + bytes / 50e6) / 4.0;
        assert!((number(&point["tpot_ms"]) - tpot).abs() < 1e-9);
        let missed = 100.0 - 100.0 * number(&point["misses_per_step"]) / 1024.0;
        assert!((number(&point["hit_rate"]) - missed).abs() < 1e-9);
    }
    assert_eq!(report["model"]["accepted"], 4.0);
    assert_eq!(report["selected_bytes_per_step"], 1024.0 * 656.0 * 80.0);
    assert_eq!(report["model"]["label"], "a model, not a measurement");
    assert_eq!(report["least"][0]["wanted"]["tpot_ms"], 10.08);
    let never = text(&[&["size", SAMPLE, "--tpot-ms", "9"][..], &model[..4]].concat());
    assert!(never.contains("already takes 10.00 ms per token"), "{never}");
}

#[test]
fn device_and_host_memory_are_those_of_info() {
    let shape = ["--layers", "3", "--indexers", "2", "--requests", "5", "--context", "4352"];
    let size = json(&[&["size", SAMPLE, "--slots", "1024"][..], &shape].concat());
    let geometry = ["info", "--k", "256", "--tokens", "4", "--slots", "1024"];
    let info = json(&[&geometry[..], &shape].concat());
    let parts = ["tables", "working_columns", "slots"].map(|part| info["bytes"][part].as_u64());
    let device: u64 = parts.into_iter().flatten().sum();
    assert_eq!(size["points"][0]["device_bytes"], device);
    assert_eq!(size["deployment"]["host_bytes"], info["bytes"]["host_pool"]);
}

#[test]
fn traces_without_reuse_of_one_id_and_of_k_equal_to_s_have_answers() {
    let fresh = npy("fresh.npy", &[20, 64], (0..20 * 64).collect::<Vec<i64>>());
    let report = json(&["size", &fresh, "--hit-rate", "50"]);
    assert_eq!(
        (&report["points"][0]["slots"], report["points"].as_array().unwrap().len()),
        (&64.into(), 1)
    );
    assert_eq!(report["points"][0]["hit_rate"], 0.0);
    assert_eq!(
        (&report["least"][0]["slots"], &report["least"][0]["lru_slots"]),
        (&Value::Null, &Value::Null)
    );
    let shown = text(&["size", &fresh, "--hit-rate", "50"]);
    assert!(shown.contains("none of the 1 measured S has it; exact LRU never has it"), "{shown}");

    let one = npy("one.npy", &[20, 1], vec![7i64; 20]);
    let report = json(&["size", &one, "--hit-rate", "100"]);
    assert_eq!(
        (&report["points"][0]["hit_rate"], &report["distinct_ids"]),
        (&100.0.into(), &1.into())
    );
    assert_eq!(report["least"][0]["slots"], 64);

    let same = npy("same.npy", &[20, 64], (0..20).flat_map(|_| 0..64i64).collect());
    let report = json(&["size", &same]);
    assert_eq!(
        (&report["points"][0]["slots"], &report["points"][0]["hit_rate"]),
        (&64.into(), &100.0.into())
    );
}

#[test]
fn traces_of_padding_and_of_one_step_have_no_hit_rate() {
    let padding = npy("padding.npy", &[5, 2, 8], vec![-1i64; 80]);
    let once = npy("once.npy", &[1, 2, 8], (0..16).collect::<Vec<i64>>());
    for path in [&padding, &once] {
        let model = ["--tpot-ms", "50", "--step-ms", "40", "--link-gbs", "50"];
        let args = [&["size", path, "--hit-rate", "95"][..], &model].concat();
        let report = json(&args);
        let point = &report["points"][0];
        for value in [&point["hit_rate"], &point["lru_hit_rate"], &point["bytes_per_step"]] {
            assert_eq!(value, &Value::Null, "{path}");
        }
        assert_eq!(report["least"][0]["slots"], Value::Null);
        let shown = text(&args);
        assert!(shown.contains("No step after the first selects an id"), "{shown}");
        assert!(!shown.contains("NaN") && !shown.contains("least S"), "{shown}");
        let compared = text(&["compare", path, "--slots", "64"]);
        assert!(compared.contains("No step after the first selects an id"), "{compared}");
        assert!(!compared.contains("NaN"), "{compared}");
    }
}

#[test]
fn a_chart_and_standard_input_work() {
    let charts = file("charts");
    let mut program = Command::new(env!("CARGO_BIN_EXE_avsg"))
        .args(["size", "-", "--slots", "256", "--plot", charts.to_str().expect("UTF-8")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let bytes = fs::read(LLAMA).unwrap();
    program.stdin.take().expect("a pipe").write_all(&bytes).unwrap();
    let output = program.wait_with_output().unwrap();
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success() && shown.contains("standard input: 48 steps"), "{shown}");
    let chart = fs::read_to_string(charts.join("size-hit-rate.svg")).unwrap();
    assert!(chart.contains("exact LRU") && chart.contains("AVSG"));
}

#[test]
fn repeated_ids_are_reported() {
    let path = npy("repeats.npy", &[3, 4], vec![1i64, 2, 3, 4, 5, 6, 5, -1, 1, 2, 3, 4]);
    let output = avsg(&["size", &path, "--json", "-"]);
    let warning = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        warning.contains("1 of 3 rows repeat an id (1 repeats, the first of id 5 at step 1"),
        "{warning}"
    );
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert_eq!(report["repeats"]["ids"], 1);
    let output = avsg(&["replay", &path]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 of 3 rows repeat an id"));
}

#[test]
fn layers_and_requests_are_taken_by_every_command() {
    let ids: Vec<i64> = Trace::read(LLAMA).unwrap().ids.iter().map(|&id| id.into()).collect();
    // Layer 0 is the trace, layer 1 selects ids that it never selects again.
    let (mut both, mut next) = (Vec::new(), 0);
    for step in ids.chunks(4 * 64) {
        both.extend(step);
        both.extend((0..4 * 64).map(|i| next + i));
        next += 4 * 64;
    }
    let path = npy("layers.npy", &[48, 2, 4, 64], both);
    let plain = npy("plain.npy", &[48, 4, 64], ids);
    let size = json(&["size", &plain, "--slots", "256"]);
    let layer = |n: &'static str| json(&["size", &path, "--layer", n, "--slots", "256"]);
    assert_eq!(layer("0")["points"], size["points"]);
    assert_eq!(layer("1")["points"][0]["hit_rate"], 0.0);
    let replay = json(&["replay", &path, "--layer", "1", "--slots", "256"]);
    assert_eq!((&replay["hit_rate"], &replay["wrong_rows"]), (&0.0.into(), &0.into()));
    refused(&["size", &path], &["[48, 2, 4, 64]", "--layer"]);
    refused(&["size", &path, "--layer", "2"], &["--layer is 2", "2 layers"]);
}

#[test]
fn options_without_meaning_are_refused() {
    refused(&["size", SAMPLE, "--hit-rate", "101"], &["--hit-rate is 101", "0 to 100"]);
    refused(&["size", SAMPLE, "--slots", "512"], &["N_q*K", "1024", "S = 512"]);
    refused(&["size", SAMPLE, "--slots", "1500"], &["1500", "power of two"]);
    refused(&["size", SAMPLE, "--tpot-ms", "5"], &["--step-ms"]);
    refused(&["size", SAMPLE, "--step-ms", "0", "--link-gbs", "1"], &["--step-ms is 0"]);
    let model = ["size", SAMPLE, "--step-ms", "1", "--link-gbs", "1", "--accepted"];
    refused(&[&model[..], &["5"]].concat(), &["--accepted is 5", "N_q = 4"]);
    refused(&["size", SAMPLE, "--layers", "0"], &["--layers is 0", "at least 1"]);
    let wide = npy("wide.npy", &[2, 2, 20000], (0..80000).collect::<Vec<i64>>());
    refused(&["size", &wide], &["40000 (2 * 20000)", "32768", "--mtp0"]);
    refused(&["compare", &wide], &["65536", "32768"]);
}
