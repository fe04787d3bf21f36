//! The arrays of a plan.

use std::ptr;
use std::sync::Arc;

use crate::handle::{self, Object};
use crate::plan::avsg_plan;
use crate::sized::give_struct;
use crate::status::{Failure, avsg_status};
use avsg::plan::{Plan, SharedCounters};

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
    /// The slot of its state that each miss got.
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
        summary: arrays.record.as_ptr(),
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
        summary: at(device.record),
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
