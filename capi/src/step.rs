//! The calls of a decode step. On "cpu" they allocate nothing and take no lock. In a caller's stream
//! the arrays are device memory that the host never reads.

use std::ffi::c_void;

use crate::arrays::{
    RawSegment, Segments, avsg_batch, avsg_fresh, batch_of, device_array, device_segments,
    host_array, host_segments, read_fresh,
};
use crate::contract::contract;
use crate::engine::avsg_engine;
use crate::handle;
use crate::overlap;
use crate::plan::{avsg_plan, check_readable};
use crate::sized;
use crate::status::avsg_status::{AVSG_NULL, AVSG_UNSUPPORTED};
use crate::status::{Failure, Result, avsg_status, enter};
use avsg::engine::{Batch, DeviceFresh, Engine, Fresh, RawStream};
use avsg::plan::Plan;

/// Plans a batch and transfers it to one layer: `avsg_engine_plan` and `avsg_engine_transfer` in one
/// call. `fresh` may be NULL if every `stable_len` is -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_step(
    engine: *mut avsg_engine,
    batch: *const avsg_batch,
    plan: *mut avsg_plan,
    layer: usize,
    fresh: *const avsg_fresh,
    stream: *mut c_void,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let mut plan = handle::exclusive::<Plan>(plan)?;
        let stream = contract!(caller_stream(&engine, stream))?;
        let batch = contract!(overlap::read_batch(batch, &plan))?;
        let fresh = contract!(read_fresh_of(fresh, &plan))?;
        let Some(stream) = stream else {
            let batch = contract!(host_batch(&batch))?;
            return contract!(with_host_rows(fresh, |fresh| {
                engine.step(&batch, &mut plan, layer, fresh)
            }));
        };
        let batch = batch_of(&batch, device_array)?;
        with_device_rows(fresh, |fresh| {
            contract!(engine.enqueue_step(&batch, &mut plan, layer, fresh, stream))
        })
    })
}

/// Stage One: finds the slots and miss lists of a batch. Layers that share an indexer share one
/// plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_plan(
    engine: *mut avsg_engine,
    batch: *const avsg_batch,
    plan: *mut avsg_plan,
    stream: *mut c_void,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let mut plan = handle::exclusive::<Plan>(plan)?;
        let stream = contract!(caller_stream(&engine, stream))?;
        let batch = contract!(overlap::read_batch(batch, &plan))?;
        match stream {
            None => engine.plan(&contract!(host_batch(&batch))?, &mut plan)?,
            Some(stream) => {
                let batch = batch_of(&batch, device_array)?;
                contract!(engine.enqueue_plan(&batch, &mut plan, stream))?;
            }
        }
        Ok(())
    })
}

/// Stage Two: copies the rows of a plan's misses to the slots of one layer. `fresh` may be NULL if
/// no miss is a fresh row. AVSG_INVALID if the layer lacks an older plan of a state, or has a newer one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_transfer(
    engine: *mut avsg_engine,
    plan: *mut avsg_plan,
    layer: usize,
    fresh: *const avsg_fresh,
    stream: *mut c_void,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let mut plan = handle::exclusive::<Plan>(plan)?;
        let stream = contract!(caller_stream(&engine, stream))?;
        if stream.is_none() {
            check_readable(&plan)?;
        }
        let fresh = contract!(read_fresh_of(fresh, &plan))?;
        match stream {
            None => contract!(with_host_rows(fresh, |fresh| {
                engine.transfer(&mut plan, layer, fresh)
            })),
            Some(stream) => with_device_rows(fresh, |fresh| {
                contract!(engine.enqueue_transfer(&plan, layer, fresh, stream))
            }),
        }
    })
}

/// Writes the step's fresh rows to one layer of the pool: fresh row g of a request becomes the row of
/// id stable_len + g. A request may have any number of them, not only N_q, which writes the rows of a
/// prefill or a restore. Requests whose `stable_len` or `state` is -1 are skipped. AVSG_INVALID if the
/// pool has no row for an id, or if this process is a reader; a stream skips rows without one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_append(
    engine: *mut avsg_engine,
    batch: *const avsg_batch,
    layer: usize,
    fresh: *const avsg_fresh,
    stream: *mut c_void,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let stream = contract!(caller_stream(&engine, stream))?;
        let batch = contract!(sized::read(batch))?;
        let fresh = contract!(read_fresh(fresh))?.ok_or_else(|| {
            let text = "fresh is NULL, but append needs the fresh rows; pass those of the step";
            Failure::new(AVSG_NULL, text.into())
        })?;
        let Some(stream) = stream else {
            let (batch, segments) = contract!((host_batch(&batch)?, host_segments(&fresh)?));
            return Ok(engine.append(&batch, layer, &Fresh { segments: &segments })?);
        };
        let (segments, rows) = (device_segments(&fresh)?, batch.append_rows);
        let (batch, fresh) = (batch_of(&batch, device_array)?, DeviceFresh { segments: &segments });
        Ok(contract!(engine.enqueue_append(&batch, rows, layer, &fresh, stream))?)
    })
}

/// Returns the caller's stream, or None for NULL.
///
/// # Safety
/// `stream` is NULL or, if the engine's device has streams, a live stream of that device.
unsafe fn caller_stream(engine: &Engine, stream: *mut c_void) -> Result<Option<RawStream>> {
    if stream.is_null() {
        return Ok(None);
    }
    if engine.device() == "cpu" {
        let text = format!("stream is {stream:p}, but device cpu has no streams; pass NULL");
        return Err(Failure::new(AVSG_UNSUPPORTED, text));
    }
    Ok(Some(contract!(RawStream::new(stream))))
}

/// Borrows the arrays of a batch in host memory.
///
/// # Safety
/// During 'a each array of `batch` is NULL or valid for reads of its length, and not written.
unsafe fn host_batch<'a>(batch: &avsg_batch) -> Result<Batch<'a>> {
    batch_of(batch, |what, array| contract!(host_array(what, array)))
}

/// The segments of fresh rows as C passes them, or None.
type RawFresh = Option<Segments<RawSegment>>;

/// Reads where the fresh rows are of a call that transfers `plan`.
///
/// # Safety
/// As for [`read_fresh`].
unsafe fn read_fresh_of(fresh: *const avsg_fresh, plan: &Plan) -> Result<RawFresh> {
    let fresh = contract!(read_fresh(fresh))?;
    overlap::check_fresh(fresh.as_deref().unwrap_or_default(), plan)?;
    Ok(fresh)
}

/// Calls `run` with fresh rows in host memory.
///
/// # Safety
/// During the call each segment is NULL or valid for reads of its bytes, and not written.
unsafe fn with_host_rows(
    fresh: RawFresh,
    run: impl FnOnce(Option<&Fresh<'_>>) -> avsg::Result<()>,
) -> Result<()> {
    let segments = fresh.map(|fresh| contract!(host_segments(&fresh))).transpose()?;
    Ok(run(segments.as_deref().map(|segments| Fresh { segments }).as_ref())?)
}

/// Calls `run` with fresh rows in device memory.
fn with_device_rows(
    fresh: RawFresh,
    run: impl FnOnce(Option<&DeviceFresh<'_>>) -> avsg::Result<()>,
) -> Result<()> {
    let segments = fresh.map(|fresh| device_segments(&fresh)).transpose()?;
    Ok(run(segments.as_deref().map(|segments| DeviceFresh { segments }).as_ref())?)
}
