//! Failures on order: which call, which launch, and what becomes of it.

use std::collections::BTreeMap;

use crate::sys;

/// Why a call failed: the code, and a sentence for `aclGetRecentErrMsg`.
#[derive(Clone, Debug)]
pub(crate) struct Fail {
    pub code: i32,
    pub text: String,
}

/// What a simulated function returns.
pub(crate) type Outcome<T = ()> = Result<T, Fail>;

/// Refuses with a code.
pub(crate) fn fail<T>(code: i32, text: impl Into<String>) -> Outcome<T> {
    Err(Fail { code, text: text.into() })
}

/// Refuses an argument.
pub(crate) fn invalid<T>(text: impl Into<String>) -> Outcome<T> {
    fail(sys::ACL_ERROR_RT_PARAM_INVALID, text)
}

/// A failure that waits for its call.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    /// The n-th call of a function.
    Call(String, usize, i32),
    /// The n-th call of any function.
    Any(usize, i32),
    /// From the n-th call of any function on, the device is gone.
    Lose(usize),
}

/// What happens to a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accident {
    /// It never ends.
    Hang,
    /// A block raises an exception.
    Exception(u32),
}

/// Orders and counts.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub orders: Vec<Order>,
    /// By the number of the launch, from 1.
    pub accidents: BTreeMap<usize, Accident>,
    pub launches: usize,
    pub lost: bool,
    calls: BTreeMap<&'static str, usize>,
    /// Every call so far, in order.
    pub log: Vec<&'static str>,
}

impl Faults {
    /// Notes a call and says whether it is to fail.
    pub fn enter(&mut self, name: &'static str) -> Outcome {
        let count = self.calls.entry(name).or_insert(0);
        *count += 1;
        let nth = *count;
        self.log.push(name);
        let total = self.log.len();
        for order in &self.orders {
            let (hit, code) = match order {
                Order::Call(call, n, code) => (call == name && *n == nth, *code),
                Order::Any(n, code) => (*n == total, *code),
                Order::Lose(n) => {
                    self.lost |= total >= *n;
                    continue;
                }
            };
            if hit {
                return fail(code, format!("injected into call {nth} of {name}"));
            }
        }
        // What needs no device goes on without one; so does the reset that gives it up.
        let local = ["aclInit", "aclrtSetCurrentContext", "aclrtGetCurrentContext"];
        if self.lost && !local.contains(&name) && !name.starts_with("aclrtResetDevice") {
            return fail(sys::ACL_ERROR_RT_DRV_INTERNAL_ERROR, "the device is lost");
        }
        Ok(())
    }

    /// The accident of the launch that begins now.
    pub fn launch(&mut self) -> Option<Accident> {
        self.launches += 1;
        self.accidents.remove(&self.launches)
    }
}
