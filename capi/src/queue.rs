//! The calls of a step in a caller's stream: arrays are device memory, which is never looked at.

use std::ffi::c_void;

use crate::arrays::{avsg_batch, avsg_fresh, avsg_i32s};
use crate::sized;
use crate::status::avsg_status::{AVSG_INVALID, AVSG_NULL, AVSG_UNSUPPORTED};
use crate::status::{Fail, Result};
use avsg::engine::{DeviceArray, DeviceBatch, DeviceFresh, DeviceRows, Engine, RawStream};
use avsg::plan::Plan;
use avsg::rows::MAX_SEGMENTS;

/// The caller's stream; None for NULL, which waits.
///
/// # Safety
/// It is NULL or, on a device that has streams, one of the engine's device.
pub(crate) unsafe fn stream(engine: &Engine, stream: *mut c_void) -> Result<Option<RawStream>> {
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

/// An array in device memory.
fn array(what: &str, array: avsg_i32s) -> Result<DeviceArray> {
    if array.len > 0 && array.data.is_null() {
        let text = format!("{what} is NULL, but device memory is needed; pass its address");
        return Err(Fail::new(AVSG_NULL, text));
    }
    Ok(DeviceArray { address: array.data.addr() as u64, len: array.len })
}

/// A batch in device memory.
///
/// # Safety
/// `batch` is NULL or valid for as many bytes as its `size` says.
unsafe fn read_batch(batch: *const avsg_batch) -> Result<DeviceBatch> {
    // SAFETY: the contract.
    let batch = unsafe { sized::read(batch)? };
    Ok(DeviceBatch {
        requests: batch.state.len,
        k: batch.k,
        ids: array("ids", batch.ids)?,
        ids_stride: batch.ids_stride,
        cu_q: array("cu_q", batch.cu_q)?,
        state: array("state", batch.state)?,
        generation: array("generation", batch.generation)?,
        stable_len: array("stable_len", batch.stable_len)?,
        seq_len: array("seq_len", batch.seq_len)?,
        block_table: array("block_table", batch.block_table)?,
        block_stride: batch.block_stride,
    })
}

/// Calls `run` with fresh rows in device memory, or without for NULL.
///
/// # Safety
/// `fresh` is NULL or valid for as many bytes as its `size` says.
unsafe fn with_fresh<R>(
    engine: &mut Engine,
    fresh: *const avsg_fresh,
    run: impl FnOnce(&mut Engine, Option<&DeviceFresh<'_>>) -> Result<R>,
) -> Result<R> {
    if fresh.is_null() {
        return run(engine, None);
    }
    // SAFETY: the contract.
    let fresh = unsafe { sized::read(fresh)? };
    let mut segments = [DeviceRows::default(); MAX_SEGMENTS];
    let given = fresh.data.iter().zip(fresh.bytes).take(fresh.segments);
    for (to, (from, bytes)) in segments.iter_mut().zip(given) {
        if bytes > 0 && from.is_null() {
            let text = "fresh data is NULL, but device memory is needed; pass its address";
            return Err(Fail::new(AVSG_NULL, text.into()));
        }
        *to = DeviceRows { address: from.addr() as u64, bytes };
    }
    let Some(segments) = segments.get(..fresh.segments) else {
        let (given, has) = (fresh.segments, engine.pool().format().as_slice().len());
        let text =
            format!("fresh segments is {given}, but a row has {has}; pass the pool's number");
        return Err(Fail::new(AVSG_INVALID, text));
    };
    run(engine, Some(&DeviceFresh { segments }))
}

/// # Safety
/// As for `avsg_engine_plan` with a stream.
pub(crate) unsafe fn plan(
    engine: &mut Engine,
    batch: *const avsg_batch,
    plan: &mut Plan,
    stream: RawStream,
) -> Result<()> {
    // SAFETY: the contract.
    unsafe { Ok(engine.enqueue_plan(&read_batch(batch)?, plan, stream)?) }
}

/// # Safety
/// As for `avsg_engine_transfer` with a stream.
pub(crate) unsafe fn transfer(
    engine: &mut Engine,
    plan: &Plan,
    layer: usize,
    fresh: *const avsg_fresh,
    stream: RawStream,
) -> Result<()> {
    // SAFETY: the contract.
    unsafe {
        with_fresh(engine, fresh, |engine, fresh| {
            Ok(engine.enqueue_transfer(plan, layer, fresh, stream)?)
        })
    }
}

/// # Safety
/// As for `avsg_engine_step` with a stream.
pub(crate) unsafe fn step(
    engine: &mut Engine,
    batch: *const avsg_batch,
    plan: &mut Plan,
    layer: usize,
    fresh: *const avsg_fresh,
    stream: RawStream,
) -> Result<()> {
    // SAFETY: the contract.
    unsafe {
        let batch = read_batch(batch)?;
        with_fresh(engine, fresh, |engine, fresh| {
            Ok(engine.enqueue_step(&batch, plan, layer, fresh, stream)?)
        })
    }
}

/// # Safety
/// As for `avsg_engine_append` with a stream.
pub(crate) unsafe fn append(
    engine: &mut Engine,
    batch: *const avsg_batch,
    layer: usize,
    fresh: *const avsg_fresh,
    stream: RawStream,
) -> Result<()> {
    // SAFETY: the contract.
    unsafe {
        let batch = read_batch(batch)?;
        with_fresh(engine, fresh, |engine, fresh| match fresh {
            Some(fresh) => Ok(engine.enqueue_append(&batch, layer, fresh, stream)?),
            None => {
                let text = "fresh is NULL, but it holds the rows to append; pass the step's";
                Err(Fail::new(AVSG_NULL, text.into()))
            }
        })
    }
}

/// Refuses to look at what a stream plans.
pub(crate) fn readable(plan: &Plan) -> Result<()> {
    if !plan.is_queued() {
        return Ok(());
    }
    let text = "plan is in device memory, but the host did not wait for its stream; read \
                avsg_plan_get_device_arrays";
    Err(Fail::new(AVSG_UNSUPPORTED, text.into()))
}
