//! The Ascend device over the simulated runtime, beside the CPU device.

mod caller_streams;
mod conformance;
mod embedded;
mod faults;
mod lockstep;
mod native;
mod plan_order;
mod queued_faults;
mod random;
mod scenario;
mod stand;
mod streams;
mod traced;
mod traces;
