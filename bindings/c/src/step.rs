//! Both stages of a decode step in one call.

use std::ffi::c_void;

use crate::batch::{
    AVSG_MAX_LIST_SEGMENTS, avsg_batch, avsg_fresh, batch_of, device_array, with_device_rows,
    with_host_rows,
};
use crate::engine::avsg_engine;
use crate::plan::{avsg_plan, check_readable};
use crate::status::avsg_status::{AVSG_NULL, AVSG_UNSUPPORTED};
use crate::status::{Failure, Result, avsg_status, enter};
use crate::{handle, sized};
use avsg::engine::{Batch, DeviceFresh, Engine, Fresh, RawStream};
use avsg::plan::Plan;
use avsg::rows::MAX_SEGMENTS;

/// Plans a batch and transfers it to one layer: `avsg_engine_plan` and `avsg_engine_transfer` in one
/// call, `fresh` may be NULL if every `stable_len` is -1. After AVSG_OS and AVSG_LOST_ROWS the batch is
/// planned: go on as after such an `avsg_engine_transfer`.
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
        let batch = contract!(sized::read(batch))?;
        let Some(stream) = stream else {
            let run = |fresh: Option<&Fresh<'_>>| {
                let batch = contract!(host_batch(&batch))?;
                Ok(engine.step(&batch, &mut plan, layer, fresh)?)
            };
            return contract!(with_host_rows::<MAX_SEGMENTS>(fresh, 1, run));
        };
        let run = |fresh: Option<&DeviceFresh<'_>>| {
            let batch = batch_of(&batch, device_array)?;
            Ok(contract!(engine.enqueue_step(&batch, &mut plan, layer, fresh, stream))?)
        };
        contract!(with_device_rows::<MAX_SEGMENTS>(fresh, 1, run))
    })
}

/// Stage One: finds the slots and miss lists of a batch. Layers that share an indexer share one plan. What
/// `plan` holds is lost, and if no layer has it, for example after an exception, it is discarded first (Part 2).
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
        let batch = contract!(sized::read(batch))?;
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

/// Stage Two: copies the rows of a plan's misses to the slots of `count` layers, in ascending order. fresh[i]
/// has the rows of layers[i], in at most AVSG_MAX_LIST_SEGMENTS segments together; `fresh` may be NULL if no
/// miss is a fresh row. AVSG_INVALID if a layer lacks an older plan of a state, or has a newer one. After
/// AVSG_OS none of the layers has the plan: repeat the call, discard the plan, or give its requests new
/// generations. `avsg_plan_get_lost_ids` says what AVSG_LOST_ROWS means.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_transfer(
    engine: *mut avsg_engine,
    plan: *mut avsg_plan,
    layers: *const usize,
    count: usize,
    fresh: *const avsg_fresh,
    stream: *mut c_void,
) -> avsg_status {
    contract!(transfer(engine, plan, (layers, count, fresh), stream, Engine::transfer_layers))
}

/// What a transfer over host arrays does with its engine, its plan, its layers and their fresh rows.
type Transfer = fn(&mut Engine, &mut Plan, &[usize], Option<&Fresh<'_>>) -> avsg::Result<()>;

/// Makes or begins a transfer.
///
/// # Safety
/// As for [`avsg_engine_transfer`].
pub(crate) unsafe fn transfer(
    engine: *mut avsg_engine,
    plan: *mut avsg_plan,
    (layers, count, fresh): (*const usize, usize, *const avsg_fresh),
    stream: *mut c_void,
    on_host: Transfer,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let mut plan = handle::exclusive::<Plan>(plan)?;
        let stream = contract!(caller_stream(&engine, stream))?;
        let layers = contract!(sized::array("layers", layers, count))?;
        if let Some(stream) = stream {
            let run = |fresh: Option<&DeviceFresh<'_>>| {
                Ok(contract!(engine.enqueue_transfer(&plan, layers, fresh, stream))?)
            };
            return contract!(with_device_rows::<AVSG_MAX_LIST_SEGMENTS>(fresh, count, run));
        }
        check_readable(plan.is_queued())?;
        let run = |fresh: Option<&Fresh<'_>>| Ok(on_host(&mut engine, &mut plan, layers, fresh)?);
        contract!(with_host_rows::<AVSG_MAX_LIST_SEGMENTS>(fresh, count, run))
    })
}

/// Writes the step's fresh rows to `count` layers of the pool, in ascending order: fresh row g of a request
/// becomes the row of id stable_len + g. `fresh` is that of a transfer. A request may have any number of
/// rows, which writes those of a prefill or a restore. `ids`, `ids_stride`, `k`, `indexer` and the elements
/// of `generation` are ignored. Requests whose `stable_len` or `state` is -1 are skipped. If two requests
/// have one row in the pool, "cpu" leaves that of the later one, and a device that of either or a mix.
/// AVSG_INVALID if the pool has no row for an id, or if this process is a reader; a stream skips rows without
/// one. After AVSG_OS or AVSG_DEVICE rows of any of the layers may be missing: repeat the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_append(
    engine: *mut avsg_engine,
    batch: *const avsg_batch,
    layers: *const usize,
    count: usize,
    fresh: *const avsg_fresh,
    stream: *mut c_void,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let stream = contract!(caller_stream(&engine, stream))?;
        let batch = contract!(sized::read(batch))?;
        let layers = contract!(sized::array("layers", layers, count))?;
        let none = || {
            let text = "fresh is NULL, but append needs the fresh rows; pass those of the step";
            Failure::new(AVSG_NULL, text.into())
        };
        if let Some(stream) = stream {
            let run = |fresh: Option<&DeviceFresh<'_>>| {
                let (fresh, rows) = (fresh.ok_or_else(none)?, batch.append_rows);
                let batch = batch_of(&batch, device_array)?;
                Ok(contract!(engine.enqueue_append(&batch, rows, layers, fresh, stream))?)
            };
            return contract!(with_device_rows::<AVSG_MAX_LIST_SEGMENTS>(fresh, count, run));
        }
        let run = |fresh: Option<&Fresh<'_>>| {
            let (fresh, batch) = (fresh.ok_or_else(none)?, contract!(host_batch(&batch))?);
            Ok(engine.append_layers(&batch, layers, fresh)?)
        };
        contract!(with_host_rows::<AVSG_MAX_LIST_SEGMENTS>(fresh, count, run))
    })
}

/// Returns the caller's stream, or None for NULL.
///
/// # Safety
/// `stream` is NULL or, if the engine's device has streams, a live stream of that device.
pub(crate) unsafe fn caller_stream(
    engine: &Engine,
    stream: *mut c_void,
) -> Result<Option<RawStream>> {
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
pub(crate) unsafe fn host_batch<'a>(batch: &avsg_batch) -> Result<Batch<'a>> {
    batch_of(batch, |what, array| contract!(sized::array(what, array.data, array.len)))
}
