//! The checks of `avsg doctor`, in the order in which they run. Each one runs in a process of its own.

use anyhow::Result;
use avsg::device::kernels::KernelName::{self, Append, Plan, Reset, Step, Transfer};
use avsg::device::params::{Lifetime, Params};
use serde_json::Value;

use super::harness::Harness;
use super::{facts, words};

/// A check.
pub struct Check {
    /// The name on the command line, and of the line in the report unless it measures several.
    pub name: &'static str,
    /// The value that kernels and host are written for; empty if the value decides only figures.
    pub expected: &'static str,
    /// The kernels that must be right before this check means anything.
    pub needs: &'static [&'static str],
    pub work: CheckKind,
    /// Whether the kernels copy every function to its callers, in place of calling those with many.
    pub inlined: bool,
    /// Makes the geometry of the check's engines from the plain one: one token, constant lifetimes, no pages.
    pub vary: fn(Params) -> Params,
}

/// What a check does.
#[derive(Clone, Copy)]
pub enum CheckKind {
    /// Runs each of these kernels, alone or after those that it needs.
    Kernels(&'static [KernelName]),
    /// Examines what the documentation leaves open.
    Fact(fn(&Harness) -> Result<Value>),
    /// Measures the rows of `times::ROWS` that have the name of the check.
    Times,
}

const fn plain(name: &'static str, work: CheckKind, needs: &'static [&'static str]) -> Check {
    Check { name, expected: "", needs, work, inlined: false, vary: |plain| plain }
}

const fn kernel(
    name: &'static str,
    kernels: &'static [KernelName],
    needs: &'static [&'static str],
) -> Check {
    Check { expected: "good", ..plain(name, CheckKind::Kernels(kernels), needs) }
}

/// Returns the check of all kernels in another geometry than the plain one.
const fn geometry(name: &'static str, vary: fn(Params) -> Params) -> Check {
    Check { vary, ..kernel(name, &[Reset, Plan, Transfer, Append, Step], &[]) }
}

const fn fact(
    name: &'static str,
    expected: &'static str,
    find: fn(&Harness) -> Result<Value>,
) -> Check {
    Check { expected, ..plain(name, CheckKind::Fact(find), &[]) }
}

const fn times(name: &'static str, needs: &'static [&'static str]) -> Check {
    plain(name, CheckKind::Times, needs)
}

/// All checks. The last one makes a kernel fault.
pub const CHECKS: [Check; 28] = [
    fact("gather_mask_count", "", words::gather_count),
    kernel("avsg_reset", &[Reset], &[]),
    kernel("avsg_plan", &[Plan], &["avsg_reset"]),
    kernel("avsg_transfer", &[Transfer], &["avsg_reset", "avsg_plan"]),
    kernel("avsg_append", &[Append], &["avsg_reset"]),
    kernel("avsg_step", &[Step], &["avsg_reset", "avsg_plan", "avsg_transfer"]),
    geometry("four_tokens", four_tokens),
    geometry("learned", |plain| Params { lifetime: Lifetime::Learned, ..four_tokens(plain) }),
    geometry("pages", |plain| Params { page: 64, ..plain }),
    geometry("paper_table", |plain| Params::paper(plain.k, 1, 1 << plain.slots.ilog2())),
    fact("neighbouring_stores", words::AS_EXPECTED, words::neighbouring_stores),
    fact("sync_all_twice", words::AS_EXPECTED, |harness| words::sync_all_twice(harness, false)),
    fact("sync_all_captured", words::AS_EXPECTED, |harness| words::sync_all_twice(harness, true)),
    fact("select_after_gather_mask", words::AS_EXPECTED, words::select_after_gather_mask),
    fact("gather_16_bit", words::AS_EXPECTED, words::gather_16_bit),
    // Every value of int8, and of int16 the numbers from -256 to 255.
    fact("cast_int8_to_half", words::AS_EXPECTED, |harness| {
        words::cast(harness, c"avsg_probe_cast_8", 128, |at| (at as u8).cast_signed().into())
    }),
    fact("cast_int16_to_half", words::AS_EXPECTED, |harness| {
        words::cast(harness, c"avsg_probe_cast_16", 256, |at| at as i16 - 256)
    }),
    fact("int32_overflow", "", words::overflow),
    fact("hugetlb_registration", "true", facts::hugetlb),
    fact("largest_registration", "", facts::largest),
    Check { needs: &["avsg_step"], ..fact("rewritten_row_seen", "true", facts::rewritten_row) },
    times("code", &[]),
    times("operations", &[]),
    times("sync", &[]),
    times("launches", &[]),
    times("kernels", &["avsg_plan", "avsg_transfer", "avsg_append", "avsg_step"]),
    Check { inlined: true, ..times("inlined", &["avsg_plan"]) },
    Check { needs: &["avsg_plan"], ..fact("kernel_fault_code", "507035", facts::fault_code) },
];

/// Returns a geometry of four tokens, or of as many as fit its slots.
fn four_tokens(plain: Params) -> Params {
    Params { tokens: (plain.slots / plain.k).min(4), ..plain }
}

impl Check {
    /// Returns the check of a name; `None` for the description of the device.
    pub fn named(name: &str) -> Option<&'static Self> {
        CHECKS.iter().find(|check| check.name == name)
    }
}
