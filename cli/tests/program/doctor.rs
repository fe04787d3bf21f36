//! Tests of `avsg doctor`: the report is written whatever happens, each field has a value or a
//! reason, and a kernel that hangs, faults or is wrong is named.

mod faults;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;
use std::sync::Once;

use serde_json::Value;

use crate::support::{command, errors, folder, has_cpp_compiler, stand_in_for_cann};

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
        COMPILED.call_once(|| drop(doctor("--device ascend-sim --only avsg_reset", &[])));
    }
    found
}

/// Returns a line of a report, which has a value or a reason.
fn line<'a>(report: &'a Value, name: &str) -> &'a Value {
    let line = report["lines"].get(name).unwrap_or_else(|| panic!("{name} in {report}"));
    assert!(!line["value"].is_null() || line["reason"].is_string(), "{name}: {line}");
    line
}

/// Returns whether the value of a line is the one that it expects, if it expects one.
fn is_expected(line: &Value) -> bool {
    let shown = line["value"].as_str().map_or_else(|| line["value"].to_string(), str::to_owned);
    line["expected"].as_str().is_none_or(|expected| expected == shown)
}

/// Without a device the command succeeds with one sentence, and the report says why it has no lines.
#[test]
fn a_missing_library_is_reported_as_no_device() {
    let (report, output) = report("nowhere", NOWHERE, &[]);
    let text = stdout(&output);
    assert!(output.status.success() && text.starts_with("skipped: no device"), "{text}");
    assert!(
        text.contains("/nowhere/libascendcl.so") && text.trim_end().lines().count() < 4,
        "{text}"
    );
    assert!(report["no_device"].as_str().unwrap().contains("libascendcl.so"), "{report}");
    assert_eq!(report["lines"], serde_json::json!({}));
    assert_eq!(report["versions"]["avsg"], env!("CARGO_PKG_VERSION"));
    let remark = report["cann"]["remarks"][0].as_str().unwrap();
    assert!(remark.contains("ASCEND_HOME_PATH"), "{report}");
    let output = doctor(&format!("{NOWHERE} --json -"), &[]);
    let only: Value = serde_json::from_slice(&output.stdout).expect("nothing but the report");
    assert_eq!(only["no_device"], report["no_device"]);
    assert!(errors(&output).starts_with("skipped: no device"), "{output:?}");
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
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_simulated_report_has_every_line() {
    if !kernels_compile() {
        return;
    }
    let (report, output) = report("simulated", "--device ascend-sim", &[]);
    let errors = errors(&output);
    assert!(output.status.success(), "{errors}");
    // The simulated register does not interlock.
    assert_eq!(line(&report, "gather_mask_count")["value"], "right after a wait only");
    assert_eq!(line(&report, "largest_registration")["value"], 4 << 20);
    assert_eq!(report["runtime_lacks"], serde_json::json!([]));
    let geometry = ["k", "slots", "row_bytes"].map(|name| report[name].as_u64());
    assert_eq!(geometry, [Some(64), Some(256), Some(1152)]);
    // Every kernel of the simulator takes 4 us, however often it repeats its work.
    let us = |name: &str| line(&report, name)["value"]["us"].as_f64();
    assert_eq!(["gather_2048", "host_rows_28_all", "sync_all"].map(us), [Some(0.0); 3]);
    assert!(["launch_all", "plan_hits", "append"].map(us).iter().all(|&us| us >= Some(4.0)));
    // Each line is on the page, which says of each what it decides.
    let (page, section) = (stdout(&output), include_str!("../../../docs/ascend.md"));
    assert!(page.starts_with("The kernels are good"), "{page}");
    let section = section.split("## What each line decides").nth(1).unwrap();
    let named: Vec<&str> = section.split('`').skip(1).step_by(2).collect();
    let is_named = |name: &str| {
        named.iter().any(|text| match text.strip_suffix('*') {
            Some(first) => name.starts_with(first),
            None => *text == name,
        })
    };
    let names = report["lines"].as_object().unwrap().keys();
    // Two builds, the kernels, what is left open, and times.
    assert_eq!(names.len(), 2 + 5 + 13 + 29, "{report}");
    for name in names {
        let found = line(&report, name);
        let may_lack = ["int32_overflow", "hugetlb_registration"].contains(&name.as_str());
        assert!(is_expected(found) || may_lack && found["value"].is_null(), "{name}: {found}");
        assert!(page.contains(name), "{name} is not in {page}");
        assert!(is_named(name), "docs/ascend.md does not say what {name} decides");
    }
}

/// The report holds no name of the machine or of the user, and no path, also in the reasons of what failed.
#[test]
fn the_report_names_neither_machine_nor_user() {
    let home = folder("somebody");
    let library = home.join("lib/libnothing.so");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let user = "somebody-else";
    let variables = [
        ("HOME", home.to_str().unwrap()),
        ("ASCEND_HOME_PATH", home.to_str().unwrap()),
        ("USER", user),
        ("LOGNAME", user),
        ("HOSTNAME", "node-of-somebody"),
    ];
    let current = std::env::current_dir().unwrap();
    let mut secrets = vec![user.to_owned(), "node-of-somebody".into(), "/tmp/".into()];
    secrets.extend([home.display().to_string(), current.display().to_string()]);
    secrets.extend([std::env::temp_dir().display().to_string(), host.trim().to_owned()]);
    let mut reports =
        vec![report("private", &format!("--library {}", library.display()), &variables)];
    if kernels_compile() {
        let faults = ("AVSG_SIM", "exception=avsg_probe_cast_8,hang=avsg_probe_gather_16");
        let only = "--device ascend-sim --only cast_int8_to_half,gather_16_bit";
        reports.push(report("private-sim", only, &[&variables[..], &[faults]].concat()));
    }
    for (report, _) in reports {
        let text = report.to_string();
        assert!(text.contains("reason") || text.contains("libnothing.so"), "{text}");
        for secret in secrets.iter().filter(|secret| secret.len() > 1) {
            assert!(!text.contains(secret.as_str()), "{secret} in {text}");
        }
    }
}

/// A word of a probe's result that differs is named, the property is not as expected, and nothing else changes.
#[test]
fn a_probe_that_finds_the_other_answer_says_so() {
    if !kernels_compile() {
        return;
    }
    let wrong_sum = "1 of 40 words differ: word 39 is 0x1, expected 0x410";
    let compared = "1 of 132 words differ: word 129 is 0xffffffff, expected 0x84210842";
    // The simulator sets one word of a kernel.
    let faults = ["neighbours/1/7/9", "sync_twice/1/1336/1", "select/1/129/-1", "count/1/0/0"];
    let faults = faults.map(|fault| format!("corrupt=avsg_probe_{fault}")).join(",");
    let expected = [
        ("neighbouring_stores", "1 of 2560 words differ: word 7 is 0x9, expected 0x8"),
        // Core 39 adds its own number and those of the cores 0 and 1 to 1000.
        ("sync_all_twice", wrong_sum),
        ("sync_all_captured", wrong_sum),
        ("select_after_gather_mask", compared),
        ("gather_mask_count", "right at once"),
        ("cast_int8_to_half", "as expected"),
    ];
    let options =
        format!("--device ascend-sim --only {}", expected.map(|(name, _)| name).join(","));
    let (report, output) = report("other", &options, &[("AVSG_SIM", &faults)]);
    assert!(output.status.success(), "{output:?}");
    for (name, value) in expected {
        let found = line(&report, name);
        assert_eq!(found["value"], value, "{found}");
        let said = errors(&output).contains(&format!("{name}: {value}, expected "));
        assert_eq!(said, !is_expected(found), "{name}: {output:?}");
    }
}

/// A probe that hangs, faults or never returns has a reason, and the others have their values.
#[test]
fn a_probe_that_hangs_or_faults_does_not_stop_the_others() {
    if !kernels_compile() {
        return;
    }
    let faults = "hang=avsg_probe_sync_twice,exception=avsg_probe_neighbours,exception=avsg_probe_gather,\
                  hang=avsg_probe_sync,corrupt=avsg_probe_count/1/1/3";
    let only =
        "neighbouring_stores,sync_all_twice,cast_int8_to_half,gather_mask_count,operations,sync";
    let options = format!("--device ascend-sim --limit 120 --only {only}");
    let (report, output) = report("probes", &options, &[("AVSG_SIM", faults)]);
    assert!(output.status.success(), "{output:?}");
    for (name, reason) in [
        ("sync_all_twice", "507046"),
        ("neighbouring_stores", "507035"),
        ("gather_mask_count", "3 of 64 counts are wrong after the wait"),
        ("gather_2048", "507035"),
        ("sync_all", "507046"),
    ] {
        let found = line(&report, name);
        assert!(found["reason"].as_str().unwrap_or_default().contains(reason), "{found}");
    }
    assert_eq!(line(&report, "cast_int8_to_half")["value"], "as expected");
    for name in ["vector_16", "flags_8", "scalars_16", "compact_8192"] {
        assert!(line(&report, name)["value"]["us"].is_f64(), "{name}");
    }
    assert!(report["lines"].get("launch_1").is_none(), "nobody asked for it: {report}");
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
    let library = deps.join("libavsg_ascendcl_sim.so").display().to_string();
    let (home, stand_in) = stand_in_for_cann("device_cann");
    fs::write(home.join("compiler/version.info"), "Version=8.5.0\n").unwrap();
    let run = |name: &str, only: &str, path: &str| {
        let options = format!("--library {library} --k 64 --slots 256 --only {only} --limit 600");
        let path = format!("{path}:{}", std::env::var("PATH").unwrap());
        let variables = [("ASCEND_HOME_PATH", home.to_str().unwrap()), ("PATH", &path)];
        let (report, output) = report(name, &options, &variables);
        assert!(output.status.success(), "{output:?}");
        report
    };
    let report = run("device", "avsg_step,avsg_append,sync,gather_mask_count", stand_in);
    let versions = (&report["device"], &report["cann"]["version"]);
    assert_eq!(versions, (&"ascend".into(), &"8.5.0".into()));
    assert_eq!(line(&report, "build")["value"], true, "{report}");
    assert_eq!(line(&report, "sync_all")["value"]["us"], 0.0, "{report}");
    // CANN may refuse a file of probes, and the others run.
    let refusing = folder("refusing_cmake");
    let script = format!(
        "#!/bin/sh\nif grep -qs avsg_probes_behaviour \"$2/CMakeLists.txt\"; then echo no calls; exit 1; fi\nexec {stand_in}/cmake \"$@\"\n"
    );
    fs::write(refusing.join("cmake"), script).unwrap();
    fs::set_permissions(refusing.join("cmake"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{stand_in}", refusing.display());
    let report = run("refused", "cast_int8_to_half,sync", &path);
    assert!(line(&report, "sync_all")["reason"].is_null(), "{report}");
    let reason = line(&report, "cast_int8_to_half")["reason"].as_str().unwrap();
    let parts = ["CANN refuses avsg_probes_behaviour", "no calls"];
    assert!(parts.iter().all(|part| reason.contains(part)), "{reason}");
    // The simulator, whose texts are in the same folder, does not care.
    let only = "--device ascend-sim --only cast_int8_to_half";
    let (report, _) = self::report("not_refused", only, &[]);
    assert_eq!(line(&report, "cast_int8_to_half")["value"], "as expected");
}
