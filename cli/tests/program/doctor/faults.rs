//! Kernels that hang, fault or give wrong results: the simulator makes them do so.

use avsg::device::kernels::{Arg, KernelName};
use serde_json::Value;

use super::{kernels_compile, report};

/// Returns the status and the reason of each kernel that a run with a fault of the simulator
/// reports, in the order of the checks. The report is written, and the exit status is 1.
fn kernels_with(fault: &str, only: &str, limit: &str) -> Vec<(String, String)> {
    let options = format!("--device ascend-sim --only {only} --limit {limit}");
    let name = fault.replace(['=', '/'], "_");
    let (report, output) = report(&name, &options, &[("AVSG_SIM", fault)]);
    assert_eq!(output.status.code(), Some(1), "{fault}: {output:?}");
    assert!(output.stdout.starts_with(b"A kernel is not good; "), "{fault}: {output:?}");
    let kernels = ["avsg_reset", "avsg_plan", "avsg_transfer", "avsg_append", "avsg_step"];
    let kernels = kernels.iter().filter_map(|name| report["lines"].get(name));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    kernels.map(|kernel| (text(&kernel["value"]), text(&kernel["reason"]))).collect()
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
        ("hang=avsg_reset", "avsg_plan", &["hung", "not_run"], "507046"),
        ("hang=avsg_plan", "avsg_transfer", &["good", "hung", "not_run"], "507046"),
        ("exception=avsg_transfer", "avsg_transfer", &["good", "good", "faulted"], "507035"),
        ("exception=avsg_append", "avsg_append", &["good", "faulted"], "507035"),
        ("hang=avsg_step", "avsg_step", &["good", "good", "good", "hung"], "507046"),
        (&table, "avsg_reset", &["wrong"], "word of a table 20 is 5, and the CPU's is -1"),
        (&record, "avsg_plan", &["good", "wrong"], misses),
        (&slot, "avsg_plan", &["good", "wrong"], "slot 3 is 0, and the CPU's is"),
        (&row, "avsg_transfer", &["good", "good", "wrong"], "slot 0 has not the row of id"),
        (&unused, "avsg_transfer", &["good", "good", "wrong"], unused_reason),
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
        let kernels = kernels_with("stall=avsg_append", "avsg_append", limit);
        println!("{limit} s: {kernels:?}");
        let [(reset, _), (append, reason)] = &kernels[..] else { panic!("{kernels:?}") };
        let named = reason.starts_with(&format!("running avsg_append: no answer within {limit} s"));
        reset == "good" && append == "hung" && named
    };
    assert!(run("4") || run("60"));
}
