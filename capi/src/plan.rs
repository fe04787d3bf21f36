//! A plan's life, and what Stage One found.

use std::ptr;

use crate::engine::avsg_engine;
use crate::handle::{self, Object};
use crate::queue;
use crate::sized::{Out, Room, Sized_};
use crate::status::{avsg_status, enter};
use avsg::engine::Engine;
use avsg::plan::Plan;
use avsg::rows;

/// What a plan found for a batch: slots, miss lists, counters. Allocated once for the largest batch, and
/// used again at each step. Several may be in flight on one engine.
///
/// Threads: as for the engine; reading it while a call writes it is AVSG_BUSY.
pub struct avsg_plan {
    _opaque: [u8; 0],
}

impl Object for Plan {
    type C = avsg_plan;
    const KIND: u64 = 3;
    const NAME: &'static str = "plan";
}

/// Status bits of a request. Ids that raise them were treated as padding.
#[repr(i32)]
pub enum avsg_request_status {
    /// Some id was at or above the request's seq_len.
    AVSG_REQUEST_ID_OUT_OF_RANGE = 1,
    /// Some id's row was outside the host pool.
    AVSG_REQUEST_ROW_OUT_OF_POOL = 2,
}

/// Makes a plan for batches of at most so many rows (tokens) and requests: 20 * K bytes a row and 80 a
/// request.
///
/// # Safety
/// `plan` may be written. It is NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_create(
    engine: *const avsg_engine,
    max_rows: usize,
    max_requests: usize,
    plan: *mut *mut avsg_plan,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let out = unsafe { Out::new("plan", plan, ptr::null_mut())? };
        let made = handle::shared::<Engine>(engine)?.new_plan(max_rows, max_requests)?;
        out.set(handle::create(made)?);
        Ok(())
    })
}

/// Ends a plan. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_plan_destroy(plan: *mut avsg_plan) -> avsg_status {
    enter(|| handle::destroy::<Plan>(plan))
}

/// A plan's arrays. The addresses are the same for the plan's whole life; the contents are those of the
/// last batch, until the next call that plans into it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_plan_arrays {
    /// sizeof(avsg_plan_arrays), set by the caller.
    pub size: usize,
    /// Elements from row to row of `slot` and the miss lists: the engine's K.
    pub k: usize,
    /// slot[row * k + i]: the slot of the i-th id of a row; -1 for padding, and from the batch's k on.
    pub slot: *const i32,
    /// valid[row]: how many ids of a row have a slot.
    pub valid: *const i32,
    /// First row of each request, and the number of rows: the batch's.
    pub cu_q: *const i32,
    /// record[request * 16 + ..]: at g < 8 the misses of the request's g-th row, at 8 all its misses, at
    /// 9 its status bits.
    pub record: *const i32,
    /// Miss j of a request is at cu_q[request] * k + j of the next four, in token order. First: which
    /// selection missed, row within the request * k + i.
    pub miss_position: *const i32,
    /// Its id.
    pub miss_id: *const i32,
    /// The slot that it got.
    pub miss_slot: *const i32,
    /// Its row in the host pool; -1 - g: the request's g-th fresh row.
    pub miss_row: *const i32,
}

// SAFETY: repr(C), words only, size first.
unsafe impl Sized_ for avsg_plan_arrays {
    const NAME: &'static str = "avsg_plan_arrays";
    const FIRST: usize = 80;
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

/// Where a plan's arrays are in host memory. What a stream plans does not come here.
///
/// # Safety
/// `arrays` has as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_get_arrays(
    plan: *const avsg_plan,
    arrays: *mut avsg_plan_arrays,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let room = unsafe { Room::new(arrays)? };
        let plan = handle::shared::<Plan>(plan)?;
        room.fill(host_arrays(&plan));
        Ok(())
    })
}

/// Where a plan's outputs are in device memory, which is where a stream leaves them. `cu_q` is NULL: it is
/// the batch's own. On "cpu" this is `avsg_plan_get_arrays`. On a device the memory is the engine's and ends with it.
///
/// # Safety
/// `arrays` has as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_get_device_arrays(
    plan: *const avsg_plan,
    arrays: *mut avsg_plan_arrays,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let room = unsafe { Room::new(arrays)? };
        let plan = handle::shared::<Plan>(plan)?;
        room.fill(match plan.device_arrays() {
            None => host_arrays(&plan),
            Some(out) => {
                let at = |address: u64| ptr::without_provenance::<i32>(address as usize);
                let [miss_position, miss_id, miss_slot, miss_row] = out.miss.map(at);
                avsg_plan_arrays {
                    size: 0,
                    k: plan.arrays().k,
                    slot: at(out.slot),
                    valid: at(out.valid),
                    cu_q: ptr::null(),
                    record: at(out.record),
                    miss_position,
                    miss_id,
                    miss_slot,
                    miss_row,
                }
            }
        });
        Ok(())
    })
}

/// Counters of the last batch planned; all 0 before the first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_plan_counters {
    /// sizeof(avsg_plan_counters), set by the caller.
    pub size: usize,
    /// Requests, padded ones included.
    pub requests: usize,
    /// Rows.
    pub rows: usize,
    /// Ids that have a slot.
    pub selected: usize,
    /// Of those, the ones whose row was there already.
    pub hits: usize,
    /// The others: the rows that one transfer copies.
    pub misses: usize,
    /// `avsg_request_status` bits of all requests together.
    pub status: i32,
    /// 0.
    pub reserved: i32,
    /// Which of its engine's plans it is, from 1: errors name plans by it.
    pub number: u64,
}

// SAFETY: repr(C) without padding (64 bytes, asserted below), size first, integers only.
unsafe impl Sized_ for avsg_plan_counters {
    const NAME: &'static str = "avsg_plan_counters";
    const FIRST: usize = 56;
}
const _: () = assert!(size_of::<avsg_plan_counters>() == 64);

/// A plan's counters. O(rows). AVSG_UNSUPPORTED for a batch that was planned in a stream: nobody has waited
/// for it; the same numbers are in `record` of `avsg_plan_get_device_arrays`.
///
/// # Safety
/// `counters` has as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_get_counters(
    plan: *const avsg_plan,
    counters: *mut avsg_plan_counters,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let room = unsafe { Room::new(counters)? };
        let plan = handle::shared::<Plan>(plan)?;
        queue::readable(&plan)?;
        let selected = plan.valid().iter().map(|&n| n as usize).sum();
        let misses = plan.total_misses();
        room.fill(avsg_plan_counters {
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

/// What a plan found for one request. Arrays as in `avsg_plan_arrays`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_plan_request {
    /// sizeof(avsg_plan_request), set by the caller.
    pub size: usize,
    /// Its first row in the batch.
    pub first_row: usize,
    /// Its rows.
    pub rows: usize,
    /// slot[row within the request * k + i].
    pub slot: *const i32,
    /// valid[row within the request].
    pub valid: *const i32,
    /// Elements of the next four: its misses, in token order.
    pub misses: usize,
    /// Which selection missed: row within the request * k + i.
    pub miss_position: *const i32,
    /// Its id.
    pub miss_id: *const i32,
    /// The slot that it got.
    pub miss_slot: *const i32,
    /// Its row in the host pool; -1 - g: the request's g-th fresh row.
    pub miss_row: *const i32,
    /// `avsg_request_status` bits; 0 if nothing was wrong.
    pub status: i32,
    /// 0.
    pub reserved: i32,
}

// SAFETY: repr(C) without padding (88 bytes, asserted below), size first, integers and pointers.
unsafe impl Sized_ for avsg_plan_request {
    const NAME: &'static str = "avsg_plan_request";
    const FIRST: usize = 88;
}
const _: () = assert!(size_of::<avsg_plan_request>() == 88);

/// One request of the last batch planned. AVSG_UNSUPPORTED for a batch that was planned in a stream.
///
/// # Safety
/// `found` has as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_get_request(
    plan: *const avsg_plan,
    request: usize,
    found: *mut avsg_plan_request,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let room = unsafe { Room::new(found)? };
        let plan = handle::shared::<Plan>(plan)?;
        queue::readable(&plan)?;
        rows::index("request", request, plan.requests())?;
        let arrays = plan.arrays();
        let (first, end) = (arrays.cu_q[request] as usize, arrays.cu_q[request + 1] as usize);
        let misses = plan.misses(request);
        room.fill(avsg_plan_request {
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
