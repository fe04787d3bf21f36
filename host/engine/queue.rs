//! The calls of a step over arrays in device memory, put into the caller's stream. The host reads
//! no array and does not wait, so the calls can be captured and replayed.
//!
//! After a call that failed, the next plan starts every table cold. In a capture such a plan is
//! refused, because the capture would record the reset. Only the caller's synchronization reports
//! how queued work ended. If some of it failed, a table may list rows that were never copied: give
//! every request a new generation.

use std::sync::atomic::Ordering;

use super::{Batch, Engine, check};
use crate::call::{Call, Work};
use crate::device_arrays::{DeviceArray, DeviceBatch, DeviceCall, DevicePlan, RawStream};
use crate::plan::Plan;
use crate::{Error, Result, invalid};

impl Engine {
    /// Puts Stage One into a stream. It writes the plan's arrays on the device
    /// ([`Plan::device_arrays`]).
    ///
    /// # Safety
    /// - The arrays are device memory that stays allocated until the work and all its replays are
    ///   done, and that is not written while they run. The plan and this engine live as long.
    /// - While they run, no call reads or writes what they write: the plan's arrays on the device, and
    ///   the slots ([`DeviceBuffer::slot_bytes`](crate::buffer::DeviceBuffer::slot_bytes)) and tables
    ///   ([`Self::read_table`]) of the batch's states.
    /// - The stream belongs to the engine's device and is not destroyed while work is put into it or runs
    ///   in it. Only one stream at a time works on a state, and after a call that failed none does when
    ///   the next plan is made, which empties every table.
    /// - `cu_q` ascends from 0, by at most N_q per request, to at most the rows that `ids` has room
    ///   for; states are in range, and each is named once. The kernels cannot check this.
    ///
    /// # Errors
    /// If an array is too short, the plan is too small or belongs to another engine, the device has
    /// no streams, or a call of the runtime fails.
    pub unsafe fn enqueue_plan(
        &mut self,
        batch: &DeviceBatch,
        plan: &mut Plan,
        stream: RawStream,
    ) -> Result<()> {
        // SAFETY: the stream, the arrays and the plan stay valid until the work is done (`# Safety`).
        unsafe { self.enqueue_planning(Call::of(Work::Plan, *batch, 0), plan, stream) }
    }

    /// Puts Stage Two of some layers, listed in ascending order, into a stream, after the plan's Stage
    /// One: a launch for each. `fresh` has the segments of all layers.
    ///
    /// # Safety
    /// - As for [`Self::enqueue_plan`]; the `cu_q` and `state` arrays of the planned batch are
    ///   unchanged.
    /// - `fresh` is passed if some `stable_len` is not -1.
    /// - For one layer and one state, transfers come in the order of the plans, and no plan that
    ///   missed a row is left out. [`Self::transfer`] checks this; here the host sees neither
    ///   states nor replays.
    ///
    /// # Errors
    /// If the plan was not planned in a stream, the list is not ascending, a layer does not exist or
    /// belongs to another indexer, the fresh rows are too short, or a call of the runtime fails; the work
    /// of the layers before it is in the stream in the last case, and of none in the others.
    pub unsafe fn enqueue_transfer(
        &mut self,
        plan: &Plan,
        layers: &[usize],
        fresh: Option<&[DeviceArray]>,
        stream: RawStream,
    ) -> Result<()> {
        let Some(queued) = plan.queued else {
            return Err(invalid!("plan" is "not planned in a stream", but
                "enqueue_plan or enqueue_step must plan it first"; "plan it in the stream"));
        };
        let call = DeviceCall { layers, fresh, ..queued };
        let call = check::call(&self.resources, &mut self.named, call, Some(plan))?;
        // SAFETY: the stream, the arrays and the plan stay valid until the work is done (`# Safety`).
        unsafe { self.enqueue(&call, outputs(plan)?, stream) }
    }

    /// Puts Stage One and Stage Two of one layer into a stream: as two launches, or as one if
    /// [`AscendOptions::one_launch`](crate::ascend::AscendOptions::one_launch) is `Some(true)`.
    ///
    /// # Safety
    /// As for [`Self::enqueue_plan`] and [`Self::enqueue_transfer`].
    ///
    /// # Errors
    /// As for [`Self::enqueue_plan`] and [`Self::enqueue_transfer`].
    pub unsafe fn enqueue_step(
        &mut self,
        batch: &DeviceBatch,
        plan: &mut Plan,
        layer: usize,
        fresh: Option<&[DeviceArray]>,
        stream: RawStream,
    ) -> Result<()> {
        let call = DeviceCall { layers: &[layer], fresh, ..Call::of(Work::Step, *batch, 0) };
        // SAFETY: the stream, the arrays and the plan stay valid until the work is done (`# Safety`).
        unsafe { self.enqueue_planning(call, plan, stream) }
    }

    /// Puts an append to some layers, listed in ascending order, into a stream, after their transfers: a
    /// launch for each. `fresh` has the segments of all layers. Later work of that stream reads
    /// the rows from the pool; the host and other streams may read them once the append is done.
    /// The batch needs no ids. `rows` is the most rows that `cu_q` may count; 0 means as many as the
    /// ids have room for, or N_q per request without ids. A request may have any number of them,
    /// which writes the rows of a prefill from device memory.
    ///
    /// # Safety
    /// As for [`Self::enqueue_plan`].
    ///
    /// # Errors
    /// If an array is too short, the list is not ascending, there is no such layer, this process may not
    /// write the pool, or a call of the runtime fails; the work of the layers before it is in the stream
    /// in the last case, and of none in the others.
    pub unsafe fn enqueue_append(
        &mut self,
        batch: &DeviceBatch,
        rows: usize,
        layers: &[usize],
        fresh: &[DeviceArray],
        stream: RawStream,
    ) -> Result<()> {
        let call =
            DeviceCall { layers, fresh: Some(fresh), ..Call::of(Work::Append, *batch, rows) };
        let call = check::call(&self.resources, &mut self.named, call, None)?;
        // SAFETY: the stream, the arrays and the plan stay valid until the work is done (`# Safety`).
        unsafe { self.enqueue(&call, DevicePlan::default(), stream) }
    }

    /// Puts a checked call into a stream: a launch for each of its layers.
    ///
    /// # Safety
    /// As for [`Self::enqueue_plan`].
    unsafe fn enqueue(
        &mut self,
        call: &DeviceCall<'_>,
        out: DevicePlan,
        stream: RawStream,
    ) -> Result<()> {
        for launch in call.launches() {
            // SAFETY: the stream, the arrays and the plan stay valid until the work is done (`# Safety`).
            unsafe { self.device.enqueue(&launch, out, stream)? };
            self.counters.live.queued.add(1);
        }
        Ok(())
    }

    /// # Safety
    /// As for [`Self::enqueue_plan`].
    unsafe fn enqueue_planning(
        &mut self,
        call: DeviceCall<'_>,
        plan: &mut Plan,
        stream: RawStream,
    ) -> Result<()> {
        let call = check::call(&self.resources, &mut self.named, call, Some(plan))?;
        let out = outputs(plan)?;
        self.start_plan(&Batch::default(), plan, &[])?;
        // SAFETY: the stream, the arrays and the plan stay valid until the work is done (`# Safety`).
        let queued = unsafe { self.enqueue(&call, out, stream) };
        // A refused call has queued nothing, while a part of a failed one may be in the stream.
        if !matches!(queued, Err(Error::Invalid { .. })) {
            // The host does not see what a stream plans.
            plan.clear(None);
            self.order.forget();
            self.counters.live.in_streams.store(true, Ordering::Relaxed);
        }
        queued?;
        plan.clear(Some(Call::of(Work::Transfer, call.batch, call.tokens)));
        Ok(())
    }
}

/// Returns the addresses of a plan's outputs in device memory.
fn outputs(plan: &Plan) -> Result<DevicePlan> {
    plan.device.ok_or_else(|| {
        invalid!("plan" is "foreign", but
            "it must belong to this engine, on a device with streams";
            "make it with this engine's new_plan")
    })
}
