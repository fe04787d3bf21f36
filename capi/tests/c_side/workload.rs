//! A random life through C: testkit's, with structs for its steps and what a plan says as numbers.

use std::ptr::{null, null_mut};

use avsg::ascend::acl::owned::Context;
use avsg::device::params::Params;
use avsg::engine::DevicePlan;
use avsg_capi::*;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::memory::read_words;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::step_result::StepResult;
use avsg_testkit::workload::{EngineSetting, StepInput, WorkloadDriver, random_step};

use super::c::*;

/// Requests of every batch, and states.
const REQUESTS: usize = 2;
/// Rows of a request, and of both.
const OWN: usize = 192;
pub const POOL_ROWS: usize = REQUESTS * OWN;

/// Slots of every life here.
pub const SLOTS: u32 = 128;

/// The geometry of these lives.
pub fn params() -> Params {
    Params { page: 16, ..Params::wide(K as u32, 2, SLOTS) }
}

/// Room for the batches of a life in steps of one form, and for their rows.
pub fn room() -> (OwnedBatch, [FreshRows; 2]) {
    let rows = FreshRows::new(&format(), 4);
    (OwnedBatch::zeroed(K, REQUESTS, 4, OWN / 16), [rows.clone(), rows])
}

/// The life; it goes on in several engines at once.
pub struct RandomLife {
    driver: WorkloadDriver,
    dice: SplitMix64,
}

impl RandomLife {
    /// On engines of the geometry of [`params`] with pools of [`POOL_ROWS`].
    pub fn new(seed: u64, lives: &[&Life]) -> Self {
        let setting = EngineSetting {
            params: params(),
            states: REQUESTS,
            layers: 2,
            format: format(),
            rows_per_request: OWN,
            max_requests: REQUESTS,
        };
        let driver = WorkloadDriver::new(setting, &mut |layer, row, bytes| {
            lives.iter().for_each(|life| life.write_row(layer, row, bytes));
        });
        Self { driver, dice: SplitMix64::new(seed) }
    }

    /// Its next step, of a form or of any.
    pub fn next(&mut self, form: Option<u8>, lives: &[&Life]) -> StepInput {
        let form = form.unwrap_or_else(|| self.dice.below(256) as u8);
        let step = random_step(&mut self.dice, form, REQUESTS, REQUESTS);
        self.driver.next_step(&step, &mut |layer, row, bytes| {
            lives.iter().for_each(|life| life.write_row(layer, row, bytes));
        })
    }

    /// What an engine found, and what it has in its slots and its pool, is what the step must do.
    pub fn check(&mut self, turn: &StepInput, found: &StepResult, life: &Life) {
        self.driver.check(turn, found, |state, layer, slot, bytes| {
            life.read_slot(state, layer, slot, bytes);
        });
        self.driver.check_pool(|layer, row, bytes| {
            let (to, len) = (bytes.as_mut_ptr().cast(), bytes.len());
            // SAFETY: room for so many bytes.
            ok(unsafe { avsg_pool_read_row(life.pool, layer, row, to, len) });
        });
    }
}

/// Does a whole step with host arrays: by a step or by a plan of its own, both layers, and the rows of both
/// to the pool.
pub fn by_host(life: &Life, turn: &StepInput, at_once: bool) {
    let (batch, whole) = (c_batch(&turn.batch), c_batch(&turn.append_batch));
    let fresh = [0, 1].map(|layer| c_fresh(&turn.fresh[layer]));
    // SAFETY: `turn` keeps all arrays.
    unsafe { whole_step(life, [&batch, &whole], &fresh, null_mut(), at_once) }
}

/// A whole step in a stream, or with host arrays; the batches to plan and to append by.
///
/// # Safety
/// As for the calls.
pub unsafe fn whole_step(
    life: &Life,
    [batch, whole]: [&avsg_batch; 2],
    fresh: &[avsg_fresh; 2],
    stream: *mut std::ffi::c_void,
    at_once: bool,
) {
    let [first, second] = fresh;
    // SAFETY: the contract.
    unsafe {
        if at_once {
            ok(avsg_engine_step(life.engine, batch, life.plan, 0, first, stream));
        } else {
            ok(avsg_engine_plan(life.engine, batch, life.plan, stream));
            ok(avsg_engine_transfer(life.engine, life.plan, 0, first, stream));
        }
        ok(avsg_engine_transfer(life.engine, life.plan, 1, second, stream));
        ok(avsg_engine_append(life.engine, whole, 0, first, stream));
        ok(avsg_engine_append(life.engine, whole, 1, second, stream));
    }
}

/// What a plan's arrays say, wherever they are.
pub fn found(life: &Life, cu_q: &[i32]) -> StepResult {
    let mut at: avsg_plan_arrays = sized();
    // SAFETY: a struct with its size.
    unsafe { ok(avsg_plan_get_device_arrays(life.plan, &mut at)) };
    read(life.context.as_deref(), &at, cu_q)
}

fn read(context: Option<&Context>, at: &avsg_plan_arrays, cu_q: &[i32]) -> StepResult {
    let address = |array: *const i32| array.addr() as u64;
    let miss = [at.miss_position, at.miss_id, at.miss_slot, at.miss_row].map(address);
    let (slot, valid, record) = (address(at.slot), address(at.valid), address(at.record));
    let arrays = DevicePlan { slot, valid, miss, record };
    // SAFETY: a living plan's arrays, which hold the batch; no call runs.
    unsafe { StepResult::from_arrays(context, &arrays, K, cu_q) }
}

/// What a plan that was made with a NULL stream says, which is the same by its arrays, its requests and its
/// counters.
pub fn found_on_host(life: &Life, cu_q: &[i32]) -> StepResult {
    let (mut arrays, mut counters) = (sized::<avsg_plan_arrays>(), sized::<avsg_plan_counters>());
    // SAFETY: structs with their sizes.
    unsafe {
        ok(avsg_plan_get_arrays(life.plan, &mut arrays));
        ok(avsg_plan_get_counters(life.plan, &mut counters));
    }
    let found = read(None, &arrays, cu_q);
    let selected: i32 = found.valid.iter().sum();
    assert_eq!((counters.requests, counters.rows), (cu_q.len() - 1, found.valid.len()));
    assert_eq!(counters.misses, found.miss_count());
    assert_eq!(counters.hits + found.miss_count(), selected as usize);
    for (n, of) in found.requests.iter().enumerate() {
        let mut one: avsg_plan_request = sized();
        let [first, end] = [cu_q[n] as usize, cu_q[n + 1] as usize];
        // SAFETY: a struct with its size; the plan's arrays have the lengths that it says.
        unsafe {
            ok(avsg_plan_get_request(life.plan, n, &mut one));
            assert_eq!((one.first_row, one.rows, one.status), (first, end - first, of.status));
            assert_eq!(read_words(None, one.slot, one.rows * K), found.slots[first * K..end * K]);
            assert_eq!(read_words(None, one.valid, one.rows), found.valid[first..end]);
            let lists = [one.miss_position, one.miss_id, one.miss_slot, one.miss_row];
            assert_eq!(lists.map(|list| read_words(None, list, one.misses)), of.misses);
        }
    }
    found
}

/// The device buffer, whosever memory it is.
pub fn buffer(life: &Life) -> Vec<u8> {
    let mut all = Vec::new();
    for (layer, segment) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let mut at: avsg_buffer = sized();
        // SAFETY: a struct with its size; the slots of both states, while no call runs.
        unsafe {
            ok(avsg_engine_buffer(life.engine, layer, segment, &mut at));
            all.extend(life.bytes(at.base, REQUESTS * at.state_stride));
        }
    }
    all
}

/// The tables of both states.
pub fn tables(life: &Life) -> [Vec<i32>; REQUESTS] {
    [0, 1].map(|state| {
        let (mut at, mut n) = (null(), 0);
        // SAFETY: places for results; the table stays until the next call.
        unsafe {
            ok(avsg_engine_table(life.engine, state, &mut at, &mut n));
            read_words(None, at, n)
        }
    })
}
