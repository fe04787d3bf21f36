//! Copies of the rows that only this step has, by the calling thread: they are few, and their memory is the caller's
//! during the call only.

use avsg_device::one_request::{ROW, SLOT};

use crate::call::HostCall;
use crate::plan::Plan;
use crate::resources::Resources;

/// Copies the fresh rows that a plan missed to the layers of a call.
pub(super) fn copy_fresh(resources: &Resources, plan: &Plan, call: &HostCall<'_>) {
    let [rows, slots] = [ROW, SLOT].map(|column| &plan.miss[column]);
    for request in (0..plan.requests).filter(|&request| plan.fresh && plan.missed(request)) {
        let (first, state) = (plan.cu_q[request] as usize, plan.state[request] as usize);
        for place in plan.places(request).filter(|&place| rows[place] < 0) {
            let token = first + !rows[place] as usize;
            for (index, &layer) in call.layers.iter().enumerate() {
                let fresh = call.fresh_of(index).unwrap_or(&[]);
                let segments = resources.pool.format().as_slice().iter();
                for (i, (segment, rows)) in segments.zip(fresh).enumerate() {
                    // `check::call` has checked that the slice holds a row of every token.
                    let from = &rows[token * segment.stride..][..segment.bytes];
                    let view = resources.buffer.checked_view(state, layer, i);
                    // SAFETY: the slot is one of the buffer, which has room for the segment and which no
                    // input overlaps.
                    unsafe {
                        let to = view.ptr(slots[place] as usize);
                        core::ptr::copy_nonoverlapping(from.as_ptr(), to, segment.bytes);
                    }
                }
            }
        }
    }
}
