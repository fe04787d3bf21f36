//! The arrays that a step of the test engine reads and writes.

use std::ptr::null_mut;

use super::ShimLaunch;
use avsg_device::request::summary;
use avsg_device::tiling::{Launch, Segment};
use avsg_sim::shim::Plain;

/// Logarithms of the rows of a block in a chunk and of the slots of one in the device buffer.
pub const HOST_BLOCK_SHIFT: u32 = 2;
pub const KV_BLOCK_SHIFT: u32 = 3;

/// Passes an array to a kernel, or a null pointer if it is empty.
pub fn optional<'a, T: Plain>(launch: ShimLaunch<'a>, words: &'a [T]) -> ShimLaunch<'a> {
    if words.is_empty() { launch.raw(null_mut()) } else { launch.input(words) }
}

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
    pub fn rows(&self) -> usize {
        *self.cu_q.last().expect("cu_q is not empty") as usize
    }

    /// Returns a launch of the batch for as many states as requests, on cores that all copy.
    pub fn launch<'a>(&self, units: usize, cores: u32, segments: &'a [Segment]) -> Launch<'a> {
        Launch {
            requests: self.state.len() as u32,
            rows: self.rows() as u32,
            k: self.k as u32,
            ids_stride: self.ids_stride as u32,
            block_stride: self.block_stride as u32,
            pool_units: units as u32,
            states: self.state.len() as u32,
            cores,
            copy_cores: cores,
            host_block_shift: HOST_BLOCK_SHIFT,
            kv_block_shift: KV_BLOCK_SHIFT,
            kv_blocks: 0,
            slot_base: None,
            segments,
        }
    }

    /// Passes the inputs of a plan to a kernel.
    pub fn pass<'a>(&'a self, launch: ShimLaunch<'a>) -> ShimLaunch<'a> {
        let launch = launch.input(&self.ids).input(&self.cu_q).input(&self.state);
        let launch = launch.input(&self.generation).input(&self.stable).input(&self.seq);
        optional(launch, &self.blocks)
    }
}

/// Initial value of the output arrays.
pub const UNTOUCHED: i32 = 0x7E7E_7E7E;

/// The output arrays of a plan.
#[derive(Debug, PartialEq, Eq)]
pub struct Outputs {
    pub slot: Vec<i32>,
    pub valid: Vec<i32>,
    /// Positions, ids, slots and rows of the misses.
    pub miss: [Vec<i32>; 4],
    pub summary: Vec<i32>,
}

impl Outputs {
    /// Returns arrays for a batch and `k` slots per row, which nothing has written.
    pub fn untouched(b: &Batch, k: usize) -> Self {
        let words = |n: usize| vec![UNTOUCHED; n];
        let (rows, summary) = (b.rows(), words(b.state.len() * summary::WORDS));
        let miss = [(); 4].map(|()| words(rows * k));
        Self { slot: words(rows * k), valid: words(rows), miss, summary }
    }

    /// Passes the arrays to a kernel.
    pub fn pass<'a>(&'a mut self, launch: ShimLaunch<'a>) -> ShimLaunch<'a> {
        let launch = launch.device(&mut self.slot).device(&mut self.valid);
        let launch = self.miss.iter_mut().fold(launch, |launch, list| launch.device(list));
        launch.device(&mut self.summary)
    }

    /// Returns the number of misses of a request.
    pub fn misses(&self, request: usize) -> usize {
        self.summary[request * summary::WORDS + summary::TOTAL as usize] as usize
    }

    pub fn miss_count(&self) -> usize {
        (0..self.summary.len() / summary::WORDS).map(|request| self.misses(request)).sum()
    }

    /// Returns the number of misses whose rows are fresh.
    pub fn fresh_count(&self) -> usize {
        self.miss[3].iter().filter(|&&row| row < 0).count()
    }

    /// Makes the entries behind the miss lists of the requests untouched ones.
    pub fn cut_lists(mut self, b: &Batch, k: usize) -> Self {
        for (request, rows) in b.cu_q.windows(2).enumerate() {
            let (at, end) = (rows[0] as usize * k, rows[1] as usize * k);
            let from = at.saturating_add(self.misses(request)).min(end);
            self.miss.iter_mut().for_each(|list| list[from..end].fill(UNTOUCHED));
        }
        self
    }
}
