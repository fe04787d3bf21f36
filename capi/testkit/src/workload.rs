//! A random workload through C: testkit's, with C structs for its steps, and a plan's results as
//! numbers.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use avsg::ascend::acl::Context;
use avsg::device::params::Params;
use avsg::engine::DevicePlan;
use avsg_capi::*;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::memory::read_words;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::step_result::StepResult;
use avsg_testkit::workload::{EngineSetting, StepInput, WorkloadDriver, random_step};

use crate::*;

/// Requests of every batch, and request states of an engine.
const REQUESTS: usize = 2;
/// Rows of the pool that belong to one request.
const REQUEST_ROWS: usize = 192;
/// Rows of each layer of a pool.
pub const POOL_ROWS: usize = REQUESTS * REQUEST_ROWS;

/// S, the number of slots per state.
pub const SLOTS: u32 = 128;

/// Returns the geometry of every engine that a workload runs on.
pub fn params() -> Params {
    Params { page: 16, ..Params::wide(K as u32, 2, SLOTS) }
}

/// Returns a zeroed batch and fresh rows of both layers, with the lengths of every step of form
/// `FIXED_SIZE_FORM`.
pub fn empty_step() -> (OwnedBatch, [FreshRows; 2]) {
    let rows = FreshRows::new(&format(), 4);
    (OwnedBatch::zeroed(K, REQUESTS, 4, REQUEST_ROWS / 16), [rows.clone(), rows])
}

/// A random workload, which may run on several engines at once.
pub struct Workload {
    player: WorkloadDriver,
    random: SplitMix64,
}

impl Workload {
    /// Begins a workload on engines with [`params`] and pools of [`POOL_ROWS`] rows.
    pub fn new(seed: u64, engines: &[&Handles]) -> Self {
        let setting = EngineSetting {
            params: params(),
            states: REQUESTS,
            layers: 2,
            format: format(),
            rows_per_request: REQUEST_ROWS,
            max_requests: REQUESTS,
        };
        let player = WorkloadDriver::new(setting, &mut |layer, row, bytes| {
            engines.iter().for_each(|handles| handles.write_row(layer, row, bytes));
        });
        Self { player, random: SplitMix64::new(seed) }
    }

    /// Makes the next step, of this form or of a random one.
    pub fn next(&mut self, form: Option<u8>, engines: &[&Handles]) -> StepInput {
        let form = form.unwrap_or_else(|| self.random.below(256) as u8);
        let step = random_step(&mut self.random, form, REQUESTS, REQUESTS);
        self.player.next_step(&step, &mut |layer, row, bytes| {
            engines.iter().for_each(|handles| handles.write_row(layer, row, bytes));
        })
    }

    /// Asserts that an engine's outputs, slots and pool are those that the step requires.
    pub fn check(&mut self, turn: &StepInput, outputs: &StepResult, handles: &Handles) {
        self.player.check(turn, outputs, |state, layer, slot, bytes| {
            handles.read_slot(state, layer, slot, bytes);
        });
        self.player.check_pool(|layer, row, bytes| {
            let (data, len) = (bytes.as_mut_ptr().cast(), bytes.len());
            // SAFETY: `data` points to `len` writable bytes.
            ok(unsafe { avsg_pool_read_row(handles.pool, layer, row, data, len) });
        });
    }
}

/// Runs a step with host arrays: as [`run_step`] with a NULL stream.
pub fn run_host_step(handles: &Handles, turn: &StepInput, fused: bool) {
    let (batch, whole) = (c_batch(&turn.batch), c_batch(&turn.append_batch));
    let fresh = [0, 1].map(|layer| c_fresh(&turn.fresh[layer]));
    // SAFETY: `turn` owns the arrays of both batches and the fresh rows.
    unsafe { run_step(handles, [&batch, &whole], &fresh, null_mut(), fused) }
}

/// Plans the first batch, transfers both layers, and appends the rows of both layers by the second
/// batch. `fused` makes one call of the plan and the first layer's transfer.
///
/// # Safety
/// The batches and `fresh` keep the contracts of the four calls with this stream.
pub unsafe fn run_step(
    handles: &Handles,
    [batch, whole]: [&avsg_batch; 2],
    fresh: &[avsg_fresh; 2],
    stream: *mut c_void,
    fused: bool,
) {
    let (engine, plan) = (handles.engine, handles.plan);
    let [first, second] = fresh;
    // SAFETY: the caller keeps the contract of this function (`# Safety`).
    unsafe {
        if fused {
            ok(avsg_engine_step(engine, batch, plan, 0, first, stream));
        } else {
            ok(avsg_engine_plan(engine, batch, plan, stream));
            ok(avsg_engine_transfer(engine, plan, 0, first, stream));
        }
        ok(avsg_engine_transfer(engine, plan, 1, second, stream));
        ok(avsg_engine_append(engine, whole, 0, first, stream));
        ok(avsg_engine_append(engine, whole, 1, second, stream));
    }
}

/// Returns the outputs of a plan from its device arrays, which on "cpu" are in host memory.
pub fn device_outputs(handles: &Handles, cu_q: &[i32]) -> StepResult {
    let mut arrays: avsg_plan_arrays = sized();
    // SAFETY: the struct has its `size` set.
    unsafe { ok(avsg_plan_get_arrays(handles.plan, DEVICE, &mut arrays)) };
    read(handles.context.as_deref(), &arrays, cu_q)
}

fn read(context: Option<&Context>, arrays: &avsg_plan_arrays, cu_q: &[i32]) -> StepResult {
    let address = |array: *const i32| array.addr() as u64;
    let miss = [arrays.miss_position, arrays.miss_id, arrays.miss_slot, arrays.miss_row];
    let miss = miss.map(address);
    let (slot, valid) = (address(arrays.slot), address(arrays.valid));
    let device = DevicePlan { slot, valid, miss, record: address(arrays.record) };
    // SAFETY: the arrays are those of a plan that holds the batch, and no call is in progress.
    unsafe { StepResult::from_arrays(context, &device, K, cu_q) }
}

/// Returns the outputs of a plan that was made with a NULL stream, after it has asserted that the
/// plan's arrays, requests and counters agree.
pub fn host_outputs(handles: &Handles, cu_q: &[i32]) -> StepResult {
    let (mut arrays, mut counters) = (sized::<avsg_plan_arrays>(), sized::<avsg_plan_counters>());
    // SAFETY: the structs have their `size` set.
    unsafe {
        ok(avsg_plan_get_arrays(handles.plan, HOST, &mut arrays));
        ok(avsg_plan_get_counters(handles.plan, &mut counters));
    }
    let outputs = read(None, &arrays, cu_q);
    let selected: i32 = outputs.valid.iter().sum();
    assert_eq!((counters.requests, counters.tokens), (cu_q.len() - 1, outputs.valid.len()));
    assert_eq!(counters.misses, outputs.miss_count());
    assert_eq!(counters.hits + outputs.miss_count(), selected as usize);
    assert_eq!(counters.selected, selected as usize);
    let status = outputs.requests.iter().fold(0, |bits, request| bits | request.status);
    assert_eq!(counters.status, status);
    for (n, expected) in outputs.requests.iter().enumerate() {
        let mut one: avsg_plan_request = sized();
        let [first, end] = [cu_q[n] as usize, cu_q[n + 1] as usize];
        // SAFETY: the struct has its `size` set, and the plan's arrays have the lengths in it.
        unsafe {
            ok(avsg_plan_get_request(handles.plan, n, &mut one));
            let counts = (one.first_token, one.tokens, one.status);
            assert_eq!(counts, (first, end - first, expected.status));
            assert_eq!(
                read_words(None, one.slot, one.tokens * K),
                outputs.slots[first * K..end * K]
            );
            assert_eq!(read_words(None, one.valid, one.tokens), outputs.valid[first..end]);
            let lists = [one.miss_position, one.miss_id, one.miss_slot, one.miss_row];
            assert_eq!(lists.map(|list| read_words(None, list, one.misses)), expected.misses);
        }
    }
    outputs
}

/// Returns the bytes of the device buffer.
pub fn device_buffer(handles: &Handles) -> Vec<u8> {
    let mut all = Vec::new();
    for (layer, segment) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let mut buffer: avsg_buffer = sized();
        // SAFETY: the struct has its `size` set; the buffer has that many states, and no call is in
        // progress.
        unsafe {
            ok(avsg_engine_get_buffer(handles.engine, layer, segment, &mut buffer));
            all.extend(handles.bytes(buffer.base, REQUESTS * buffer.state_stride));
        }
    }
    all
}

/// Returns the tables of both states.
pub fn tables(handles: &Handles) -> [Vec<i32>; REQUESTS] {
    [0, 1].map(|state| {
        let (mut table, mut len) = (null(), 0);
        // SAFETY: the out-pointers are local variables, and the table is valid until the next call.
        unsafe {
            ok(avsg_engine_get_table(handles.engine, 0, state, &mut table, &mut len));
            read_words(None, table, len)
        }
    })
}
