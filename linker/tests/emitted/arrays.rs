//! The arrays that a step of the test engine reads and writes.

use std::ptr::null_mut;

use avsg_device::request::record;

use super::shim::Launch;

/// One step's batch, as the engine takes it.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub k: usize,
    pub ids_stride: usize,
    pub ids: Vec<i32>,
    pub cu_q: Vec<i32>,
    pub state: Vec<i32>,
    pub generation: Vec<i32>,
    pub stable: Vec<i32>,
    pub seq: Vec<i32>,
    pub blocks: Vec<i32>,
    pub block_stride: usize,
}

impl Batch {
    /// Passes the inputs of a plan to a kernel.
    pub fn pass<'a>(&'a self, launch: Launch<'a>) -> Launch<'a> {
        let launch = launch.input(&self.ids).input(&self.cu_q).input(&self.state);
        let launch = launch.input(&self.generation).input(&self.stable).input(&self.seq);
        match self.blocks.is_empty() {
            true => launch.raw(null_mut()),
            false => launch.input(&self.blocks),
        }
    }
}

/// Outputs of a plan. Miss lists are cut to their lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub slot: Vec<i32>,
    pub valid: Vec<i32>,
    pub record: Vec<i32>,
    /// Positions, ids, slots and rows of the misses, per request.
    pub miss: Vec<[Vec<i32>; 4]>,
}

impl Plan {
    pub fn miss_count(&self) -> usize {
        self.miss.iter().map(|list| list[0].len()).sum()
    }
}

/// Initial value of the output arrays.
pub const UNTOUCHED: i32 = 0x7E7E_7E7E;

/// The output arrays of a plan.
#[derive(PartialEq, Eq)]
pub struct Outputs {
    pub slot: Vec<i32>,
    pub valid: Vec<i32>,
    pub miss: [Vec<i32>; 4],
    pub record: Vec<i32>,
}

impl Outputs {
    /// Returns arrays for some requests and rows of `k` slots, which nothing has written.
    pub fn untouched(requests: usize, rows: usize, k: usize) -> Self {
        let words = |n: usize| vec![UNTOUCHED; n];
        let miss = [(); 4].map(|()| words(rows * k));
        let record = words(requests * record::WORDS);
        Self { slot: words(rows * k), valid: words(rows), miss, record }
    }

    /// Passes the arrays to a kernel.
    pub fn pass<'a>(&'a mut self, launch: Launch<'a>) -> Launch<'a> {
        let launch = launch.device(&mut self.slot).device(&mut self.valid);
        let launch = self.miss.iter_mut().fold(launch, |launch, list| launch.device(list));
        launch.device(&mut self.record)
    }
}
