//! Plans: creation, destruction, and the outputs of Stage One.

use std::ptr;

use crate::engine::avsg_engine;
use crate::handle::{self, Object};
use crate::sized::{OutPtr, OutStruct, SizedStruct};
use crate::status::avsg_status::AVSG_UNSUPPORTED;
use crate::status::{Failure, Result, avsg_status, enter};
use avsg::engine::Engine;
use avsg::plan::Plan;
use avsg::rows;

/// The outputs of Stage One for a batch: slots, miss lists and counters. A plan is allocated once
/// for the largest batch and reused in every step. An engine may have several plans that are not
/// transferred to every layer yet.
pub struct avsg_plan {
    _opaque: [u8; 0],
}

impl Object for Plan {
    type C = avsg_plan;
    const KIND: u64 = 3;
    const NAME: &'static str = "plan";
}

/// Status bits of a request. The ids that set them were treated as padding.
#[repr(i32)]
pub enum avsg_request_status {
    /// An id was at or above the request's `seq_len`.
    AVSG_REQUEST_ID_OUT_OF_RANGE = 1,
    /// The row of an id was outside the host pool.
    AVSG_REQUEST_ROW_OUT_OF_POOL = 2,
    /// The kernels of an Ascend device were built for smaller tables of blocks of the device buffer than
    /// this engine's, so that every id of the batch was treated as padding. A call with a NULL stream is
    /// AVSG_INVALID then; in a stream only this bit says so.
    AVSG_REQUEST_TOO_MANY_SLOT_BLOCKS = 4,
}

/// Creates a plan for batches of at most `max_rows` rows and `max_requests` requests, each 1 to
/// 1048576. `avsg_memory_bytes` computes its memory: on "cpu" 20 * K + 4 bytes per row and 80 bytes
/// per request.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_create(
    engine: *const avsg_engine,
    max_rows: usize,
    max_requests: usize,
    plan: *mut *mut avsg_plan,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutPtr::new("plan", plan, ptr::null_mut())? };
        let plan = handle::shared::<Engine>(engine)?.new_plan(max_rows, max_requests)?;
        out.write(handle::create(plan)?);
        Ok(())
    })
}

/// Destroys a plan.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_plan_destroy(plan: *mut avsg_plan) -> avsg_status {
    enter(|| handle::destroy::<Plan>(plan))
}

/// The arrays of a plan. Their addresses never change. Their contents are those of the last batch,
/// until the next call that plans into the same plan.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_plan_arrays {
    /// sizeof(avsg_plan_arrays).
    pub size: usize,
    /// Elements from one row of `slot` and of the miss lists to the next: the engine's K.
    pub k: usize,
    /// slot[row * k + i] is the slot of the i-th id of a row, or -1 for padding and for i at or
    /// above the batch's `k`.
    pub slot: *const i32,
    /// valid[row] is the number of ids of a row that have a slot.
    pub valid: *const i32,
    /// The batch's `cu_q`.
    pub cu_q: *const i32,
    /// record[request * 16 + g] is the number of misses of the request's g-th row (g < 8). Element
    /// 8 of the 16 is the request's number of misses, and element 9 its `avsg_request_status` bits.
    pub record: *const i32,
    /// The miss lists: miss j of a request, in row order, is at index cu_q[request] * k + j of each
    /// of the four arrays. This one has its position: (row within the request) * k + i.
    pub miss_position: *const i32,
    /// The id of each miss.
    pub miss_id: *const i32,
    /// The slot that each miss got.
    pub miss_slot: *const i32,
    /// The row of each miss in the host pool, or -1 - g for the request's g-th fresh row.
    pub miss_row: *const i32,
}

// SAFETY: the struct is repr(C) with `size` first, and its fields are words.
unsafe impl SizedStruct for avsg_plan_arrays {
    const NAME: &'static str = "avsg_plan_arrays";
    const FIRST_SIZE: usize = 80;
}

fn host_arrays(plan: &Plan) -> avsg_plan_arrays {
    let arrays = plan.arrays();
    avsg_plan_arrays {
        size: 0,
        k: arrays.k,
        slot: arrays.slot.as_ptr(),
        valid: arrays.valid.as_ptr(),
        cu_q: arrays.cu_q.as_ptr(),
        record: arrays.record.as_ptr(),
        miss_position: arrays.miss.position.as_ptr(),
        miss_id: arrays.miss.id.as_ptr(),
        miss_slot: arrays.miss.slot.as_ptr(),
        miss_row: arrays.miss.row.as_ptr(),
    }
}

/// Gives the addresses of a plan's arrays in host memory.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_get_arrays(
    plan: *const avsg_plan,
    arrays: *mut avsg_plan_arrays,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutStruct::new(arrays)? };
        let plan = handle::shared::<Plan>(plan)?;
        out.write(host_arrays(&plan));
        Ok(())
    })
}

/// Returns the addresses of a plan's arrays in the memory of its device.
pub(crate) fn device_arrays(plan: &Plan) -> avsg_plan_arrays {
    let Some(device) = plan.device_arrays() else { return host_arrays(plan) };
    let at = |address: u64| ptr::without_provenance::<i32>(address as usize);
    let [miss_position, miss_id, miss_slot, miss_row] = device.miss.map(at);
    avsg_plan_arrays {
        size: 0,
        k: plan.arrays().k,
        slot: at(device.slot),
        valid: at(device.valid),
        cu_q: ptr::null(),
        record: at(device.record),
        miss_position,
        miss_id,
        miss_slot,
        miss_row,
    }
}

/// Gives the addresses of a plan's arrays in device memory, which is freed with the engine. `cu_q`
/// is NULL, because the batch has it. On "cpu" this is `avsg_plan_get_arrays`.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_get_device_arrays(
    plan: *const avsg_plan,
    arrays: *mut avsg_plan_arrays,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutStruct::new(arrays)? };
        out.write(device_arrays(&*handle::shared::<Plan>(plan)?));
        Ok(())
    })
}

/// Refuses a plan that was made in a stream, whose outputs the host cannot read.
pub(crate) fn check_readable(plan: &Plan) -> Result<()> {
    if !plan.is_queued() {
        return Ok(());
    }
    let text = "plan is in device memory, because it was made in a stream; read \
                avsg_plan_get_device_arrays, or plan with a NULL stream";
    Err(Failure::new(AVSG_UNSUPPORTED, text.into()))
}

/// The counters of the last batch planned; all 0 before the first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_plan_counters {
    /// sizeof(avsg_plan_counters).
    pub size: usize,
    /// Requests, padded ones included.
    pub requests: usize,
    /// Rows of the batch.
    pub rows: usize,
    /// Selected ids that have a slot.
    pub selected: usize,
    /// Hits among `selected`.
    pub hits: usize,
    /// Misses among `selected`: the rows that one transfer copies.
    pub misses: usize,
    /// The `avsg_request_status` bits of all requests, combined by OR.
    pub status: i32,
    /// Always 0.
    pub reserved: i32,
    /// The number of this batch among all that its engine has planned, from 1. Messages name plans
    /// by it.
    pub number: u64,
}

// SAFETY: the struct is repr(C) with `size` first, has no padding (64 bytes, asserted below), and
// its fields are integers.
unsafe impl SizedStruct for avsg_plan_counters {
    const NAME: &'static str = "avsg_plan_counters";
    const FIRST_SIZE: usize = 56;
}
const _: () = assert!(size_of::<avsg_plan_counters>() == 64);

/// Computes a plan's counters in O(rows).
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_get_counters(
    plan: *const avsg_plan,
    counters: *mut avsg_plan_counters,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutStruct::new(counters)? };
        let plan = handle::shared::<Plan>(plan)?;
        check_readable(&plan)?;
        let selected = plan.valid().iter().map(|&n| n as usize).sum();
        let misses = plan.total_misses();
        out.write(avsg_plan_counters {
            size: 0,
            requests: plan.requests(),
            rows: plan.rows(),
            selected,
            hits: selected - misses,
            misses,
            status: (0..plan.requests()).fold(0, |bits, request| bits | plan.status(request)),
            reserved: 0,
            number: plan.number(),
        });
        Ok(())
    })
}

/// Counts the ids of the last batch planned that a row selects again. An indexer selects each id
/// once, so that a number above 0 shows a defect of the caller, which costs slots and copies. It
/// sorts each row, and is meant for tests.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_count_duplicates(
    plan: *const avsg_plan,
    count: *mut usize,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutPtr::new("count", count, 0)? };
        let plan = handle::shared::<Plan>(plan)?;
        check_readable(&plan)?;
        out.write(plan.count_duplicates()?);
        Ok(())
    })
}

/// The outputs for one request: the parts of `avsg_plan_arrays` that belong to it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_plan_request {
    /// sizeof(avsg_plan_request).
    pub size: usize,
    /// The first row of the request in the batch.
    pub first_row: usize,
    /// The number of rows of the request.
    pub rows: usize,
    /// The slots, from the request's first row on.
    pub slot: *const i32,
    /// The numbers of valid ids, from the request's first row on.
    pub valid: *const i32,
    /// The number of misses, which is the length of the four arrays below.
    pub misses: usize,
    /// The position of each miss.
    pub miss_position: *const i32,
    /// The id of each miss.
    pub miss_id: *const i32,
    /// The slot of each miss.
    pub miss_slot: *const i32,
    /// The row of each miss.
    pub miss_row: *const i32,
    /// The request's `avsg_request_status` bits.
    pub status: i32,
    /// Always 0.
    pub reserved: i32,
}

// SAFETY: the struct is repr(C) with `size` first, has no padding (88 bytes, asserted below), and
// its fields are integers and pointers.
unsafe impl SizedStruct for avsg_plan_request {
    const NAME: &'static str = "avsg_plan_request";
    const FIRST_SIZE: usize = 88;
}
const _: () = assert!(size_of::<avsg_plan_request>() == 88);

/// Gives the outputs for one request of the last batch planned.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_get_request(
    plan: *const avsg_plan,
    request: usize,
    outputs: *mut avsg_plan_request,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutStruct::new(outputs)? };
        let plan = handle::shared::<Plan>(plan)?;
        check_readable(&plan)?;
        rows::index("request", request, plan.requests())?;
        let arrays = plan.arrays();
        let (first, end) = (arrays.cu_q[request] as usize, arrays.cu_q[request + 1] as usize);
        let misses = plan.misses(request);
        out.write(avsg_plan_request {
            size: 0,
            first_row: first,
            rows: end - first,
            slot: arrays.slot[first * arrays.k..].as_ptr(),
            valid: arrays.valid[first..].as_ptr(),
            misses: misses.id.len(),
            miss_position: misses.position.as_ptr(),
            miss_id: misses.id.as_ptr(),
            miss_slot: misses.slot.as_ptr(),
            miss_row: misses.row.as_ptr(),
            status: plan.status(request),
            reserved: 0,
        });
        Ok(())
    })
}
