//! Test support for AVSG: row contents that identify their row ([`content`]), the construction of
//! batches ([`batch`], [`fresh`], [`device_arrays`]), disks that fail ([`faulty_disk`]), the form of errors ([`refusal`]), turns of tests that need the
//! process ([`alone`]), random workloads that drive an engine ([`workload`]), and the verification of each step's rows
//! ([`exact`]), of what a state holds ([`held`]) and of its other results ([`workload`]).

pub mod allocations;
pub mod alone;
pub mod batch;
pub mod exact;
pub mod faulty_disk;
pub mod fixture;
pub mod held;
pub mod memory;
pub mod refusal;
pub mod scratch;
pub mod step_result;
#[cfg(test)]
mod tests;
pub mod tier;
pub mod workload;

pub use avsg_measure::{content, device_arrays, fresh, splitmix};
