//! Random workloads of requests: a workload is plain numbers, and every number has a meaning, so that any
//! bytes make one (proptest shrinks it, the fuzzer mutates it).

mod draw;
mod drive;
mod player;
mod setting;
mod shape;
#[cfg(feature = "strategies")]
pub mod strategies;
mod verify;
mod world;

pub use draw::{DEVICE_SHAPES, EVERYTHING, PLAIN, long_workload, random_step};
pub use drive::{append, run, transfer};
pub use player::{Player, Turn};
pub use setting::Setting;
pub use shape::{OWN_ROWS, Shape};
pub use verify::cuts;

/// What happens to one request in one step. Fields are read modulo their ranges.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which state; a second naming in a step makes a padded request.
    pub who: u8,
    /// 0 join, 1 padded, 2 to 4 read only, 5 rollback, else decode.
    pub act: u8,
    /// N_q, from 0.
    pub tokens: u8,
    /// Accepted drafts.
    pub accept: u8,
    /// Where a rollback goes, which block is bad, and so on.
    pub pick: u16,
    /// The selection, repeated as often as needed.
    pub ids: Vec<u16>,
}

/// One step of the batch.
#[derive(Clone, Debug)]
pub struct Step {
    /// Which order of calls, strides and lengths.
    pub form: u8,
    /// Swaps the states of two requests when divisible by 8.
    pub swap: u8,
    /// The requests, in the order of the batch.
    pub requests: Vec<Request>,
}

/// A geometry and what happens on it.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The engine.
    pub shape: Shape,
    /// The steps.
    pub steps: Vec<Step>,
}
