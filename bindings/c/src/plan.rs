//! Plans: creation and destruction.

use std::ptr;
use std::sync::Arc;

use crate::boundary::{OutPtr, check_capacity, enter, give_struct};
use crate::engine::avsg_engine;
use crate::handle::Object;
use crate::status::avsg_status::AVSG_UNSUPPORTED;
use crate::status::{Failure, Result, avsg_status};
use crate::{boundary, handle};
use avsg::device::request::summary;
use avsg::engine::Engine;
use avsg::plan::{Plan, SharedCounters};
use avsg::rows;

/// The outputs of Stage One for a batch, reused in every step. An engine may have several plans.
pub struct avsg_plan;

/// Creates a plan for batches of at most these tokens and requests, each 1 to 1048576.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_create(
    engine: *const avsg_engine,
    max_tokens: usize,
    max_requests: usize,
    plan: *mut *mut avsg_plan,
) -> avsg_status {
    let make = || Ok(handle::shared::<Engine>(engine)?.new_plan(max_tokens, max_requests)?);
    contract!(handle::give(plan, make))
}

/// Refuses a plan that was made in a stream, whose outputs the host cannot read.
pub(crate) fn check_readable(queued: bool) -> Result<()> {
    if !queued {
        return Ok(());
    }
    let text = "plan is in device memory, because it was made in a stream; read \
                the arrays of AVSG_MEMORY_DEVICE, or plan with a NULL stream";
    Err(Failure::new(AVSG_UNSUPPORTED, text.into()))
}

/// Destroys a plan, which may have a transfer under way, or no layer (`avsg_engine_discard`). It waits for no call.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_plan_destroy(plan: *mut avsg_plan) -> avsg_status {
    enter(|| handle::destroy::<Plan>(plan))
}

/// The arrays of a plan, at addresses that never change. They hold the last batch planned.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_plan_arrays {
    /// sizeof(avsg_plan_arrays).
    pub size: usize,
    /// The stride of tokens in `slot` and the miss lists: the engine's K.
    pub k: usize,
    /// slot[t * k + i] is that of the i-th id of token t; -1: padding, or no id.
    pub slot: *const i32,
    /// valid[t] is the number of ids of token t that have a slot.
    pub valid: *const i32,
    /// The batch's `cu_q`; NULL in device memory.
    pub cu_q: *const i32,
    /// summary[r * AVSG_SUMMARY_WORDS + g] is the number of misses of request r's g-th token (g < 8). In a
    /// request of more than 8 tokens these are its low 16 bits, and its high 16 bits are those of token
    /// g + 8. The elements AVSG_SUMMARY_MISSES and AVSG_SUMMARY_STATUS are those of the request.
    pub summary: *const i32,
    /// Miss j of request r, in token order, is at cu_q[r] * k + j of each list. This one has its
    /// position: (token within the request) * k + i.
    pub miss_position: *const i32,
    /// The id of each miss.
    pub miss_id: *const i32,
    /// The slot of each miss within its state, also with `global_slots`.
    pub miss_slot: *const i32,
    /// The pool's row of each miss, or -1 - g: the request's g-th fresh row.
    pub miss_row: *const i32,
    /// The misses of token t; NULL in device memory, where `summary` has them.
    pub row_misses: *const i32,
    /// failed_layer[r] and failed_row[r] name a row that is not whole if transfers leave request r out
    /// (AVSG_LOST_ROWS); else they are -1. A transfer sets all three. NULL in device memory.
    pub failed_layer: *const i64,
    /// The row beside failed_layer[r].
    pub failed_row: *const i64,
    /// 1 if the last transfer of the plan found it, else 0.
    pub failed_new: *const i32,
}

fn host_arrays(plan: &Plan) -> avsg_plan_arrays {
    let arrays = plan.arrays();
    avsg_plan_arrays {
        size: 0,
        k: arrays.k,
        slot: arrays.slot.as_ptr(),
        valid: arrays.valid.as_ptr(),
        cu_q: arrays.cu_q.as_ptr(),
        summary: arrays.summary.as_ptr(),
        miss_position: arrays.miss.position.as_ptr(),
        miss_id: arrays.miss.id.as_ptr(),
        miss_slot: arrays.miss.slot.as_ptr(),
        miss_row: arrays.miss.row.as_ptr(),
        row_misses: arrays.row_misses.as_ptr(),
        failed_layer: arrays.failed_layer.as_ptr(),
        failed_row: arrays.failed_row.as_ptr(),
        failed_new: arrays.failed_new.as_ptr(),
    }
}

/// Returns the addresses of a plan's arrays in the memory of its device.
fn device_arrays(plan: &Plan) -> avsg_plan_arrays {
    let Some(device) = plan.device_arrays() else { return host_arrays(plan) };
    let at = |address: u64| ptr::without_provenance::<i32>(address as usize);
    let [miss_position, miss_id, miss_slot, miss_row] = device.miss.map(at);
    avsg_plan_arrays {
        slot: at(device.slot),
        valid: at(device.valid),
        cu_q: ptr::null(),
        summary: at(device.summary),
        miss_position,
        miss_id,
        miss_slot,
        miss_row,
        row_misses: ptr::null(),
        failed_layer: ptr::null(),
        failed_row: ptr::null(),
        failed_new: ptr::null(),
        ..host_arrays(plan)
    }
}

// SAFETY: the addresses are given to the caller, and this library does not follow them.
unsafe impl Send for avsg_plan_arrays {}
// SAFETY: as for Send.
unsafe impl Sync for avsg_plan_arrays {}

impl Object for Plan {
    type C = avsg_plan;
    const KIND: u64 = 3;
    const NAME: &'static str = "plan";
    /// The addresses in host memory and in the memory of the device, and the counters.
    type Fixed = ([avsg_plan_arrays; 2], Arc<SharedCounters>);

    fn fixed(&self) -> Self::Fixed {
        ([host_arrays(self), device_arrays(self)], self.counters())
    }
}

/// Gives the addresses of a plan's arrays in AVSG_MEMORY_HOST, which a plan made with a NULL stream
/// fills, or in AVSG_MEMORY_DEVICE, which is freed with the engine and is host memory on "cpu".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_get_arrays(
    plan: *const avsg_plan,
    memory: i32,
    arrays: *mut avsg_plan_arrays,
) -> avsg_status {
    let find = |&([host, device], _): &([avsg_plan_arrays; 2], _)| match memory {
        0 => Ok(host),
        2 => Ok(device),
        other => Failure::refuse(format!(
            "memory is {other}, but arrays are in AVSG_MEMORY_HOST (0) or AVSG_MEMORY_DEVICE (2); \
             pass one of them"
        )),
    };
    contract!(give_struct(arrays, || handle::fixed::<Plan, _>(plan, find)))
}

/// Status bits of a request. The ids that set them were treated as padding.
#[repr(C)]
pub enum avsg_request_status {
    /// An id was at or above the request's `seq_len`.
    AVSG_REQUEST_ID_OUT_OF_RANGE = 1,
    /// The row of an id was outside the host pool.
    AVSG_REQUEST_ROW_OUT_OF_POOL = 2,
    /// The kernels of an Ascend device were built for fewer blocks per state of the device buffer than
    /// this engine has, so that every id of the batch was treated as padding. A call with a NULL stream is
    /// AVSG_INVALID then; in a stream only this bit says so.
    AVSG_REQUEST_TOO_MANY_SLOT_BLOCKS = 4,
}

/// Elements of `avsg_plan_arrays.summary` for each request: first the misses of its tokens.
pub const AVSG_SUMMARY_WORDS: usize = 16;

/// The element of a request's summary that has the number of its misses.
pub const AVSG_SUMMARY_MISSES: usize = 8;

/// The element of a request's summary that has its `avsg_request_status` bits.
pub const AVSG_SUMMARY_STATUS: usize = 9;

const _: () = assert!(
    AVSG_SUMMARY_WORDS == summary::WORDS
        && AVSG_SUMMARY_MISSES == summary::TOTAL as usize
        && AVSG_SUMMARY_STATUS == summary::STATUS as usize
);

/// The counters of the last batch planned; all 0 before the first, while one is planned, and after a discard.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_plan_counters {
    /// sizeof(avsg_plan_counters).
    pub size: usize,
    /// Requests, padded ones included.
    pub requests: usize,
    /// Tokens of the batch.
    pub tokens: usize,
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
    /// The number of this batch among all that its engine has planned, from 1. Messages name plans by it,
    /// and a reader of the plan's arrays knows by another number that they were overwritten meanwhile.
    pub number: u64,
}

/// Gives a plan's counters, all of one batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_get_counters(
    plan: *const avsg_plan,
    counters: *mut avsg_plan_counters,
) -> avsg_status {
    let count = |(_, counters): &(_, Arc<SharedCounters>)| {
        check_readable(counters.queued())?;
        let all = counters.read();
        Ok(avsg_plan_counters {
            size: 0,
            requests: all.requests as usize,
            tokens: all.tokens as usize,
            selected: all.selected as usize,
            hits: (all.selected - all.misses) as usize,
            misses: all.misses as usize,
            status: all.status,
            reserved: 0,
            number: all.number,
        })
    };
    contract!(give_struct(counters, || handle::fixed::<Plan, _>(plan, count)))
}

/// Gives the ids of the rows of a file that a request of a plan missed and that are not whole: never written,
/// lost with a process, damaged, or cut off. A step, transfer or load that finds such rows in its layers is
/// AVSG_LOST_ROWS, and serves all other requests. `failed_row` of `avsg_plan_arrays` names a request that is
/// not served, and `failed_new` tells whether the last transfer of the plan found it, or an earlier one or
/// another plan: transfers leave it out from now on, of this plan and of other plans since its state was
/// empty, and its next plan finds it empty. Write these rows again, and repeat the step for it. The ids are
/// in the order of its misses. `count` receives their number, also if it is above `capacity`, which is
/// AVSG_INVALID; a `capacity` of 0 asks for `count` only. It is 0 for a request that is served, or that
/// another plan has lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_get_lost_ids(
    plan: *const avsg_plan,
    request: usize,
    ids: *mut i32,
    capacity: usize,
    count: *mut usize,
) -> avsg_status {
    enter(|| {
        let out = contract!(OutPtr::new("count", count, 0)?);
        let plan = handle::shared::<Plan>(plan)?;
        rows::index("request", request, plan.requests())?;
        let count = plan.lost_ids(request).count();
        out.write(count);
        if capacity != 0 {
            check_capacity(count, capacity, "ids")?;
            let to = contract!(boundary::array_mut("ids", ids, count)?);
            to.iter_mut().zip(plan.lost_ids(request)).for_each(|(to, id)| *to = id);
        }
        Ok(())
    })
}
