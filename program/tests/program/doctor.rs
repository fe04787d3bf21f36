//! Tests of `avsg doctor`: the report is written whatever happens, each field has a value or a
//! reason, and a kernel that hangs, faults or is wrong is named.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;
use std::sync::Once;

use avsg::device::kernels::{Arg, KernelName};
use avsg::device::learned::part;
use avsg::device::memory::links_end;
use avsg::device::params::{Lifetime, Params};
use serde_json::Value;

use crate::support::{
    command, errors, folder, has, has_cpp_compiler, simulator_library, stand_in_for_cann,
};

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

/// Without a device the command succeeds with one sentence, and the report says why it has no lines, and what an old CANN
/// is too old for.
#[test]
fn a_missing_library_is_reported_as_no_device_and_an_old_toolkit_is_named() {
    let (missing, output) = report("nowhere", NOWHERE, &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.starts_with("skipped: no device"), "{text}");
    has(&text, &["/nowhere/libascendcl.so"]);
    assert!(text.trim_end().lines().count() < 4, "{text}");
    has(missing["no_device"].as_str().unwrap(), &["libascendcl.so"]);
    assert_eq!(missing["lines"], serde_json::json!({}));
    assert_eq!(missing["versions"]["avsg"], env!("CARGO_PKG_VERSION"));
    has(missing["cann"]["remarks"][0].as_str().unwrap(), &["ASCEND_HOME_PATH"]);
    let output = doctor(&format!("{NOWHERE} --json -"), &[]);
    let only: Value = serde_json::from_slice(&output.stdout).expect("nothing but the report");
    assert_eq!(only["no_device"], missing["no_device"]);
    assert!(errors(&output).starts_with("skipped: no device"), "{output:?}");

    let home = folder("old_cann");
    fs::create_dir_all(home.join("compiler")).unwrap();
    fs::write(home.join("compiler/version.info"), "Version=8.1.RC1\n").unwrap();
    let (old, output) = report("old", NOWHERE, &[("ASCEND_HOME_PATH", home.to_str().unwrap())]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(old["cann"]["version"], "8.1.RC1");
    let remarks = old["cann"]["remarks"].to_string();
    let part = "8.1.RC1 is too old to build kernels: LocalTensor from position";
    has(&remarks, &[part, "since 8.5"]);
    assert!(!remarks.contains("run an engine"), "{remarks}");
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
    // Every kernel of the simulator takes 1 us, however often it repeats its work.
    let us = |name: &str| line(&report, name)["value"]["us"].as_f64();
    assert_eq!(["gather_2048", "host_rows_28_all", "sync_all"].map(us), [Some(0.0); 3]);
    assert!(["launch_all", "plan_hits", "append"].map(us).iter().all(|&us| us >= Some(1.0)));
    // Each line is on the page, which says of each what it decides.
    let page = String::from_utf8_lossy(&output.stdout);
    let section = include_str!("../../../docs/ascend.md");
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
    // The build, the kernels, their other geometries, what is left open, and sizes and times.
    assert_eq!(names.len(), 1 + 5 + 4 + 13 + 37, "{report}");
    for name in names {
        let found = line(&report, name);
        let may_lack = ["int32_overflow", "hugetlb_registration"].contains(&name.as_str())
            || name.starts_with("code_");
        assert!(is_expected(found) || may_lack && found["value"].is_null(), "{name}: {found}");
        has(&page, &[name]);
        assert!(is_named(name), "docs/ascend.md does not say what {name} decides");
    }
}

/// The report holds no name of the machine or of the user, and no path, also in the reasons of what failed.
#[test]
fn the_report_names_neither_machine_nor_user() {
    let home = folder("somebody").display().to_string();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let (user, node) = ("somebody-else", "node-of-somebody");
    let variables =
        [("HOME", &home[..]), ("ASCEND_HOME_PATH", &home), ("USER", user), ("LOGNAME", user)];
    let variables = [&variables[..], &[("HOSTNAME", node)]].concat();
    let folders = [std::env::current_dir().unwrap(), std::env::temp_dir()];
    let [current, temporary] = folders.map(|folder| folder.display().to_string());
    let secrets = [user, node, "/tmp/", &home, &current, &temporary, host.trim()];
    let library = format!("--library {home}/lib/libnothing.so");
    let mut reports = vec![report("private", &library, &variables)];
    if kernels_compile() {
        let faults = ("AVSG_SIM", "exception=avsg_probe_cast_8,hang=avsg_probe_gather_16");
        let only = "--device ascend-sim --only cast_int8_to_half,gather_16_bit";
        reports.push(report("private-sim", only, &[&variables[..], &[faults]].concat()));
    }
    for (report, _) in reports {
        let text = report.to_string();
        assert!(text.contains("reason") || text.contains("libnothing.so"), "{text}");
        for secret in secrets.into_iter().filter(|secret| secret.len() > 1) {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

/// A word of a probe's result that differs is named, and the property is not as expected. A probe that hangs, faults or
/// never returns has a reason. Nothing else changes.
#[test]
fn a_probe_that_finds_the_other_answer_hangs_or_faults_says_so_and_the_others_run() {
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
    let run = |name: &str, only: &str, faults: &str| {
        let options = format!("--device ascend-sim --limit 120 --only {only}");
        let (report, output) = report(name, &options, &[("AVSG_SIM", faults)]);
        assert!(output.status.success(), "{output:?}");
        (report, errors(&output))
    };
    let (report, errors) = run("other", &expected.map(|(name, _)| name).join(","), &faults);
    for (name, value) in expected {
        let found = line(&report, name);
        assert_eq!(found["value"], value, "{found}");
        let said = errors.contains(&format!("{name}: {value}, expected "));
        assert_eq!(said, !is_expected(found), "{name}: {errors}");
    }

    let faults = "hang=avsg_probe_sync_twice,exception=avsg_probe_neighbours,exception=avsg_probe_gather,\
                  hang=avsg_probe_sync,corrupt=avsg_probe_count/1/1/3";
    let only =
        "neighbouring_stores,sync_all_twice,cast_int8_to_half,gather_mask_count,operations,sync";
    let (report, _) = run("probes", only, faults);
    for (name, reason) in [
        ("sync_all_twice", "507046"),
        ("neighbouring_stores", "507035"),
        ("gather_mask_count", "3 of 64 counts are wrong after the wait"),
        ("gather_2048", "507035"),
        ("sync_all", "507046"),
    ] {
        has(line(&report, name)["reason"].as_str().unwrap_or_default(), &[reason]);
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
    let library = simulator_library().display().to_string();
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
    has(reason, &["CANN refuses avsg_probes_behaviour", "no calls"]);
    // The simulator, whose texts are in the same folder, does not care.
    let only = "--device ascend-sim --only cast_int8_to_half";
    let (report, _) = self::report("not_refused", only, &[]);
    assert_eq!(line(&report, "cast_int8_to_half")["value"], "as expected");
}

/// Returns the status and the reason of each kernel that a run with faults of the simulator
/// reports, in the order of the checks. The report is written, and the exit status is 1.
fn kernels_with(faults: &str, only: &str, limit: &str) -> Vec<(String, String)> {
    let options = format!("--device ascend-sim --only {only} --limit {limit}");
    let name = faults.replace(['=', '/'], "_");
    let (report, output) = report(&name, &options, &[("AVSG_SIM", faults)]);
    assert_eq!(output.status.code(), Some(1), "{faults}: {output:?}");
    assert!(output.stdout.starts_with(b"A kernel is not good; "), "{faults}: {output:?}");
    let kernels = ["avsg_reset", "avsg_plan", "avsg_transfer", "avsg_append", "avsg_step"];
    let geometries = ["four_tokens", "learned", "pages", "paper_table"];
    let kernels = kernels.iter().chain(&geometries).filter_map(|name| report["lines"].get(name));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    kernels.map(|kernel| (text(&kernel["value"]), text(&kernel["reason"]))).collect()
}

/// Returns the fault that sets a word of an array of a kernel.
fn corrupt(kernel: KernelName, arg: Arg, word: usize, value: i32) -> String {
    let number = kernel.args().iter().position(|&a| a == arg).unwrap();
    format!("corrupt={}/{number}/{word}/{value}", kernel.entry().to_str().unwrap())
}

/// Each run has its own process, so faults of independent kernels are in one. In other geometries a word is wrong that engines
/// of the plain one do not have, or have with another meaning.
#[test]
fn a_kernel_that_hangs_faults_or_is_wrong_in_any_geometry_is_named() {
    if !kernels_compile() {
        return;
    }
    let plain = Params { lifetime: Lifetime::Constant(127), ..Params::compact(64, 1, 256) };
    let learned = Params { tokens: 4, lifetime: Lifetime::Learned, ..plain };
    let value = links_end(&learned) + part::VALUES + 200;
    let link = links_end(&Params::paper(64, 1, 256)) - 1;
    // The last word of the slots, which are in another order with a table of blocks.
    let last = 2 * 256 * 1152 / 4 - 1;
    let unused = "avsg_transfer: step 0: slot 255 of state 1: word 287 is 5";
    let placed = "with slots by a table of blocks and a slot_base: step 0: slot 63 of state 0: word 287 is 0";
    let in_plan = format!("avsg_plan: step 0: word of a table {value} is 9");
    let in_reset = format!("avsg_reset: step 0: word of a table {link} is 9");
    let expect = |faults: &str, only: &str, expected: &[(&str, &str)]| {
        let kernels = kernels_with(faults, only, "60");
        assert_eq!(kernels.len(), expected.len(), "{faults}: {kernels:?}");
        for ((status, reason), expected) in kernels.iter().zip(expected) {
            assert!(status == expected.0 && reason.contains(expected.1), "{faults}: {kernels:?}");
        }
    };
    let (good, faulted, hung) = (("good", ""), ("faulted", "507035"), ("hung", "507046"));
    let both = "hang=avsg_step,exception=avsg_append";
    expect(both, "avsg_append,avsg_step", &[good, good, good, faulted, hung]);
    use {Arg::*, KernelName::*};
    let wrong = ("wrong", "word of a table 20 is 5, and the CPU's is -1");
    expect(&corrupt(Reset, Tables, 20, 5), "avsg_plan", &[wrong, ("not_run", "avsg_reset")]);
    let wrote = "the device wrote 65 as a request's number of misses";
    // The kernel and the word that is wrong, the check that is asked for, the number of kernels before it, and the reason.
    for ((kernel, arg, word, value), only, before, reason) in [
        ((Plan, Summary, 8, 65), "avsg_plan", 1, wrote),
        ((Transfer, Kv0, last, 5), "avsg_transfer", 2, unused),
        ((Transfer, Kv0, last, 0), "avsg_transfer", 2, placed),
        ((Plan, Slot, 8 * 64 - 1, 0), "four_tokens", 0, "avsg_plan: step 0: slot 511 is 0"),
        ((Plan, Tables, value, 9), "learned", 0, &in_plan),
        ((Plan, MissRow, 0, 7), "pages", 0, "avsg_plan: step 0: word of the miss lists "),
        ((Reset, Tables, link, 9), "paper_table", 0, &in_reset),
    ] {
        let expected = [&[good].repeat(before)[..], &[("wrong", reason)]].concat();
        expect(&corrupt(kernel, arg, word, value), only, &expected);
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
        let kernels = kernels_with("stall=avsg_append", "avsg_append", limit);
        println!("{limit} s: {kernels:?}");
        let [(reset, _), (append, reason)] = &kernels[..] else { panic!("{kernels:?}") };
        let named = reason.starts_with(&format!("running avsg_append: no answer within {limit} s"));
        reset == "good" && append == "hung" && named
    };
    assert!(run("4") || run("60"));
}
