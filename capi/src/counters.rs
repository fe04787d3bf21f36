//! The outputs of Stage One in numbers, and for one request.

use crate::contract::contract;
use crate::handle;
use crate::plan::{avsg_plan, check_readable};
use crate::sized::{OutPtr, give_struct};
use crate::status::{avsg_status, enter};
use avsg::device::request::record;
use avsg::plan::Plan;
use avsg::rows;

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
    AVSG_SUMMARY_WORDS == record::WORDS
        && AVSG_SUMMARY_MISSES == record::TOTAL as usize
        && AVSG_SUMMARY_STATUS == record::STATUS as usize
);

/// The counters of the last batch planned; all 0 before the first.
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
    /// The number of this batch among all that its engine has planned, from 1. Messages name plans
    /// by it.
    pub number: u64,
}

/// Computes a plan's counters in O(tokens).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_get_counters(
    plan: *const avsg_plan,
    counters: *mut avsg_plan_counters,
) -> avsg_status {
    let count = || {
        let plan = handle::shared::<Plan>(plan)?;
        check_readable(&plan)?;
        let selected = plan.valid().iter().map(|&n| n as usize).sum();
        let misses = plan.total_misses();
        Ok(avsg_plan_counters {
            size: 0,
            requests: plan.requests(),
            tokens: plan.rows(),
            selected,
            hits: selected - misses,
            misses,
            status: (0..plan.requests()).fold(0, |bits, request| bits | plan.status(request)),
            reserved: 0,
            number: plan.number(),
        })
    };
    contract!(give_struct(counters, count))
}

/// Counts the ids of the last batch planned that a token selects again. An indexer selects each id
/// once, so that a number above 0 shows a defect of the caller, which costs slots and copies. It
/// sorts the ids of each token, and is meant for tests.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_get_duplicates(
    plan: *const avsg_plan,
    count: *mut usize,
) -> avsg_status {
    enter(|| {
        let out = contract!(OutPtr::new("count", count, 0)?);
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
    /// The first token of the request in the batch.
    pub first_token: usize,
    /// The number of tokens of the request.
    pub tokens: usize,
    /// The slots, from the request's first token on.
    pub slot: *const i32,
    /// The numbers of valid ids, from the request's first token on.
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
    /// The numbers of misses of the tokens, from the request's first token on.
    pub row_misses: *const i32,
}

/// Gives the outputs for one request of the last batch planned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_get_request(
    plan: *const avsg_plan,
    request: usize,
    outputs: *mut avsg_plan_request,
) -> avsg_status {
    let find = || {
        let plan = handle::shared::<Plan>(plan)?;
        check_readable(&plan)?;
        rows::index("request", request, plan.requests())?;
        let arrays = plan.arrays();
        let (first, end) = (arrays.cu_q[request] as usize, arrays.cu_q[request + 1] as usize);
        let misses = plan.misses(request);
        Ok(avsg_plan_request {
            size: 0,
            first_token: first,
            tokens: end - first,
            slot: arrays.slot[first * arrays.k..].as_ptr(),
            valid: arrays.valid[first..].as_ptr(),
            misses: misses.id.len(),
            miss_position: misses.position.as_ptr(),
            miss_id: misses.id.as_ptr(),
            miss_slot: misses.slot.as_ptr(),
            miss_row: misses.row.as_ptr(),
            status: plan.status(request),
            reserved: 0,
            row_misses: arrays.row_misses[first..].as_ptr(),
        })
    };
    contract!(give_struct(outputs, find))
}
