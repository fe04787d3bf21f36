//! The checks of `avsg doctor`, in the order in which they run. Each one runs in a process of its own.

use anyhow::Result;
use avsg::device::kernels::KernelName::{self, Append, Plan, Reset, Step, Transfer};
use avsg::device::params::{Lifetime, Params};
use serde_json::Value;

use super::facts;
use super::harness::Harness;
use super::words::{self, AS_EXPECTED};
use CheckKind::{Fact, Kernels, Times};

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

/// Returns a check with kernels of the plain geometry.
const fn check(
    name: &'static str,
    expected: &'static str,
    needs: &'static [&'static str],
    work: CheckKind,
) -> Check {
    Check { name, expected, needs, work, inlined: false, vary: |plain| plain }
}

/// Returns the check of all kernels in another geometry than the plain one.
const fn geometry(name: &'static str, vary: fn(Params) -> Params) -> Check {
    let all = Kernels(&[Reset, Plan, Transfer, Append, Step]);
    Check { vary, ..check(name, "good", &[], all) }
}

/// All checks. The last one makes a kernel fault.
pub const CHECKS: [Check; 28] = [
    check("gather_mask_count", "", &[], Fact(words::gather_count)),
    check("avsg_reset", "good", &[], Kernels(&[Reset])),
    check("avsg_plan", "good", &["avsg_reset"], Kernels(&[Plan])),
    check("avsg_transfer", "good", &["avsg_reset", "avsg_plan"], Kernels(&[Transfer])),
    check("avsg_append", "good", &["avsg_reset"], Kernels(&[Append])),
    check("avsg_step", "good", &["avsg_reset", "avsg_plan", "avsg_transfer"], Kernels(&[Step])),
    geometry("four_tokens", four_tokens),
    geometry("learned", |plain| Params { lifetime: Lifetime::Learned, ..four_tokens(plain) }),
    geometry("pages", |plain| Params { page: 64, ..plain }),
    geometry("paper_table", |plain| Params::paper(plain.k, 1, 1 << plain.slots.ilog2())),
    check("neighbouring_stores", AS_EXPECTED, &[], Fact(words::neighbouring_stores)),
    check("sync_all_twice", AS_EXPECTED, &[], Fact(|on| words::sync_all_twice(on, false))),
    check("sync_all_captured", AS_EXPECTED, &[], Fact(|on| words::sync_all_twice(on, true))),
    check("select_after_gather_mask", AS_EXPECTED, &[], Fact(words::select_after_gather_mask)),
    check("gather_16_bit", AS_EXPECTED, &[], Fact(words::gather_16_bit)),
    check("cast_int8_to_half", AS_EXPECTED, &[], Fact(words::cast_int8)),
    check("cast_int16_to_half", AS_EXPECTED, &[], Fact(words::cast_int16)),
    check("int32_overflow", "", &[], Fact(words::overflow)),
    check("hugetlb_registration", "true", &[], Fact(facts::hugetlb)),
    check("largest_registration", "", &[], Fact(facts::largest)),
    check("rewritten_row_seen", "true", &["avsg_step"], Fact(facts::rewritten_row)),
    check("code", "", &[], Times),
    check("operations", "", &[], Times),
    check("sync", "", &[], Times),
    check("launches", "", &[], Times),
    check("kernels", "", &["avsg_plan", "avsg_transfer", "avsg_append", "avsg_step"], Times),
    Check { inlined: true, ..check("inlined", "", &["avsg_plan"], Times) },
    check("kernel_fault_code", "507035", &["avsg_plan"], Fact(facts::fault_code)),
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
