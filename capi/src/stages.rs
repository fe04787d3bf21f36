//! The stages of a decode step. On "cpu" they allocate nothing and take no lock. In a caller's stream
//! the arrays are device memory that the host never reads.

use std::ffi::c_void;

use crate::arrays::{
    avsg_batch, avsg_fresh, batch_of, device_array, device_segments, host_array, host_segments,
};
use crate::contract::contract;
use crate::engine::avsg_engine;
use crate::fresh_list::{ListSegments, read_list};
use crate::handle;
use crate::plan::{avsg_plan, check_readable};
use crate::sized;
use crate::status::avsg_status::{AVSG_NULL, AVSG_UNSUPPORTED};
use crate::status::{Failure, Result, avsg_status, enter};
use avsg::engine::{Batch, DeviceFresh, Engine, Fresh, RawStream};
use avsg::plan::Plan;

/// Stage One: finds the slots and miss lists of a batch. Layers that share an indexer share one plan.
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
/// has the rows of layers[i], and all have at most 256 segments; `fresh` may be NULL if no miss is a fresh
/// row. "cpu" wakes its workers once, and reads a record of a file once. AVSG_INVALID if a layer lacks an
/// older plan of a state, or has a newer one. After AVSG_OS none of the layers has the plan: repeat the call,
/// discard the plan, or give its requests new generations. AVSG_LOST_ROWS if rows of a file that some
/// requests missed are not whole: never written, lost with a process, or damaged. All other requests are
/// served. `failed_row` names those that are not: transfers leave them out from now on, of this plan and of
/// other plans since their state was empty, and their next plan finds it empty: compute them again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_transfer(
    engine: *mut avsg_engine,
    plan: *mut avsg_plan,
    layers: *const usize,
    count: usize,
    fresh: *const avsg_fresh,
    stream: *mut c_void,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let mut plan = handle::exclusive::<Plan>(plan)?;
        let stream = contract!(caller_stream(&engine, stream))?;
        let layers = contract!(sized::array("layers", layers, count))?;
        if let Some(stream) = stream {
            return contract!(enqueue_transfer(&mut engine, &plan, layers, fresh, stream));
        }
        check_readable(&plan)?;
        let mut segments = ListSegments::new();
        let given = contract!(host_list(fresh, count, &mut segments))?;
        let fresh = given.then_some(Fresh { segments: &segments });
        Ok(engine.transfer_layers(&mut plan, layers, fresh.as_ref())?)
    })
}

/// Puts a transfer into a stream. It is not inlined, because the stack of its caller has a list of its own.
///
/// # Safety
/// As for [`Engine::enqueue_transfer`] and [`read_list`].
#[inline(never)]
unsafe fn enqueue_transfer(
    engine: &mut Engine,
    plan: &Plan,
    layers: &[usize],
    fresh: *const avsg_fresh,
    stream: RawStream,
) -> Result<()> {
    let mut segments = ListSegments::new();
    let given = contract!(read_list(fresh, layers.len(), device_segments, &mut segments))?;
    let fresh = given.then_some(DeviceFresh { segments: &segments });
    Ok(contract!(engine.enqueue_transfer(plan, layers, fresh.as_ref(), stream))?)
}

/// Writes the step's fresh rows to `count` layers of the pool, in ascending order: fresh row g of a request
/// becomes the row of id stable_len + g. fresh[i] has the rows of layers[i], and all have at most 256
/// segments. A request may have any number of rows, not only N_q, which writes those of a prefill or a
/// restore. Requests whose `stable_len` or `state` is -1 are skipped. AVSG_INVALID if the pool has no row for
/// an id, or if this process is a reader; a stream skips rows without one. After AVSG_OS or AVSG_DEVICE rows
/// of any of the layers may be missing: repeat the call.
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
        if fresh.is_null() && count != 0 {
            let text = "fresh is NULL, but append needs the fresh rows; pass those of the step";
            return Err(Failure::new(AVSG_NULL, text.into()));
        }
        if let Some(stream) = stream {
            return contract!(enqueue_append(&mut engine, &batch, layers, fresh, stream));
        }
        let mut segments = ListSegments::new();
        contract!(host_list(fresh, count, &mut segments))?;
        let batch = contract!(host_batch(&batch))?;
        Ok(engine.append_layers(&batch, layers, &Fresh { segments: &segments })?)
    })
}

/// Puts an append into a stream, as [`enqueue_transfer`] does a transfer.
///
/// # Safety
/// As for [`Engine::enqueue_append`] and [`read_list`].
#[inline(never)]
unsafe fn enqueue_append(
    engine: &mut Engine,
    batch: &avsg_batch,
    layers: &[usize],
    fresh: *const avsg_fresh,
    stream: RawStream,
) -> Result<()> {
    let mut segments = ListSegments::new();
    contract!(read_list(fresh, layers.len(), device_segments, &mut segments))?;
    let (rows, fresh) = (batch.append_rows, DeviceFresh { segments: &segments });
    let batch = batch_of(batch, device_array)?;
    Ok(contract!(engine.enqueue_append(&batch, rows, layers, &fresh, stream))?)
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
    batch_of(batch, |what, array| contract!(host_array(what, array)))
}

/// Borrows the fresh rows of `count` layers in host memory as [`read_list`] does.
///
/// # Safety
/// As for [`read_list`]; while `all` is in use each segment is NULL or valid for reads of its bytes, and not
/// written.
pub(crate) unsafe fn host_list<const MOST: usize>(
    list: *const avsg_fresh,
    count: usize,
    all: &mut heapless::Vec<&[u8], MOST>,
) -> Result<bool> {
    contract!(read_list(list, count, |segments| host_segments(segments), all))
}
