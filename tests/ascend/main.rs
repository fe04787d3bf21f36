//! The Ascend device over the simulated runtime, beside the CPU device.

mod conformance;
mod faults;
#[path = "../life/life.rs"]
mod life;
mod lives;
mod lockstep;
mod native;
mod queued_faults;
mod random;
mod scenario;
mod stand;
mod streams;
mod traced;
mod traces;
