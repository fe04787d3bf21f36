//! The same calls over arrays in device memory, in a stream of the caller's: nothing is read by the
//! host, nothing waits, so that the calls can be captured and replayed.
//!
//! After a call that failed, the next plan starts every table cold, but not in a recording: there it
//! is refused. How queued work itself ends, only the caller's wait tells. If it says that some failed,
//! a table may name rows that were never copied: give every request a new generation.

use super::{Engine, check};
use crate::plan::Plan;
use crate::queued::{
    DEVICE_SEGMENTS, DeviceArray, DeviceBatch, DeviceFresh, DevicePlan, QueuedBatch, QueuedStep,
    RawStream, Work,
};
use crate::resources::Resources;
use crate::{Error, Result, rows};

impl Engine {
    /// Puts Stage One into a stream. Its outputs are the plan's arrays on the device
    /// ([`Plan::device_arrays`]).
    ///
    /// # Safety
    /// The arrays are device memory, alive until the work (and every replay) is done, and so are the plan and
    /// this engine; the stream is the engine's device's, and one stream at a time works on a state. What a
    /// kernel cannot check of the contents holds: `cu_q` ascends from 0 to at most the rows that `ids` has
    /// room for, by at most N_q each, and states are in range and named once.
    ///
    /// # Errors
    /// If an array is too short, the plan is another engine's or too small, the device has no streams, or its
    /// runtime refuses.
    pub unsafe fn enqueue_plan(
        &mut self,
        batch: &DeviceBatch,
        plan: &mut Plan,
        stream: RawStream,
    ) -> Result<()> {
        let step = self.queued(Work::Plan, batch, plan, 0, None)?;
        // SAFETY: the contract.
        unsafe { self.enqueue_planning(step, plan, stream) }
    }

    /// Puts Stage Two of one layer into a stream, behind the plan's.
    ///
    /// # Safety
    /// As for [`Self::enqueue_plan`], whose batch still has its `cu_q` and `state`. Fresh rows are there
    /// whenever some `stable_len` is not -1. For one layer and state, plans come in the order in which they
    /// were planned, and none that missed a row is left out ([`Self::transfer`] checks that; here the host
    /// sees no states, and nothing at all of a replay).
    ///
    /// # Errors
    /// If the plan was not planned in a stream, there is no such layer, fresh rows are too short, or the
    /// runtime refuses.
    pub unsafe fn enqueue_transfer(
        &mut self,
        plan: &Plan,
        layer: usize,
        fresh: Option<&DeviceFresh<'_>>,
        stream: RawStream,
    ) -> Result<()> {
        let Some(batch) = plan.queued else {
            let limit = "no stream planned it";
            return Err(Error::invalid("plan", "not a stream's", limit, "plan it in the stream"));
        };
        let out = outputs(&self.resources, plan, &batch)?;
        let fresh = fresh_rows(&self.resources, fresh, layer, batch.rows)?;
        let step = QueuedStep { work: Work::Transfer, batch, out, layer, fresh };
        // SAFETY: the contract.
        unsafe { self.device.enqueue(&self.resources, &step, stream) }
    }

    /// Puts both into a stream: as two launches, or as one if the options say that no other stream
    /// computes meanwhile.
    ///
    /// # Safety
    /// As for [`Self::enqueue_plan`] and [`Self::enqueue_transfer`].
    ///
    /// # Errors
    /// As for both.
    pub unsafe fn enqueue_step(
        &mut self,
        batch: &DeviceBatch,
        plan: &mut Plan,
        layer: usize,
        fresh: Option<&DeviceFresh<'_>>,
        stream: RawStream,
    ) -> Result<()> {
        let step = self.queued(Work::Both, batch, plan, layer, fresh)?;
        // SAFETY: the contract.
        unsafe { self.enqueue_planning(step, plan, stream) }
    }

    /// Puts an append into a stream, behind the layer's transfer. Later work of that stream reads the
    /// rows from the pool; the host and other streams do once it is done. The batch needs no ids.
    ///
    /// # Safety
    /// As for [`Self::enqueue_plan`].
    ///
    /// # Errors
    /// If an array is too short, there is no such layer, this process may not write the pool, or the runtime
    /// refuses.
    pub unsafe fn enqueue_append(
        &mut self,
        batch: &DeviceBatch,
        layer: usize,
        fresh: &DeviceFresh<'_>,
        stream: RawStream,
    ) -> Result<()> {
        let batch = without_ids(&self.resources, batch)?;
        let fresh = fresh_rows(&self.resources, Some(fresh), layer, batch.rows)?;
        check::writer(&self.resources)?;
        let out = DevicePlan::default();
        let step = QueuedStep { work: Work::Append, batch, out, layer, fresh };
        // SAFETY: the contract.
        unsafe { self.device.enqueue(&self.resources, &step, stream) }
    }

    fn queued(
        &self,
        work: Work,
        batch: &DeviceBatch,
        plan: &Plan,
        layer: usize,
        fresh: Option<&DeviceFresh<'_>>,
    ) -> Result<QueuedStep> {
        let batch = with_ids(&self.resources, batch)?;
        let fresh = fresh_rows(&self.resources, fresh, layer, batch.rows)?;
        let out = outputs(&self.resources, plan, &batch)?;
        Ok(QueuedStep { work, batch, out, layer, fresh })
    }

    /// # Safety
    /// As for [`Self::enqueue_plan`].
    unsafe fn enqueue_planning(
        &mut self,
        step: QueuedStep,
        plan: &mut Plan,
        stream: RawStream,
    ) -> Result<()> {
        // The host knows nothing of what a stream plans.
        plan.forget();
        self.order.forget();
        // SAFETY: the contract.
        unsafe { self.device.enqueue(&self.resources, &step, stream)? };
        plan.queued = Some(step.batch);
        Ok(())
    }
}

/// A batch that is planned: with as many rows as `ids` has room for.
fn with_ids(resources: &Resources, batch: &DeviceBatch) -> Result<QueuedBatch> {
    let params = &resources.config.params;
    let most_k = params.k as usize;
    if !(1..=most_k).contains(&batch.k) {
        let limit = format!("it must be 1..={most_k}");
        return Err(Error::invalid("k", batch.k, limit, "pass 1..=K ids per row"));
    }
    if batch.ids_stride < batch.k {
        let limit = "it must be at least k";
        return Err(Error::invalid("ids_stride", batch.ids_stride, limit, "pass k"));
    }
    let most = batch.requests.saturating_mul(params.tokens as usize);
    let rest = batch.ids.len.checked_sub(batch.k);
    let rows = rest.map_or(0, |rest| (rest / batch.ids_stride).saturating_add(1).min(most));
    let ids = address(["ids", "ids length"], batch.ids, rows.min(batch.ids.len))?;
    let (k, ids_stride) = (batch.k, batch.ids_stride);
    Ok(QueuedBatch { rows, k, ids, ids_stride, ..requests(resources, batch)? })
}

/// A batch that is appended. If it has ids, it has as many rows as they have room for.
fn without_ids(resources: &Resources, batch: &DeviceBatch) -> Result<QueuedBatch> {
    let params = &resources.config.params;
    let k = params.k as usize;
    let has_ids = batch.k > 0 && batch.ids_stride > 0 && batch.ids.len >= batch.k;
    let rows = if has_ids {
        with_ids(resources, batch)?.rows
    } else {
        batch.requests.saturating_mul(params.tokens as usize)
    };
    Ok(QueuedBatch { rows, k, ids: 0, ids_stride: k, ..requests(resources, batch)? })
}

/// What a batch says of its requests.
fn requests(resources: &Resources, batch: &DeviceBatch) -> Result<QueuedBatch> {
    let requests = batch.requests;
    if requests > 1 << 20 {
        let limit = "it must be 0..=1048576";
        return Err(Error::invalid("requests", requests, limit, "split the batch"));
    }
    let block_stride = if resources.config.params.page == 0 { 0 } else { batch.block_stride };
    let blocks = requests.saturating_mul(block_stride);
    Ok(QueuedBatch {
        requests,
        cu_q: address(["cu_q", "cu_q length"], batch.cu_q, requests + 1)?,
        state: address(["state", "state length"], batch.state, requests)?,
        generation: address(["generation", "generation length"], batch.generation, requests)?,
        stable_len: address(["stable_len", "stable_len length"], batch.stable_len, requests)?,
        seq_len: address(["seq_len", "seq_len length"], batch.seq_len, requests)?,
        block_table: address(["block_table", "block_table length"], batch.block_table, blocks)?,
        block_stride,
        ..QueuedBatch::default()
    })
}

/// The address of an array that has `need` elements at least.
fn address([what, length]: [&'static str; 2], array: DeviceArray, need: usize) -> Result<u64> {
    if array.len < need {
        let limit = format!("the batch needs {need}");
        return Err(Error::invalid(length, array.len, limit, "pass the whole array"));
    }
    if need > 0 && (array.address == 0 || !array.address.is_multiple_of(4)) {
        let limit = "it must be a device address and a multiple of 4";
        return Err(Error::invalid(what, array.address, limit, "pass an array of int32"));
    }
    Ok(array.address)
}

/// The bases of the fresh rows of a batch of at most so many rows, for a layer that exists.
fn fresh_rows(
    resources: &Resources,
    fresh: Option<&DeviceFresh<'_>>,
    layer: usize,
    batch_rows: usize,
) -> Result<[u64; DEVICE_SEGMENTS]> {
    rows::index("layer", layer, resources.pool.layers())?;
    let mut bases = [0; DEVICE_SEGMENTS];
    let Some(fresh) = fresh else { return Ok(bases) };
    let format = resources.pool.format().as_slice();
    if fresh.segments.len() != format.len() {
        let limit = format!("a row has {}", format.len());
        let remedy = "pass the pool's number";
        return Err(Error::invalid("fresh segments", fresh.segments.len(), limit, remedy));
    }
    for ((base, rows), segment) in bases.iter_mut().zip(fresh.segments).zip(format) {
        let last = if batch_rows == 0 { 0 } else { segment.bytes };
        let before = batch_rows.saturating_sub(1).saturating_mul(segment.stride);
        let need = before.saturating_add(last);
        if rows.bytes < need {
            let limit = format!("{batch_rows} rows of stride {} need {need}", segment.stride);
            let remedy = "pass as many rows as the batch may have";
            return Err(Error::invalid("fresh bytes", rows.bytes, limit, remedy));
        }
        if rows.address == 0 {
            let limit = "device memory is needed";
            return Err(Error::invalid("fresh rows", "null", limit, "pass their address"));
        }
        *base = rows.address;
    }
    Ok(bases)
}

/// Where a plan's outputs go, if it is this engine's and holds the batch.
fn outputs(resources: &Resources, plan: &Plan, batch: &QueuedBatch) -> Result<DevicePlan> {
    let Some(out) = plan.device.filter(|_| plan.engine == resources.id) else {
        let limit = "it must be this engine's, on a device with streams";
        return Err(Error::invalid(
            "plan",
            "foreign",
            limit,
            "make it with this engine's new_plan",
        ));
    };
    let sizes =
        [("requests", batch.requests, plan.max_requests), ("rows", batch.rows, plan.max_rows)];
    for (what, n, most) in sizes {
        if n > most {
            let limit = format!("the plan holds {most}");
            let remedy = "make a larger plan, or pass a shorter array";
            return Err(Error::invalid(what, n, limit, remedy));
        }
    }
    Ok(out)
}
