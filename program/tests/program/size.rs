//! Tests of `avsg size`: it agrees with `avsg replay` at every S and with exact LRU, says what it took a
//! trace for, recommends an S, and answers for traces of every shape.

mod model;
mod page;

use std::fs;
use std::io::Write;

use avsg_cli::baseline::{ExactLru, count_hits};
use avsg_cli::trace::Trace;
use avsg_testkit::tier;
use serde_json::Value;

use crate::support::{
    LLAMA, SAMPLE, command, errors, file, has, json, near, npy, number, refused, run, text,
};
use page::{points, words};

#[test]
fn size_agrees_with_replay_at_every_s_up_to_that_with_the_hits_of_exact_lru() {
    let mut measured = Vec::new();
    for (trace, path, least) in [("SAMPLE", SAMPLE, 1024), ("LLAMA", LLAMA, 256)] {
        let rules = ["", "--lifetime constant:127"];
        let [report, other] = rules.map(|rule| json(&format!("size {trace} {rule}")));
        assert_eq!(points(&report)[0]["slots"], least);
        for point in points(&report).iter().chain(points(&other)) {
            let rule = point["lifetime"].as_str().unwrap().to_owned();
            measured.push((trace, number(&point["slots"]), rule, number(&point["hit_rate"])));
        }
        // The largest S that is tested has all hits that exact LRU can have.
        let last = number(&points(&report).last().expect("a point")["slots"]) as usize;
        let recorded = Trace::read(path).unwrap();
        let lru = count_hits(&recorded, &mut ExactLru::new(last).unwrap());
        near(&report["ceiling"], lru.percent().expect("hits"));
    }
    let axes = |(trace, _, rule, _): &(&str, f64, String, f64)| vec![(*trace).into(), rule.clone()];
    for (trace, slots, rule, rate) in tier::cases("sizes", measured, 6, axes) {
        let replay = json(&format!("replay {trace} --slots {slots} --lifetime {rule}"));
        near(&replay["hit_rate"], rate);
    }
}

/// A dump holds `torch.topk(..).indices` of each step as `[steps, N_q, K]`, and nothing else.
#[test]
fn a_dump_of_torch_topk_gives_the_least_s_in_one_command() {
    let ids: Vec<i64> = Trace::read(SAMPLE).unwrap().ids.into_iter().map(i64::from).collect();
    let line = format!("size {} --tokens 4 --hit-rate", npy("topk.npy", &[64, 4, 256], &ids));
    for (wish, slots) in [("95", 1024), ("98", 2048)] {
        assert_eq!(json(&format!("{line} {wish}"))["recommended"]["slots"], slots);
        let shown = text(&format!("{line} {wish}"));
        assert!(shown.starts_with(&format!("take S = {slots}, ")), "{shown}");
        has(&shown, &[&format!("the least measured S with {wish} % of hits")]);
    }
    let none = "none: no measured S has 99 % of hits; the most is 98.27 %";
    has(&text(&format!("{line} 99")), &[none]);
    assert_eq!(run(&format!("{line} 99")).status.code(), Some(3));
    assert_eq!(json(&format!("{line} 99"))["recommended"], Value::Null);
}

#[test]
fn the_ceiling_leaves_out_ids_that_are_selected_for_the_first_time() {
    let path = file("ceiling.npz");
    // After the first step: 1 is repeated, 2 is new, 0 is older, 3 is new, 0 and 3 are repeated.
    let ids = vec![0, 1, 1, 2, 0, 3, 0, 3];
    // In the second case the row of id 3 is rewritten before the last step.
    for (last, hits) in [(4, 4.0), (3, 3.0)] {
        let trace = Trace::new(ids.clone(), Some(vec![4, 4, 4, last]), [4, 1, 2]).unwrap();
        trace.write(&path).unwrap();
        near(&json(&format!("size {}", path.display()))["ceiling"], 100.0 * hits / 6.0);
    }
}

/// A loop over 96 rows fits 128 slots. With 64 the least recently used row is always the next one.
#[test]
fn the_recommended_s_is_the_last_that_pays() {
    let ids: Vec<i64> = (0..40 * 32).map(|at| at % 96).collect();
    let path = npy("loop.npy", &[40, 32], &ids);
    let line = format!("size {path} --context 4096 --lifetime constant:127 --slots 64,128,256");
    let report = json(&line);
    let hits: Vec<f64> = points(&report).iter().map(|p| number(&p["hit_rate"])).collect();
    assert!(hits[0] < 50.0 && hits[1] == hits[2], "{hits:?}");
    assert_eq!(report["recommended"]["slots"], 128);
    let shown = |line: &str, part| has(&words(&text(line)), &[part]);
    shown(&line, "the last S that pays");
    // A step selects 1024 rows of the sample, and a doubling of S saves less than half of the copies.
    shown("size SAMPLE", "why no larger S pays");
    // The whole context of the other sample takes less memory than 1024 slots.
    assert_eq!(json("size LLAMA")["recommended"]["slots"], 512);
    shown("size LLAMA", "left out are S that take at least as much");
    assert_eq!(json("size LLAMA --context 9999")["recommended"]["slots"], 1024);
}

#[test]
fn bytes_and_times_follow_from_the_misses() {
    let line = "size SAMPLE --link-gbs 50 --match-us 20 --layers 10 --indexers 5 --requests 8 --row-bytes 656";
    for (option, step_ms) in [("", 0.0), ("--step-ms 40", 40.0)] {
        let report = json(&format!("{line} {option}"));
        let tpot = |bytes: f64, matching: f64| (step_ms + matching + bytes / 50e6) / 4.0;
        // Four tokens match one after the other, with each of five indexers.
        let matching = 4.0 * 5.0 * 0.02;
        let all = 1024.0 * 656.0 * 80.0;
        assert_eq!(report["no_buffer"]["bytes_per_step"], all);
        let without = tpot(all, 0.0);
        near(&report["no_buffer"]["times"][0]["host"]["tpot_ms"], without);
        for point in points(&report) {
            let (copies, times) = (&point["copies"], &point["copies"]["times"][0]);
            let misses = number(&copies["misses_per_step"]);
            let bytes = misses * 656.0 * 80.0;
            near(&copies["bytes_per_step"], bytes);
            near(&times["host"]["tpot_ms"], tpot(bytes, matching));
            near(&times["matching_ms"], matching);
            let speed_up = without / tpot(bytes, matching);
            near(&times["host"]["speed_up"], speed_up);
            near(&point["hit_rate"], 100.0 - 100.0 * misses / 1024.0);
            assert!(speed_up > 1.0);
        }
        assert_eq!(report["model"]["accepted"], 4.0);
    }
    for (ms, part) in [
        ("10.2", "the least measured S with at most 10.2 ms per token"),
        ("9", "none: no measured S has at most 9 ms per token"),
    ] {
        has(&words(&text(&format!("{line} --step-ms 40 --tpot-ms {ms}"))), &[part]);
    }
}

#[test]
fn matching_is_measured_here_with_a_range_unless_its_time_is_given() {
    let line = "size LLAMA --slots 256,512 --link-gbs 50";
    let report = json(line);
    let disturbance = &report["disturbance"];
    assert_eq!((&report["model"]["match_us"], &disturbance["samples"]), (&Value::Null, &96.into()));
    assert!(number(&disturbance["spread"]) >= 1.0, "{disturbance}");
    for point in points(&report) {
        let times = &point["copies"]["times"];
        assert!(number(&times[0]["match_us"]) > 0.0, "{point}");
        for name in ["/match_us", "/matching_ms", "/host/tpot_ms", "/host/speed_up"] {
            let value = |at: usize| number(times[at].pointer(name).expect(name));
            let [low, value, high] = [1, 0, 2].map(value);
            assert!(low <= value && value <= high || low >= value && value >= high, "{point}");
        }
        let spread = number(&times[2]["match_us"]) / number(&times[0]["match_us"]);
        // The numbers of the JSON are rounded.
        assert!(spread <= number(&disturbance["spread"]) * 1.000_001, "{point}");
    }
    let parts =
        ["K = 64: measured on this machine's CPU with", "(--step-ms adds the rest of a step)"];
    has(&words(&text(line)), &parts);
    let given = json(&format!("{line} --match-us 20"));
    let times = &given["points"][0]["copies"]["times"];
    assert_eq!((&given["disturbance"], &times[1]), (&Value::Null, &times[2]));
    let given = |us: &str| words(&text(&format!("{line} --match-us {us}")));
    let slow = "but a gather without repeats is faster";
    has(&given("70"), &["matching of a token with K = 64: 70 us as given", slow]);
    assert!(!given("0").contains(slow));
}

#[test]
fn device_and_host_memory_are_those_of_info() {
    let shape = "--slots 1024 --layers 3 --indexers 2 --requests 5 --context 4352";
    let size = json(&format!("size SAMPLE {shape}"));
    let info = json(&format!("info --k 256 --tokens 4 {shape}"));
    let parts = ["tables", "working_columns", "slots"].map(|part| info["bytes"][part].as_u64());
    let device: u64 = parts.into_iter().flatten().sum();
    assert_eq!(size["points"][0]["device_bytes"], device);
    assert_eq!(size["deployment"]["host_bytes"], info["bytes"]["host_pool"]);
}

#[test]
fn traces_without_reuse_of_one_id_and_of_k_equal_to_s_have_answers() {
    let fresh = npy("fresh.npy", &[20, 64], &(0..20 * 64).collect::<Vec<i64>>());
    let one = npy("one.npy", &[20, 1], &[7i64; 20]);
    let same = npy("same.npy", &[20, 128], &(0..20).flat_map(|_| 0..128i64).collect::<Vec<_>>());
    let cases = [(&fresh, 50.0, 0.0, 64), (&one, 100.0, 100.0, 64), (&same, 100.0, 100.0, 128)];
    for (path, wish, rate, least) in cases {
        let report = json(&format!("size {path} --hit-rate {wish}"));
        let points = points(&report);
        assert_eq!((&points[0]["slots"], points.len()), (&least.into(), 1));
        assert_eq!(points[0]["hit_rate"], rate, "{path}");
        let recommended = if rate >= wish { least.into() } else { Value::Null };
        assert_eq!(report["recommended"]["slots"], recommended, "{path}");
        assert_eq!(report["ceiling"], rate, "{path}");
        let parts = [&format!("take S = {least}, "), "why the only measured S"];
        has(&words(&text(&format!("size {path}"))), &parts);
    }
}

#[test]
fn repeated_ids_are_reported() {
    // Padding is no repeat.
    let path = npy("repeats.npy", &[3, 4], &[1i64, 2, 3, 4, 5, -1, 5, -1, 7, 7, 0, 7]);
    for line in [format!("size {path} --json -"), format!("replay {path}")] {
        let expected = "2 of 3 rows repeat an id (3 repeats, the first of id 5 at step 1";
        has(&errors(&run(&line)), &[expected]);
    }
    assert_eq!(json(&format!("size {path}"))["repeats"], 3);
}

#[test]
fn a_layer_or_the_mean_and_the_worst_of_all_layers_are_measured() {
    let ids: Vec<i64> = Trace::read(LLAMA).unwrap().ids.iter().map(|&id| id.into()).collect();
    // Layer 0 is the trace, layer 1 selects ids that it never selects again.
    let mut both = Vec::new();
    for (step, first) in ids.chunks(4 * 64).zip((0..).step_by(4 * 64)) {
        both.extend(step);
        both.extend(first..first + 4 * 64);
    }
    let path = npy("layers.npy", &[48, 2, 4, 64], &both);
    let plain = npy("plain.npy", &[48, 4, 64], &ids);
    let size = json(&format!("size {plain} --slots 256"));
    let layer = |which: &str| json(&format!("size {path} --slots 256 --layer {which}"));
    assert_eq!(layer("0")["points"], size["points"]);
    assert_eq!(layer("1")["points"][0]["hit_rate"], 0.0);
    assert_eq!(json(&format!("replay {path} --layer 1 --slots 256"))["hit_rate"], 0.0);

    let all = layer("all");
    assert_eq!((&all["traces"], &all["deployment"]["layers"]), (&2.into(), &2.into()));
    let (point, first) = (&all["points"][0], &size["points"][0]);
    let worst = &point["worst"];
    assert!(worst["trace"].as_str().is_some_and(|name| name.ends_with("layer 1")), "{worst}");
    assert_eq!((&worst["hit_rate"], &first["worst"]), (&0.0.into(), &Value::Null));
    near(&point["hit_rate"], number(&first["hit_rate"]) / 2.0);
    // Layer 1 misses all 256 ids of a step. Two layers copy what both miss.
    let misses = number(&first["copies"]["misses_per_step"]) + 256.0;
    near(&point["copies"]["bytes_per_step"], misses * 1152.0);
    near(&all["ceiling"], number(&size["ceiling"]) / 2.0);
    let shown = words(&text(&format!("size {path} --layer all --slots 256")));
    has(&shown, &["(0.00 % in the worst, "]);
    assert_eq!(layer("all --layers 61")["deployment"]["layers"], 61);
    // Steps are those of the file, however many layers it has.
    assert_eq!(all["steps"], 48);
    let requests = json(&format!("size {path} --slots 256 --request all"));
    assert_eq!(requests["points"][0]["hit_rate"], point["hit_rate"]);

    refused(&format!("replay {path} --layer all"), &["--layer is all", "size"]);
    refused(&format!("size {path}"), &["[48, 2, 4, 64]", "--layer or --request (N, or all"]);
    refused(&format!("size {path} --layer 2"), &["--layer is 2", "2 layers"]);
    refused(&format!("size {path} --layer every"), &["every", "or all"]);
}

#[test]
fn device_memory_gives_the_s_that_copies_least_of_those_that_fit() {
    let take = |gb: f64, options: &str| {
        let report = json(&format!("size LLAMA --device-gb {gb} {options}"));
        let slots = report["recommended"]["slots"].as_u64();
        let at = points(&report).iter().find(|point| point["slots"].as_u64() == slots);
        assert!(at.is_none_or(|point| number(&point["device_bytes"]) <= gb * 1e9), "{report}");
        slots.unwrap_or(0)
    };
    let report = json("size LLAMA --requests 16 --slots 320");
    let bytes = number(&points(&report)[0]["device_bytes"]);
    // Sizes between powers of two are measured, too, but not of the paper's table.
    assert_eq!(take(bytes / 1e9, "--requests 16"), 320);
    assert_eq!(take((bytes - 1.0) / 1e9, "--requests 16"), 256);
    assert_eq!(take(bytes / 1e9, "--requests 16 --table paper"), 256);
    // With room for all, no larger S than the least that copies as few.
    let all = json("size LLAMA");
    let misses = |point: &Value| number(&point["copies"]["misses_per_step"]);
    let least = points(&all).iter().map(misses).fold(f64::MAX, f64::min);
    let first = points(&all).iter().find(|point| misses(point) == least).expect("a point");
    assert_eq!(Some(take(1000.0, "")), first["slots"].as_u64());
    let parts = ["take none: no measured S has at most 1.00 MB", "the least S, 256, takes "];
    has(&text("size LLAMA --device-gb 0.001"), &parts);
}

#[test]
fn standard_input_is_read() {
    let (read, mut write) = std::io::pipe().unwrap();
    let trace = fs::read(LLAMA).unwrap();
    std::thread::spawn(move || write.write_all(&trace));
    let output = command("size - --slots 256,512").stdin(read).output().unwrap();
    assert!(output.status.success());
    has(&String::from_utf8_lossy(&output.stdout), &["standard input: 48 steps"]);
}
