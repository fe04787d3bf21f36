//! Tests of `avsg size`: it agrees with `avsg replay` at every S and with exact LRU, says what it took a
//! trace for, recommends an S, and answers for traces of every shape.

mod charts;
mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use avsg_cli::baseline::{ExactLru, count_hits};
use avsg_cli::trace::Trace;
use npyz::{AutoSerialize, WriteOptions, WriterBuilder};
use serde_json::Value;

use page::words;

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
            let rate = |value: &Value| value["hit_rate"].as_f64().expect("a rate");
            for measured in [point, &point["other_rule"]] {
                let rule = measured["lifetime"].as_str().expect("a rule");
                let replay = json(&["replay", trace, "--slots", &slots, "--lifetime", rule]);
                assert!((rate(measured) - rate(&replay)).abs() < 1e-9, "{trace}, {slots}, {rule}");
            }
            assert!(rate(point) >= rate(&point["other_rule"]), "{point}");
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
}

/// A dump holds `torch.topk(..).indices` of each step as `[steps, N_q, K]`, and nothing else.
#[test]
fn a_dump_of_torch_topk_gives_the_least_s_in_one_command() {
    let ids = Trace::read(SAMPLE).unwrap().ids.into_iter().map(i64::from).collect();
    let path = npy("topk.npy", &[64, 4, 256], ids);
    for (wish, slots) in [("95", 1024), ("98", 2048)] {
        let args = ["size", &path, "--hit-rate", wish];
        assert_eq!(json(&args)["recommended"]["slots"], slots);
        let shown = text(&args);
        assert!(shown.contains(&format!("take        S = {slots} with the rule")), "{shown}");
        assert!(shown.contains(&format!("the least measured S with {wish} % of hits")), "{shown}");
    }
    let shown = text(&["size", &path, "--hit-rate", "99"]);
    assert!(shown.contains("none: no measured S has 99 % of hits; the most is 98.27 %"), "{shown}");
    assert_eq!(json(&["size", &path, "--hit-rate", "99"])["recommended"], Value::Null);
}

#[test]
fn too_many_tokens_are_refused_with_the_file_and_the_options() {
    let many = npy("many.npy", &[2, 16, 64], vec![0i64; 2 * 16 * 64]);
    let options = ["many.npy", "N_q is 16", "at most 8", "--layer", "--request", "--mtp0"];
    for command in ["size", "replay", "compare"] {
        refused(&[command, &many], &options);
    }
    assert_eq!(json(&["size", &many, "--mtp0"])["steps"], 32);
    let wide = npy("wide.npy", &[2, 2, 20000], (0..80000).collect::<Vec<i64>>());
    refused(&["size", &wide], &["wide.npy", "40000 (2 * 20000)", "32768", "--mtp0"]);
}

#[test]
fn friendliness_counts_first_time_and_repeated_ids() {
    let path = file("friendly.npz");
    let friendly = |rows: &[[i32; 2]], stable: &[i32]| {
        let (ids, stable) = (rows.concat(), Some(stable.to_vec()));
        Trace::new(ids, stable, [rows.len(), 1, 2]).unwrap().write(&path).unwrap();
        let report = json(&["size", path.to_str().expect("UTF-8")]);
        let of = |name: &str| report["friendliness"][name].as_f64().expect("a percentage");
        ["first_time", "ceiling", "step_before"].map(of)
    };
    let rows = [[0, 1], [1, 2], [0, 3], [0, 3]];
    // After the first step: 1 is repeated, 2 is new, 0 is older, 3 is new, 0 and 3 are repeated.
    let [new, hit, half] = [2, 4, 3].map(|ids| 100.0 * f64::from(ids) / 6.0);
    let close = |shown: [f64; 3], expected: [f64; 3]| {
        let far =
            shown.iter().zip(expected).any(|(shown, expected)| (shown - expected).abs() > 1e-9);
        assert!(!far, "{shown:?} instead of {expected:?}");
    };
    close(friendly(&rows, &[4, 4, 4, 4]), [new, hit, half]);
    // The row of id 3 is rewritten before the last step.
    let [new, hit, repeated] = [3, 3, 2].map(|ids| 100.0 * f64::from(ids) / 6.0);
    close(friendly(&rows, &[4, 4, 4, 3]), [new, hit, repeated]);
    let shown = text(&["size", path.to_str().expect("UTF-8")]);
    let line = "50.00 % of ids are first-time, so 50.00 % of hits is the ceiling; 33.33 % repeat from the \
                step before";
    assert!(words(&shown).contains(line), "{shown}");
}

/// A loop over 96 rows fits 128 slots. With 64 the least recently used row is always the next one.
#[test]
fn the_recommended_s_is_the_last_that_pays() {
    let ids = (0..40i64).flat_map(|step| (0..32).map(move |at| (32 * step + at) % 96)).collect();
    let path = npy("loop.npy", &[40, 32], ids);
    let args = ["size", &path, "--context", "4096", "--lifetime", "constant:127"];
    let sizes = [&args[..], &["--slots", "64,128,256"]].concat();
    let report = json(&sizes);
    let hits: Vec<&Value> =
        report["points"].as_array().expect("points").iter().map(|p| &p["hit_rate"]).collect();
    assert!(hits[0].as_f64().expect("a rate") < 50.0 && hits[1] == hits[2], "{hits:?}");
    assert_eq!(report["recommended"]["slots"], 128);
    let shown = words(&text(&sizes));
    assert!(shown.contains("the last S that pays"), "{shown}");
    // A step selects 1024 rows of the sample, and a doubling of S saves less than half of the copies.
    let shown = words(&text(&["size", SAMPLE]));
    assert!(shown.contains("why no larger S pays"), "{shown}");
    // The whole context of the other sample takes less memory than 1024 slots.
    assert_eq!(json(&["size", LLAMA])["recommended"]["slots"], 512);
    assert!(words(&text(&["size", LLAMA])).contains("left out are S that take at least as much"));
    assert_eq!(json(&["size", LLAMA, "--context", "9999"])["recommended"]["slots"], 1024);
}

#[test]
fn bytes_and_times_follow_from_the_misses() {
    let model = ["--link-gbs", "50", "--match-us", "20"];
    let deployment = ["--layers", "10", "--indexers", "5", "--requests", "8", "--row-bytes", "656"];
    let args = [&["size", SAMPLE][..], &model, &deployment].concat();
    let number = |value: &Value| value.as_f64().expect("a number");
    for step_ms in [None, Some(40.0)] {
        let step = step_ms.map(|ms: f64| ms.to_string());
        let step: Vec<&str> = step.iter().flat_map(|ms| ["--step-ms", ms]).collect();
        let report = json(&[&args[..], &step].concat());
        let tpot =
            |bytes: f64, matching: f64| (step_ms.unwrap_or(0.0) + matching + bytes / 50e6) / 4.0;
        // Four tokens match one after the other, with each of five indexers.
        let matching = 4.0 * 5.0 * 0.02;
        let all = 1024.0 * 656.0 * 80.0;
        assert_eq!(report["no_buffer"]["bytes_per_step"], all);
        let without = number(&report["no_buffer"]["times"]["tpot_ms"]);
        assert!((without - tpot(all, 0.0)).abs() < 1e-9);
        for point in report["points"].as_array().expect("points") {
            let copies = &point["copies"];
            let bytes = number(&copies["misses_per_step"]) * 656.0 * 80.0;
            assert!((number(&copies["bytes_per_step"]) - bytes).abs() < 1e-6 * bytes);
            let times = &copies["times"];
            assert!((number(&times["tpot_ms"]) - tpot(bytes, matching)).abs() < 1e-9);
            assert!((number(&times["matching_ms"]) - matching).abs() < 1e-9);
            let speed_up = without / number(&times["tpot_ms"]);
            assert!((number(&times["speed_up"]) - speed_up).abs() < 1e-9 && speed_up > 1.0);
            let missed = 100.0 - 100.0 * number(&copies["misses_per_step"]) / 1024.0;
            assert!((number(&point["hit_rate"]) - missed).abs() < 1e-9);
        }
        assert_eq!(report["model"]["accepted"], 4.0);
    }
    let wish =
        |ms: &str| words(&text(&[&args[..], &["--step-ms", "40", "--tpot-ms", ms]].concat()));
    assert!(wish("10.2").contains("the least measured S with at most 10.2 ms per token"));
    assert!(wish("9").contains("none: no measured S has at most 9 ms per token"));
}

#[test]
fn matching_is_measured_here_unless_its_time_is_given() {
    let args = ["size", LLAMA, "--link-gbs", "50"];
    let report = json(&args);
    for point in report["points"].as_array().expect("points") {
        assert!(point["copies"]["times"]["match_us"].as_f64().expect("a time") > 0.0, "{point}");
    }
    assert_eq!(report["model"]["match_us"], Value::Null);
    let shown = words(&text(&args));
    assert!(shown.contains("matching of a token with K = 64: measured on this machine's CPU with"));
    assert!(
        shown.contains("of the KV offload alone (--step-ms adds the rest of a step)"),
        "{shown}"
    );
    let given = |us: &str| words(&text(&[&args[..], &["--match-us", us]].concat()));
    assert!(given("70").contains("matching of a token with K = 64: 70 us as given"));
    assert!(given("70").contains("but no buffer is faster"));
    assert!(!given("0").contains("but no buffer is faster"));
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
        (&report["recommended"], &report["friendliness"]["ceiling"]),
        (&Value::Null, &0.0.into())
    );
    let shown = text(&["size", &fresh]);
    assert!(words(&shown).contains("why the only measured S"), "{shown}");

    let one = npy("one.npy", &[20, 1], vec![7i64; 20]);
    let report = json(&["size", &one, "--hit-rate", "100"]);
    assert_eq!(report["points"][0]["hit_rate"], 100.0);
    assert_eq!(report["recommended"]["slots"], 64);
    let shown = text(&["size", &one]);
    assert!(words(&shown).contains("take S = 64 with the rule"), "{shown}");

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
        for value in [&point["hit_rate"], &point["lru_hit_rate"], &point["copies"]] {
            assert_eq!(value, &Value::Null, "{path}");
        }
        for name in ["recommended", "friendliness", "no_buffer"] {
            assert_eq!(report[name], Value::Null, "{path}");
        }
        let shown = text(&args);
        assert!(shown.contains("No step after the first selects an id"), "{shown}");
        assert!(!shown.contains("NaN") && !shown.contains("take "), "{shown}");
        let compared = text(&["compare", path, "--slots", "64"]);
        assert!(compared.contains("No step after the first selects an id"), "{compared}");
        assert!(!compared.contains("NaN"), "{compared}");
    }
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
fn a_layer_or_the_mean_and_the_worst_of_all_layers_are_measured() {
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

    let all = layer("all");
    assert_eq!((&all["layers"], &all["deployment"]["layers"]), (&2.into(), &2.into()));
    let (point, first) = (&all["points"][0], &size["points"][0]);
    assert_eq!(
        (&point["worst_layer"]["layer"], &point["worst_layer"]["hit_rate"]),
        (&1.into(), &0.0.into())
    );
    assert_eq!(first["worst_layer"], Value::Null);
    let number = |value: &Value| value.as_f64().expect("a number");
    assert!((number(&point["hit_rate"]) - number(&first["hit_rate"]) / 2.0).abs() < 1e-9);
    // Layer 1 misses all 256 ids of a step. Two layers copy what both miss.
    let misses = number(&first["copies"]["misses_per_step"]) + 256.0;
    assert!((number(&point["copies"]["bytes_per_step"]) - misses * 1152.0).abs() < 1e-3);
    let share = |report: &Value| number(&report["friendliness"]["first_time"]);
    assert!((share(&all) - (share(&size) + 100.0) / 2.0).abs() < 1e-9);
    let shown = words(&text(&["size", &path, "--layer", "all", "--slots", "256"]));
    assert!(shown.contains("0.00 % in the worst layer, 1"), "{shown}");
    assert_eq!(
        json(&["size", &path, "--layer", "all", "--layers", "61"])["deployment"]["layers"],
        61
    );

    refused(&["replay", &path, "--layer", "all"], &["--layer is all", "size"]);
    refused(&["size", &path], &["[48, 2, 4, 64]", "--layer N (or all"]);
    refused(&["size", &path, "--layer", "2"], &["--layer is 2", "2 layers"]);
    refused(&["size", &path, "--layer", "every"], &["every", "or all"]);
}

#[test]
fn options_without_meaning_are_refused() {
    refused(&["size", SAMPLE, "--hit-rate", "101"], &["--hit-rate is 101", "0 to 100"]);
    refused(&["size", SAMPLE, "--slots", "512"], &["N_q*K", "1024", "S = 512"]);
    refused(&["size", SAMPLE, "--slots", "1500"], &["1500", "power of two"]);
    for option in ["--tpot-ms", "--step-ms", "--match-us", "--accepted"] {
        refused(&["size", SAMPLE, option, "5"], &["--link-gbs"]);
    }
    refused(&["size", SAMPLE, "--step-ms", "0", "--link-gbs", "1"], &["--step-ms is 0"]);
    refused(&["size", SAMPLE, "--match-us=-1", "--link-gbs", "1"], &["--match-us is -1"]);
    let model = ["size", SAMPLE, "--step-ms", "1", "--link-gbs", "1", "--accepted"];
    refused(&[&model[..], &["5"]].concat(), &["--accepted is 5", "N_q = 4"]);
    refused(&["size", SAMPLE, "--layers", "0"], &["--layers is 0", "at least 1"]);
}
