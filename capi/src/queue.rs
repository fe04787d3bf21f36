//! The calls of a step in a caller's stream, whose arrays are device memory that the host never
//! reads.

use std::ffi::c_void;

use crate::arrays::{avsg_batch, avsg_fresh, avsg_i32s};
use crate::contract::contract;
use crate::overlap;
use crate::sized;
use crate::status::avsg_status::{AVSG_NULL, AVSG_UNSUPPORTED};
use crate::status::{Failure, Result};
use avsg::engine::{DeviceArray, DeviceBatch, DeviceFresh, DeviceRows, Engine, RawStream};
use avsg::plan::Plan;
use avsg::rows::MAX_SEGMENTS;

/// Returns the caller's stream, or None for NULL.
///
/// # Safety
/// `stream` is NULL or, if the engine's device has streams, a live stream of that device.
pub(crate) unsafe fn stream(engine: &Engine, stream: *mut c_void) -> Result<Option<RawStream>> {
    if stream.is_null() {
        return Ok(None);
    }
    if engine.device() == "cpu" {
        let text = format!("stream is {stream:p}, but device cpu has no streams; pass NULL");
        return Err(Failure::new(AVSG_UNSUPPORTED, text));
    }
    Ok(Some(contract!(RawStream::new(stream))))
}

/// Returns the address and length of an array in device memory.
fn array(what: &str, array: avsg_i32s) -> Result<DeviceArray> {
    if array.len > 0 && array.data.is_null() {
        let text = format!("{what} is NULL, but device memory is needed; pass its address");
        return Err(Failure::new(AVSG_NULL, text));
    }
    Ok(DeviceArray { address: array.data.addr() as u64, len: array.len })
}

/// Returns the arrays of a batch in device memory.
fn device_batch(batch: &avsg_batch) -> Result<DeviceBatch> {
    Ok(DeviceBatch {
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
        indexer: batch.indexer,
    })
}

/// Calls `run` with fresh rows in device memory, or with None for NULL.
///
/// # Safety
/// `fresh` is NULL or valid for reads of the number of bytes in its `size`.
unsafe fn with_device_fresh<R>(
    engine: &mut Engine,
    fresh: *const avsg_fresh,
    run: impl FnOnce(&mut Engine, Option<&DeviceFresh<'_>>) -> Result<R>,
) -> Result<R> {
    if fresh.is_null() {
        return run(engine, None);
    }
    let fresh = contract!(sized::read(fresh)?);
    let mut segments = [DeviceRows::default(); MAX_SEGMENTS];
    let arrays = fresh.data.iter().zip(fresh.bytes).take(fresh.segments);
    for (segment, (data, bytes)) in segments.iter_mut().zip(arrays) {
        if bytes > 0 && data.is_null() {
            let text = "fresh data is NULL, but device memory is needed; pass its address";
            return Err(Failure::new(AVSG_NULL, text.into()));
        }
        *segment = DeviceRows { address: data.addr() as u64, bytes };
    }
    let Some(segments) = segments.get(..fresh.segments) else {
        let (n, expected) = (fresh.segments, engine.pool().format().as_slice().len());
        let text =
            format!("fresh segments is {n}, but a row has {expected}; pass the pool's segments");
        return Failure::refuse(text);
    };
    run(engine, Some(&DeviceFresh { segments }))
}

/// Plans a batch in a stream.
///
/// # Safety
/// The caller keeps the contract of `avsg_engine_plan`.
pub(crate) unsafe fn plan(
    engine: &mut Engine,
    batch: *const avsg_batch,
    plan: &mut Plan,
    stream: RawStream,
) -> Result<()> {
    let batch = device_batch(&contract!(overlap::read_batch(batch, plan)?))?;
    Ok(contract!(engine.enqueue_plan(&batch, plan, stream))?)
}

/// Transfers a plan to a layer in a stream.
///
/// # Safety
/// The caller keeps the contract of `avsg_engine_transfer`.
pub(crate) unsafe fn transfer(
    engine: &mut Engine,
    plan: &Plan,
    layer: usize,
    fresh: *const avsg_fresh,
    stream: RawStream,
) -> Result<()> {
    contract!(overlap::check_fresh(fresh, plan)?);
    contract!(with_device_fresh(engine, fresh, |engine, fresh| {
        Ok(engine.enqueue_transfer(plan, layer, fresh, stream)?)
    }))
}

/// Plans a batch and transfers it to a layer in a stream.
///
/// # Safety
/// The caller keeps the contract of `avsg_engine_step`.
pub(crate) unsafe fn step(
    engine: &mut Engine,
    batch: *const avsg_batch,
    plan: &mut Plan,
    layer: usize,
    fresh: *const avsg_fresh,
    stream: RawStream,
) -> Result<()> {
    let batch = device_batch(&contract!(overlap::read_batch(batch, plan)?))?;
    contract!(overlap::check_fresh(fresh, plan)?);
    contract!(with_device_fresh(engine, fresh, |engine, fresh| {
        Ok(engine.enqueue_step(&batch, plan, layer, fresh, stream)?)
    }))
}

/// Appends fresh rows to the pool in a stream.
///
/// # Safety
/// The caller keeps the contract of `avsg_engine_append`.
pub(crate) unsafe fn append(
    engine: &mut Engine,
    batch: *const avsg_batch,
    layer: usize,
    fresh: *const avsg_fresh,
    stream: RawStream,
) -> Result<()> {
    let batch = contract!(sized::read(batch)?);
    let (batch, rows) = (device_batch(&batch)?, batch.append_rows);
    contract!(with_device_fresh(engine, fresh, |engine, fresh| match fresh {
        Some(fresh) => Ok(engine.enqueue_append(&batch, rows, layer, fresh, stream)?),
        None => Err(no_rows_to_append()),
    }))
}

/// Returns the error of an append whose fresh rows are NULL.
pub(crate) fn no_rows_to_append() -> Failure {
    let text = "fresh is NULL, but append needs the fresh rows; pass those of the step";
    Failure::new(AVSG_NULL, text.into())
}
