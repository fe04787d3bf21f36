//! The calls of a step in a caller's stream: arrays are device memory, which is never looked at.

use std::ffi::c_void;

use super::arrays::{avsg_batch, avsg_fresh, avsg_i32s};
use super::sized;
use super::status::avsg_status::{AVSG_INVALID, AVSG_NULL, AVSG_UNSUPPORTED};
use super::status::{Fail, Result};
use crate::acl::owned::RawStream;
use crate::engine::{DeviceBatch, DeviceFresh, DevicePlan, Engine};
use crate::plan::Plan;

/// The caller's stream; None for NULL, which waits.
///
/// # Safety
/// It is NULL or, on a device that has streams, one of the engine's device.
pub(super) unsafe fn stream(engine: &Engine, stream: *mut c_void) -> Result<Option<RawStream>> {
    if stream.is_null() {
        return Ok(None);
    }
    if engine.device() == "cpu" {
        let text = format!("stream is {stream:p}, but device cpu has no streams; pass NULL");
        return Err(Fail::new(AVSG_UNSUPPORTED, text));
    }
    // SAFETY: the contract.
    Ok(Some(unsafe { RawStream::new(stream) }))
}

fn refuse<T>(what: &str, value: usize, limit: &str, remedy: &str) -> Result<T> {
    Err(Fail::new(AVSG_INVALID, format!("{what} is {value}, but {limit}; {remedy}")))
}

/// An array's device address.
fn address(what: &str, array: avsg_i32s, need: usize) -> Result<u64> {
    let at = array.data.addr();
    if array.len < need {
        let limit = format!("the batch needs {need}");
        return refuse(&format!("{what} length"), array.len, &limit, "pass the whole array");
    }
    if need > 0 && at == 0 {
        let text = format!("{what} is NULL, but device memory is needed; pass its address");
        return Err(Fail::new(AVSG_NULL, text));
    }
    if !at.is_multiple_of(4) {
        return refuse(what, at, "it must be a multiple of 4", "pass an array of int32");
    }
    Ok(at as u64)
}

/// A batch in device memory; with `ids` unless it is appended.
///
/// # Safety
/// `batch` is NULL or valid for as many bytes as its `size` says.
unsafe fn batch(engine: &Engine, batch: *const avsg_batch, append: bool) -> Result<DeviceBatch> {
    // SAFETY: the contract.
    let batch = unsafe { sized::read(batch)? };
    let (params, requests) = (&engine.config().params, batch.state.len);
    let k = params.k as usize;
    let most = requests.saturating_mul(params.tokens as usize);
    if requests > 1 << 20 {
        return refuse("requests", requests, "it must be 0..=1048576", "split the batch");
    }
    // The rows that `ids` has room for; an append may do without.
    let rows = if append && (batch.ids.len < batch.k || batch.k == 0 || batch.ids_stride == 0) {
        most
    } else {
        if !(1..=k).contains(&batch.k) {
            return refuse("k", batch.k, &format!("it must be 1..={k}"), "pass 1..=K ids per row");
        }
        if batch.ids_stride < batch.k {
            return refuse("ids_stride", batch.ids_stride, "it must be at least k", "pass k");
        }
        match batch.ids.len.checked_sub(batch.k) {
            Some(rest) => (rest / batch.ids_stride).saturating_add(1).min(most),
            None => 0,
        }
    };
    let blocks = match params.page {
        0 => 0,
        _ => requests.saturating_mul(batch.block_stride),
    };
    Ok(DeviceBatch {
        requests,
        rows,
        k: if append { k } else { batch.k },
        ids: if append { 0 } else { address("ids", batch.ids, rows.min(batch.ids.len))? },
        ids_stride: if append { k } else { batch.ids_stride },
        cu_q: address("cu_q", batch.cu_q, requests + 1)?,
        state: address("state", batch.state, requests)?,
        generation: address("generation", batch.generation, requests)?,
        stable_len: address("stable_len", batch.stable_len, requests)?,
        seq_len: address("seq_len", batch.seq_len, requests)?,
        block_table: address("block_table", batch.block_table, blocks)?,
        block_stride: if params.page == 0 { 0 } else { batch.block_stride },
    })
}

/// Fresh rows in device memory, of a batch of at most so many rows.
///
/// # Safety
/// `fresh` is NULL or valid for as many bytes as its `size` says.
unsafe fn fresh(
    engine: &Engine,
    fresh: *const avsg_fresh,
    rows: usize,
) -> Result<Option<DeviceFresh>> {
    if fresh.is_null() {
        return Ok(None);
    }
    // SAFETY: the contract.
    let fresh = unsafe { sized::read(fresh)? };
    let format = engine.pool().format().as_slice();
    if fresh.segments != format.len() {
        let limit = format!("a row has {}", format.len());
        return refuse("fresh segments", fresh.segments, &limit, "pass the pool's number");
    }
    let mut segments = [0; 2];
    let given = fresh.data.iter().zip(fresh.bytes).zip(format);
    for (to, ((from, bytes), segment)) in segments.iter_mut().zip(given) {
        let last = if rows == 0 { 0 } else { segment.bytes };
        let need = rows.saturating_sub(1).saturating_mul(segment.stride).saturating_add(last);
        if bytes < need {
            let limit = format!("{rows} rows of stride {} need {need}", segment.stride);
            return refuse("fresh bytes", bytes, &limit, "pass as many rows as the batch may have");
        }
        if from.is_null() {
            let text = "fresh data is NULL, but device memory is needed; pass its address";
            return Err(Fail::new(AVSG_NULL, text.into()));
        }
        *to = from.addr() as u64;
    }
    Ok(Some(DeviceFresh { segments }))
}

/// Where a plan's outputs go, if it holds the batch.
fn outputs(engine: &Engine, plan: &Plan, batch: &DeviceBatch) -> Result<DevicePlan> {
    let Some(arrays) = plan.arrays.as_ref().filter(|_| engine.owns(plan)) else {
        let text = "plan is foreign, but it must be this engine's; make it with avsg_plan_create";
        return Err(Fail::new(AVSG_INVALID, text.into()));
    };
    for (what, n, most) in
        [("requests", batch.requests, plan.max_requests), ("rows", batch.rows, plan.max_rows)]
    {
        if n > most {
            let limit = format!("the plan holds {most}");
            return refuse(what, n, &limit, "make a larger plan, or pass a shorter array");
        }
    }
    Ok(arrays.outputs())
}

/// # Safety
/// As for `avsg_engine_plan` with a stream.
pub(super) unsafe fn plan(
    engine: &mut Engine,
    from: *const avsg_batch,
    plan: &mut Plan,
    stream: RawStream,
) -> Result<()> {
    // SAFETY: the contract.
    let from = unsafe { batch(engine, from, false)? };
    let out = outputs(engine, plan, &from)?;
    // The host knows nothing of what a stream plans.
    plan.forget();
    // SAFETY: the contract.
    unsafe { engine.enqueue_plan(&from, &out, stream)? };
    plan.queued = Some(from);
    Ok(())
}

/// # Safety
/// As for `avsg_engine_transfer` with a stream.
pub(super) unsafe fn transfer(
    engine: &mut Engine,
    plan: &mut Plan,
    layer: usize,
    rows: *const avsg_fresh,
    stream: RawStream,
) -> Result<()> {
    let Some(from) = plan.queued else {
        let text = "plan is not a stream's, but stream is not NULL; plan it in the stream";
        return Err(Fail::new(AVSG_INVALID, text.into()));
    };
    // SAFETY: the contract.
    let rows = unsafe { fresh(engine, rows, from.rows)? };
    let out = outputs(engine, plan, &from)?;
    // SAFETY: the contract.
    unsafe { engine.enqueue_transfer(&from, &out, layer, rows.as_ref(), stream)? };
    Ok(())
}

/// # Safety
/// As for `avsg_engine_step` with a stream.
pub(super) unsafe fn step(
    engine: &mut Engine,
    from: *const avsg_batch,
    plan: &mut Plan,
    layer: usize,
    rows: *const avsg_fresh,
    stream: RawStream,
) -> Result<()> {
    // SAFETY: the contract.
    let from = unsafe { batch(engine, from, false)? };
    // SAFETY: the contract.
    let rows = unsafe { fresh(engine, rows, from.rows)? };
    crate::rows::index("layer", layer, engine.pool().layers())?;
    let out = outputs(engine, plan, &from)?;
    plan.forget();
    // SAFETY: the contract.
    unsafe { engine.enqueue_step(&from, &out, layer, rows.as_ref(), stream)? };
    plan.queued = Some(from);
    Ok(())
}

/// # Safety
/// As for `avsg_engine_append` with a stream.
pub(super) unsafe fn append(
    engine: &mut Engine,
    from: *const avsg_batch,
    layer: usize,
    rows: *const avsg_fresh,
    stream: RawStream,
) -> Result<()> {
    // SAFETY: the contract.
    let from = unsafe { batch(engine, from, true)? };
    // SAFETY: the contract.
    let rows = unsafe { fresh(engine, rows, from.rows)? };
    let Some(rows) = rows else {
        let text = "fresh is NULL, but it holds the rows to append; pass the step's";
        return Err(Fail::new(AVSG_NULL, text.into()));
    };
    // SAFETY: the contract.
    unsafe { engine.enqueue_append(&from, layer, &rows, stream)? };
    Ok(())
}

/// Refuses to look at what a stream plans.
pub(super) fn readable(plan: &Plan) -> Result<()> {
    if plan.queued.is_none() {
        return Ok(());
    }
    let text = "plan is in device memory, but the host did not wait for its stream; read \
                avsg_plan_get_device_arrays";
    Err(Fail::new(AVSG_UNSUPPORTED, text.into()))
}
