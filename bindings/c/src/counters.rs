//! The outputs of Stage One in numbers.

use std::sync::Arc;

use crate::handle;
use crate::plan::{avsg_plan, check_readable};
use crate::sized::give_struct;
use crate::status::avsg_status;
use avsg::device::request::record;
use avsg::plan::{Plan, SharedCounters};

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
