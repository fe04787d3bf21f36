//! Tests of `avsg doctor`: the report is written whatever happens, each field has a value or a
//! reason, and a kernel that hangs, faults or is wrong is named.

use std::fs;
use std::process::Output;
use std::sync::Once;

use avsg::device::kernels::{Arg, KernelName};
use serde_json::Value;

use crate::support::{command, errors, folder, has_cpp_compiler};

/// The options of a machine without a runtime.
const NOWHERE: &str = "--library /nowhere/libascendcl.so";

fn doctor(options: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = command(&format!("doctor {options}"));
    command.env_remove("ASCEND_HOME_PATH").envs(variables.iter().copied()).output().unwrap()
}

/// Returns the report that a run writes to a file, and what it prints.
fn report(name: &str, options: &str, variables: &[(&str, &str)]) -> (Value, Output) {
    let path = folder(&format!("doctor-{name}")).join("report.json");
    let output = doctor(&format!("{options} --json {}", path.display()), variables);
    let written = fs::read(path).unwrap_or_else(|_| panic!("no report: {output:?}"));
    (serde_json::from_slice(&written).unwrap(), output)
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns whether the simulated device can run kernels. The first call has them compiled, so that tests
/// that run at once do not all compile them.
fn kernels_compile() -> bool {
    static COMPILED: Once = Once::new();
    let found = has_cpp_compiler();
    if found {
        COMPILED.call_once(|| drop(doctor("--device ascend-sim --only device", &[])));
    }
    found
}

/// The fields of a report that are measured, as JSON pointers.
const FIELDS: [&str; 14] = [
    "/gather_mask_count",
    "/int32_overflow",
    "/gather_rate",
    "/sync_all_cost",
    "/launch_cost",
    "/mte2_rows_in_flight",
    "/hugetlb_registration",
    "/largest_registration",
    "/rewritten_row_seen",
    "/match_latency",
    "/kernel_fault_code",
    "/h2d_bandwidth/request_s1",
    "/h2d_bandwidth/position_s2",
    "/h2d_bandwidth/balanced_s3",
];

/// Returns the field at a JSON pointer, which has a value or a reason.
fn field<'a>(report: &'a Value, name: &str) -> &'a Value {
    let field = report.pointer(name).unwrap_or_else(|| panic!("{name} in {report}"));
    let reason = field["reason"].as_str().unwrap_or_default();
    assert!(field.is_object() && field["value"].is_null() != reason.is_empty(), "{name}: {field}");
    field
}

/// Without a device the command succeeds, and the report says why each field has no value.
#[test]
fn a_missing_library_is_reported_as_no_device() {
    let (report, output) = report("nowhere", NOWHERE, &[]);
    let text = stdout(&output);
    assert!(output.status.success() && text.starts_with("skipped: no device"), "{text}");
    assert!(text.contains("/nowhere/libascendcl.so"), "{text}");
    assert!(report["no_device"].as_str().unwrap().contains("/nowhere/libascendcl.so"), "{report}");
    for name in FIELDS {
        assert!(field(&report, name)["value"].is_null(), "{name}");
    }
    for name in KernelName::ALL.map(|kernel| kernel.entry().to_str().unwrap()) {
        assert_eq!(report["kernels"][name]["status"], "not_run", "{report}");
    }
    let remark = report["cann"]["remarks"][0].as_str().unwrap();
    assert!(remark.contains("ASCEND_HOME_PATH"), "{report}");
    let output = doctor(&format!("{NOWHERE} --json -"), &[]);
    let only: Value = serde_json::from_slice(&output.stdout).expect("nothing but the report");
    assert_eq!(only["no_device"], report["no_device"]);
}

/// Each form holds the reason why there is no device, and every kernel and field by its name.
#[test]
fn every_form_holds_the_report() {
    for (name, skipped_on_stdout) in [("table", true), ("markdown", true), ("csv", false)] {
        let output = doctor(&format!("{NOWHERE} --format {name}"), &[]);
        assert!(output.status.success(), "{output:?}");
        let (shown, errors) = (stdout(&output), errors(&output));
        assert_eq!(shown.starts_with("skipped: no device"), skipped_on_stdout, "{shown}");
        assert_eq!(errors.contains("skipped: no device"), !skipped_on_stdout, "{errors}");
        let fields = FIELDS.iter().map(|field| field.trim_start_matches('/'));
        let kernels = KernelName::ALL.map(|kernel| kernel.entry().to_str().unwrap());
        for part in fields.chain(kernels).chain(["Machine", "not_run"]) {
            assert!(shown.contains(part), "{part} in {name}:\n{shown}");
        }
    }
    let (report, printed) = report("forms", &format!("{NOWHERE} --format json"), &[]);
    assert_eq!(serde_json::from_str::<Value>(&stdout(&printed)).unwrap(), report);
    let refused = doctor(&format!("{NOWHERE} --format csv --json -"), &[]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

/// The report says what an old CANN is too old for, also without a device.
#[test]
fn an_old_toolkit_is_named_with_what_it_is_too_old_for() {
    let home = folder("old_cann");
    fs::create_dir_all(home.join("compiler")).unwrap();
    fs::write(home.join("compiler/version.info"), "Version=8.1.RC1\n").unwrap();
    let variables = [("ASCEND_HOME_PATH", home.to_str().unwrap())];
    let (report, output) = report("old", NOWHERE, &variables);
    assert_eq!(report["cann"]["version"], "8.1.RC1");
    let remarks = report["cann"]["remarks"].to_string();
    let part = "8.1.RC1 is too old to build kernels: LocalTensor from position";
    assert!(remarks.contains(part) && remarks.contains("since 8.5"), "{remarks}");
    assert!(!remarks.contains("run an engine"), "{remarks}");
    assert!(errors(&output).contains(part));
}

#[test]
fn the_simulated_report_has_every_field() {
    if !kernels_compile() {
        return;
    }
    let options = "--device ascend-sim --largest 4194304 --format json";
    let (report, output) = report("simulated", options, &[]);
    let errors = errors(&output);
    assert!(output.status.success(), "{errors}");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed, report);
    for name in KernelName::ALL.map(|kernel| kernel.entry().to_str().unwrap()) {
        assert_eq!(report["kernels"][name]["status"], "good", "{report}");
        assert!(errors.contains(&format!("{name}: good")), "{errors}");
    }
    for name in FIELDS {
        field(&report, name);
    }
    assert_eq!(report["kernel_fault_code"]["value"], 507_035);
    // The simulated register does not interlock.
    assert_eq!(report["gather_mask_count"]["value"], "right after a wait only");
    let [count, plan] = ["the count of GatherMask: right after a wait only", "avsg_plan: "]
        .map(|line| errors.find(line).unwrap_or_else(|| panic!("{line} in {errors}")));
    assert!(count < plan, "{errors}");
    assert_eq!(report["rewritten_row_seen"]["value"], true);
    assert_eq!(report["largest_registration"]["value"], 4 << 20);
    assert_eq!(report["runtime_lacks"], serde_json::json!([]));
    // These checks ran, and have no value only because the simulator has no times.
    for name in ["gather_rate", "sync_all_cost", "launch_cost", "mte2_rows_in_flight"] {
        let reason = "the simulator has no times; only hardware gives this value";
        assert_eq!(report[name]["reason"], reason, "{name}");
    }
    assert_eq!(report["h2d_bandwidth"]["paper_gigabytes_per_second"], 105.0);
}

/// Returns the status and the reason of each kernel that a run with a fault of the simulator
/// reports, in the order of the checks. The report is written, and the exit status is 1.
fn kernels_with(fault: &str, only: &str, limit: &str) -> Vec<(String, String)> {
    let options = format!("--device ascend-sim --only {only} --limit {limit}");
    let name = fault.replace(['=', '/'], "_");
    let (report, output) = report(&name, &options, &[("AVSG_SIM", fault)]);
    assert_eq!(output.status.code(), Some(1), "{fault}: {output:?}");
    for name in FIELDS {
        field(&report, name);
    }
    let kernels = ["avsg_reset", "avsg_plan", "avsg_transfer", "avsg_append", "avsg_step"];
    let kernels = kernels.iter().filter_map(|name| report["kernels"].get(name));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    kernels.map(|kernel| (text(&kernel["status"]), text(&kernel["reason"]))).collect()
}

/// Returns the fault that sets a word of an array of a kernel.
fn corrupt(kernel: KernelName, arg: Arg, word: usize, value: i32) -> String {
    let number = kernel.args().iter().position(|&a| a == arg).unwrap();
    format!("corrupt={}/{number}/{word}/{value}", kernel.entry().to_str().unwrap())
}

/// A fault of the simulator, the check that is asked for, the expected status of each kernel, and
/// a part of the reason of the first kernel that is not right.
type Case<'a> = (&'a str, &'a str, &'a [&'a str], &'a str);

#[test]
fn a_kernel_that_hangs_faults_or_is_wrong_is_named() {
    if !kernels_compile() {
        return;
    }
    let table = corrupt(KernelName::Reset, Arg::Tables, 20, 5);
    let record = corrupt(KernelName::Plan, Arg::Record, 8, 65);
    let slot = corrupt(KernelName::Plan, Arg::Slot, 3, 0);
    let row = corrupt(KernelName::Transfer, Arg::Kv0, 0, 5);
    // The last word of the last slot, which no step uses. Only slots in blocks are compared whole.
    let unused = corrupt(KernelName::Transfer, Arg::Kv0, 2 * 256 * 1152 / 4 - 1, 5);
    let unused_reason =
        "with slots by a table of blocks and a slot_base: step 0: byte 589820 of the slots";
    let misses = "the device wrote 65 as a request's number of misses";
    let cases: [Case<'_>; 10] = [
        ("hang=avsg_reset", "plan", &["hung", "not_run"], "507046"),
        ("hang=avsg_plan", "transfer", &["good", "hung", "not_run"], "507046"),
        ("exception=avsg_transfer", "transfer", &["good", "good", "faulted"], "507035"),
        ("exception=avsg_append", "append", &["good", "faulted"], "507035"),
        ("hang=avsg_step", "step", &["good", "good", "good", "hung"], "507046"),
        (&table, "reset", &["wrong"], "word of a table 20 is 5, and the CPU's is -1"),
        (&record, "plan", &["good", "wrong"], misses),
        (&slot, "plan", &["good", "wrong"], "slot 3 is 0, and the CPU's is"),
        (&row, "transfer", &["good", "good", "wrong"], "slot 0 has not the row of id"),
        (&unused, "transfer", &["good", "good", "wrong"], unused_reason),
    ];
    for (fault, only, expected, reason) in cases {
        let kernels = kernels_with(fault, only, "20");
        let statuses: Vec<_> = kernels.iter().map(|(status, _)| status.as_str()).collect();
        assert_eq!(statuses, expected, "{fault}: {kernels:?}");
        let first = kernels.iter().find(|(status, _)| status != "good").unwrap();
        assert!(first.1.contains(reason), "{fault}: {kernels:?}");
    }
}

/// The simulator never returns from the wait for this kernel, like a driver that hangs.
#[test]
fn a_wait_that_never_returns_does_not_hang_the_doctor() {
    if !kernels_compile() {
        return;
    }
    // A loaded machine may need more time than the first limit for the kernel that does not hang.
    let run = |limit: &str| {
        let kernels = kernels_with("stall=avsg_append", "append", limit);
        println!("{limit} s: {kernels:?}");
        let [(reset, _), (append, reason)] = &kernels[..] else { panic!("{kernels:?}") };
        let named = reason.starts_with(&format!("running avsg_append: no answer within {limit} s"));
        reset == "good" && append == "hung" && named
    };
    assert!(run("4") || run("60"));
}

/// A runtime library that is opened by its path counts as a device, whose kernels are built by
/// CANN's CMake functions. The stand-in for those writes objects that the simulator can load.
#[test]
fn a_device_runs_the_objects_that_cann_builds() {
    if !avsg_testkit::tier::thorough() || !kernels_compile() {
        println!("skipped: it compiles a geometry, which the thorough tier does");
        return;
    }
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let library = deps.join("libavsg_ascendcl_sim.so");
    let home = folder("device_cann");
    let modules = home.join("compiler/tikcpp/ascendc_kernel_cmake");
    fs::create_dir_all(&modules).unwrap();
    fs::write(modules.join("ascendc.cmake"), "").unwrap();
    fs::write(home.join("compiler/version.info"), "Version=8.5.0\n").unwrap();
    let stand_in = concat!(env!("CARGO_MANIFEST_DIR"), "/../linker/tests/stand_in");
    let options = format!(
        "--library {} --k 64 --slots 256 --only step,append,sync-all,gather --limit 600",
        library.display()
    );
    let search = format!("{stand_in}:{}", std::env::var("PATH").unwrap());
    let variables = [("ASCEND_HOME_PATH", home.to_str().unwrap()), ("PATH", &search)];
    let (report, output) = report("device", &options, &variables);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        (&report["device"], &report["cann"]["version"]),
        (&"ascend".into(), &"8.5.0".into())
    );
    assert!(report["build"]["value"].is_string(), "{report}");
    // The clock of the library is simulated, so the rates mean nothing and may be infinite.
    FIELDS.iter().for_each(|name| _ = field(&report, name));
    assert!(report["sync_all_cost"]["value"].is_number(), "{report}");
}
