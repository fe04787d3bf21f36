//! Tests of `avsg doctor`: the report has every field, and each has a value or a reason.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn doctor(args: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_avsg"));
    let out = command.arg("doctor").args(args).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap() + &String::from_utf8(out.stderr).unwrap();
    (out.status.success(), text)
}

#[test]
fn a_missing_library_is_reported_as_no_device() {
    let (good, text) = doctor(&["--library", "/nowhere/libascendcl.so"]);
    assert!(good && text.starts_with("skipped: no device"), "{text}");
    assert!(text.contains("/nowhere/libascendcl.so"), "{text}");
}

#[test]
fn the_simulated_report_has_every_field() {
    if avsg_sim::compiler::cpp().is_none() {
        println!("skipped: no C++ compiler, which the emitted kernels need here");
        return;
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("doctor.json");
    let (good, text) = doctor(&[
        "--device",
        "ascend-sim",
        "--largest",
        "4194304",
        "--json",
        path.to_str().unwrap(),
    ]);
    assert!(good, "{text}");
    let report: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let fields = [
        "int32_overflow",
        "gather_rate",
        "sync_all_cost",
        "launch_cost",
        "mte2_rows_in_flight",
        "hugetlb_registration",
        "largest_registration",
        "rewritten_row_seen",
        "match_latency",
        "kernel_fault_code",
    ];
    let bandwidth = ["request_s1", "position_s2", "balanced_s3"];
    let all = fields.map(|f| (f, &report[f])).into_iter();
    for (name, field) in all.chain(bandwidth.map(|f| (f, &report["h2d_bandwidth"][f]))) {
        let reason = field["reason"].as_str().unwrap_or_default();
        assert!(field.is_object() && field["value"].is_null() != reason.is_empty(), "{name}");
    }
    assert_eq!(report["kernel_fault_code"]["value"], 507_035);
    assert_eq!(report["rewritten_row_seen"]["value"], true);
    assert_eq!(report["largest_registration"]["value"], 4 << 20);
    // These checks ran, and have no value only because the simulator has no times.
    for name in ["gather_rate", "sync_all_cost", "launch_cost", "mte2_rows_in_flight"] {
        let reason = "the simulator has no times; only hardware gives this value";
        assert_eq!(report[name]["reason"], reason, "{name}");
    }
    assert_eq!(report["h2d_bandwidth"]["paper_gigabytes_per_second"], 105.0);
}
