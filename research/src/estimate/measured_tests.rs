//! Tests of `--from`: `avsg doctor` examines a simulated device whose clock has other constants than the model, and
//! the estimate finds them in its report.

use std::fs;
use std::path::PathBuf;

use avsg_cli::command::doctor;
use avsg_cli::constants::{CONSTANTS, Constants, Name};
use clap::Parser;
use serde_json::Value;

use super::measured::Measured;
use super::show;
use crate::Command;
use crate::tests::{command, has_cpp_compiler, left_out, refused};

#[derive(Parser)]
struct Doctor {
    #[command(flatten)]
    options: doctor::Options,
}

/// Returns the report of the simulated device, and the file that has it.
fn examined(name: &str, options: &str) -> (Value, PathBuf) {
    let line = format!("doctor --device ascend-sim --largest 4194304 {options}");
    let options = Doctor::try_parse_from(line.split_whitespace()).unwrap().options;
    let report = doctor::examine_simulated(&options).unwrap();
    let file = std::env::temp_dir().join(format!("avsg-{name}-{}.json", std::process::id()));
    fs::write(&file, report.to_string()).unwrap();
    (report, file)
}

/// Constants that differ from those of the model, all in the ranges of which doctor finds the constant again.
const OTHERS: [(&str, f64); 16] = [
    ("issue", 3.0),
    ("head", 28.0),
    ("barrier", 37.0),
    ("repeat", 1.5),
    ("compact", 20.0),
    ("gather", 4.0),
    ("scalar", 10.5),
    ("sync", 90.0),
    ("dma", 17.0),
    ("latency", 1100.0),
    ("bandwidth", 25.0),
    ("syncall", 2.5),
    ("launch-all", 11.0),
    ("launch", 4.5),
    ("fetch", 77.0),
    ("call", 13.0),
];

/// Returns those constants that the model has, and the names of the others.
fn split() -> (Vec<(&'static str, f64)>, Vec<&'static str>) {
    let has = |name: &str| CONSTANTS.iter().any(|constant| constant.name == name);
    let (known, others): (Vec<_>, Vec<_>) = OTHERS.into_iter().partition(|(name, _)| has(name));
    (known, others.into_iter().map(|(name, _)| name).collect())
}

/// Every constant of the device's clock that doctor measures is found again from the times alone, the report says which
/// are not measured, and with the found constants the model gives every measured time.
#[test]
fn the_constants_of_a_device_are_found_from_its_report() {
    if left_out() || !has_cpp_compiler() {
        return;
    }
    let (constants, unpriced) = split();
    let set: Vec<String> =
        constants.iter().map(|(name, value)| format!("--set {name}={value}")).collect();
    let (report, file) = examined("others", &set.join(" "));
    for (name, kernel) in report["kernels"].as_object().unwrap() {
        assert_eq!(kernel["status"], "good", "{name}");
    }
    let line =
        "estimate ../tests/data/nomicon-4k-k256.npz --slots 1024 --steps 2 --warm 6 --no-points";
    let Command::Estimate(options) = command(&format!("{line} --from {}", file.display())) else {
        unreachable!()
    };
    let estimate = super::compute(&options).unwrap();
    let found = estimate.doctor.as_ref().unwrap();
    assert!(found.simulated);
    for (name, value) in constants {
        let taken = found.taken.iter().find(|taken| taken.constant == name);
        let taken = taken.unwrap_or_else(|| panic!("{name} in {:?}", found.kept));
        assert!((taken.value / value - 1.0).abs() < 1e-3, "{name}: {taken:?}");
        let [low, high] = taken.measured_range;
        assert!(low <= taken.value && taken.value <= high, "{taken:?}");
        // A documented rate has no other value, and the simulated device has.
        assert_eq!(taken.in_range, !["compact", "gather"].contains(&name), "{taken:?}");
        let used = estimate.constants.iter().find(|used| used.name == name).unwrap();
        assert_eq!(used.value, taken.value, "{name}");
    }
    // Host rows are read like rows of device memory by the clocks, so their constants are known, too.
    let row = (17.0 + 1152.0 / 25.0) / 1800.0;
    let taken = |name: &str| found.taken.iter().find(|taken| taken.constant == name).unwrap().value;
    assert!((taken("h2d-row") / row - 1.0).abs() < 1e-3, "{}", taken("h2d-row"));
    // What the clocks do not price takes no time.
    for other in &found.others {
        assert!(unpriced.contains(&other.name) && other.cycles.abs() < 0.1, "{other:?}");
    }
    assert_eq!(found.others.len(), unpriced.len());
    let kept: Vec<_> = found.kept.iter().map(|kept| kept.constant).collect();
    assert_eq!(kept.len() + found.taken.len(), CONSTANTS.len());
    assert!(kept.contains(&"dual-pointer"), "{kept:?}");
    assert!(found.times.len() > 30);
    for time in &found.times {
        let [measured, clocks, model] = [time.measured_us, time.clocks_us, time.model_us]
            .map(|us| us.unwrap_or_else(|| panic!("{time:?}")));
        assert!((model / measured - 1.0).abs() < 2e-3, "{time:?}");
        assert!(clocks > 0.0 && clocks != measured, "{time:?}");
    }
    // A kernel has 1 to 32 KB of code in lines of 128 bytes.
    let fetch = estimate.constants.iter().find(|used| used.name == "fetch").unwrap().value;
    let fetches = found.times.iter().filter_map(|time| Some((&time.time, time.fetches_us?)));
    let lines: Vec<_> = fetches.map(|(time, us)| (time, us * 1800.0 / fetch)).collect();
    assert_eq!(lines.len(), 7, "{lines:?}");
    assert!(lines.iter().all(|(_, lines)| (8.0..256.0).contains(lines)), "{lines:?}");
    let page = show::report(&estimate).framed(None);
    for part in ["the simulated device", "barrier", "doctor does not measure it", "plan_misses"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    fs::remove_file(file).unwrap();
}

/// Returns a report as a device could have written it, with the given times only.
fn written(name: &str, times: &[(&str, Result<[f64; 3], &str>)]) -> PathBuf {
    let time = |&(name, time): &(&str, Result<[f64; 3], &str>)| {
        let [measured, reason] = match time {
            Ok([us, low, high]) => {
                [serde_json::json!({"us": us, "low": low, "high": high}), Value::Null]
            }
            Err(reason) => [Value::Null, reason.into()],
        };
        let row = serde_json::json!({"of": "work", "cores": 1, "measured": measured, "clocks_us": 1.0, "reason": reason});
        (name.to_owned(), row)
    };
    let times: serde_json::Map<_, _> = times.iter().map(time).collect();
    let report = serde_json::json!({
        "device": "ascend", "soc": "Ascend910B3", "vector_cores": 40,
        "geometry": {"k": 2048, "slots": 8192, "row_bytes": 1152}, "times": times,
    });
    let file = std::env::temp_dir().join(format!("avsg-{name}-{}.json", std::process::id()));
    fs::write(&file, report.to_string()).unwrap();
    file
}

/// A range is that of all times of the rule. A time that hung, one that is missing and one that no constant explains
/// leave their constants as they are, with the reason.
#[test]
fn a_constant_has_a_range_or_stays_with_a_reason() {
    let file = written(
        "some",
        &[
            ("vector_16", Ok([0.030, 0.029, 0.031])),
            ("vector_32", Ok([0.040, 0.039, 0.042])),
            ("flags_8", Ok([-0.01, -0.02, 0.01])),
            ("sync_all", Err("avsg_probe_sync: no answer within 60 s")),
        ],
    );
    let measured = Measured::read(&file).unwrap();
    assert!(!measured.simulated());
    let [repeat] = &measured.taken[..] else { panic!("{:?}", measured.taken) };
    assert_eq!(repeat.constant, "repeat");
    let cycles = |us: f64| us * 1800.0 / 16.0;
    for (value, expected) in [repeat.value, repeat.measured_range[0], repeat.measured_range[1]]
        .into_iter()
        .zip([0.010, 0.008, 0.013].map(cycles))
    {
        assert!((value - expected).abs() < 1e-9, "{repeat:?}");
    }
    assert_eq!(measured.constants.get(Name::Repeat), repeat.value);
    assert_eq!(measured.constants.get(Name::Barrier), Constants::default().get(Name::Barrier));
    let reason =
        |name: &str| &measured.kept.iter().find(|kept| kept.constant == name).unwrap().reason;
    assert!(reason("syncall").contains("no answer within 60 s"), "{}", reason("syncall"));
    assert!(reason("gather").contains("no time gather_2048"), "{}", reason("gather"));
    assert!(reason("issue").contains("not possible"), "{}", reason("issue"));
    fs::remove_file(file).unwrap();
}

#[test]
fn a_file_that_is_no_report_is_refused() {
    let file = std::env::temp_dir().join(format!("avsg-none-{}.json", std::process::id()));
    for (text, names) in [
        ("{}", ["--from", "no report of a device", "avsg doctor --json"]),
        (
            r#"{"device": "ascend", "soc": "Ascend310", "vector_cores": 8, "geometry": {"k": 1, "slots": 1}, "times": {}}"#,
            ["--from", "Ascend310", "avsg doctor --json"],
        ),
    ] {
        fs::write(&file, text).unwrap();
        refused(&format!("estimate --from {}", file.display()), &names);
    }
    fs::remove_file(file).unwrap();
}
