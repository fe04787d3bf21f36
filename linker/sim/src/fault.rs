//! Injected faults: the calls that fail and the launches that hang or raise an exception.

use std::collections::BTreeMap;

use crate::sys;

/// The failure of a call: its code, and the text for `aclGetRecentErrMsg`.
#[derive(Clone, Debug)]
pub(crate) struct CallFailure {
    pub code: i32,
    pub text: String,
}

/// The result of a simulated function.
pub(crate) type Outcome<T = ()> = Result<T, CallFailure>;

/// Returns a failure with a code.
pub(crate) fn fail<T>(code: i32, text: impl Into<String>) -> Outcome<T> {
    Err(CallFailure { code, text: text.into() })
}

/// Returns the failure of an invalid argument.
pub(crate) fn invalid<T>(text: impl Into<String>) -> Outcome<T> {
    fail(sys::ACL_ERROR_RT_PARAM_INVALID, text)
}

/// A failure of calls that is to be injected.
#[derive(Clone, Debug)]
pub(crate) enum CallFault {
    /// Fails the n-th call of a function: name, n and code.
    Call(String, usize, i32),
    /// Fails the n-th call of any function: n and code.
    Any(usize, i32),
    /// Loses the device from the n-th call of any function on.
    Lose(usize),
}

/// A fault of a launch that is to be injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchFault {
    /// The kernel never ends, and a wait for it returns after its time limit.
    Hang,
    /// The kernel never ends, and neither does a wait for it: the process must be killed.
    Stall,
    /// This block raises an exception.
    Exception(u32),
    /// The kernel runs, and then a word of an array has another value.
    Corrupt {
        /// Number of the argument that is the array's address, from 0.
        arg: usize,
        /// Number of the word in the array, from 0.
        word: usize,
        /// The value that the word gets.
        value: i32,
    },
}

impl LaunchFault {
    /// Returns the fault of an option such as `corrupt=avsg_plan/15/8/7`, and the kernel of which
    /// every launch has it.
    pub(crate) fn from_option(name: &str, value: &str) -> Option<(String, Self)> {
        let mut parts = value.split('/');
        let kernel = parts.next().filter(|kernel| !kernel.is_empty())?.to_owned();
        let fault = match name {
            "hang" => Self::Hang,
            "stall" => Self::Stall,
            "exception" => Self::Exception(0),
            "corrupt" => Self::Corrupt {
                arg: parts.next()?.parse().ok()?,
                word: parts.next()?.parse().ok()?,
                value: parts.next()?.parse().ok()?,
            },
            _ => return None,
        };
        parts.next().is_none().then_some((kernel, fault))
    }
}

/// Faults to inject, and counts of calls and launches.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub call_faults: Vec<CallFault>,
    /// Faults of launches by the number of the launch, from 1.
    pub launch_faults: BTreeMap<usize, LaunchFault>,
    pub launches: usize,
    pub lost: bool,
    calls: BTreeMap<&'static str, usize>,
    /// Every call so far, in order.
    pub log: Vec<&'static str>,
}

impl Faults {
    /// Counts a call and returns the failure that is injected into it.
    pub fn on_call(&mut self, name: &'static str) -> Outcome {
        let count = self.calls.entry(name).or_insert(0);
        *count += 1;
        let nth = *count;
        self.log.push(name);
        let total = self.log.len();
        for call_fault in &self.call_faults {
            let (hit, code) = match call_fault {
                CallFault::Call(call, n, code) => (call == name && *n == nth, *code),
                CallFault::Any(n, code) => (*n == total, *code),
                CallFault::Lose(n) => {
                    self.lost |= total >= *n;
                    continue;
                }
            };
            if hit {
                return fail(code, format!("injected into call {nth} of {name}"));
            }
        }
        // Calls that need no device, and the reset, succeed after the loss of the device.
        let local =
            ["aclInit", "aclrtSetCurrentContext", "aclrtGetCurrentContext", "aclrtResetDevice"];
        if self.lost && !local.contains(&name) {
            return fail(sys::ACL_ERROR_RT_DRV_INTERNAL_ERROR, "the device is lost; reset it");
        }
        Ok(())
    }

    /// Counts a launch and returns the fault that is injected into it.
    pub fn on_launch(&mut self) -> Option<LaunchFault> {
        self.launches += 1;
        self.launch_faults.remove(&self.launches)
    }
}
