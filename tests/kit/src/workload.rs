//! Random workloads of requests. A workload consists of plain numbers that are read modulo their
//! ranges, so that any bytes form a valid workload that proptest can shrink and the fuzzer can
//! mutate.

mod draw;
mod driver;
mod pool_model;
mod run;
mod shape;
mod verify;

pub use draw::{DEVICE_SHAPES, long_workload, random_step};
pub use driver::{StepInput, WorkloadDriver};
pub use run::{append, run, transfer};
pub use shape::{EngineSetting, Shape};

/// One request in one step. Fields are read modulo their ranges.
#[derive(Clone, Debug)]
pub struct Request {
    /// The state. A second request of a step with the same state is padded.
    pub state: u8,
    /// 0: the request joins, 1: padded, 2 to 4: read-only, 5: rollback, 6 and 7: decode.
    pub action: u8,
    /// Number of tokens, from 0 to the N_q of the engine.
    pub tokens: u8,
    /// Number of tokens accepted after the step.
    pub accepted: u8,
    /// Random number for the other choices: the length after a rollback, an invalid block, and so
    /// on.
    pub choice: u16,
    /// Numbers from which the selected ids are made, repeated as often as needed.
    pub ids: Vec<u16>,
}

/// One step of a workload.
#[derive(Clone, Debug)]
pub struct Step {
    /// The order of calls, K, and the strides of `ids` and of the block tables.
    pub form: u8,
    /// Swaps the states of two requests if it is divisible by 8.
    pub swap: u8,
    /// The requests, in the order of the batch.
    pub requests: Vec<Request>,
}

/// A geometry and the steps that an engine of it runs.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The geometry of the engine.
    pub shape: Shape,
    /// The steps.
    pub steps: Vec<Step>,
}
