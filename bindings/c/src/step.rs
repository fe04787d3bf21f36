//! The calls of a decode step, and the batch and the fresh rows that they take.

use std::ffi::c_void;

use crate::boundary::enter;
use crate::engine::avsg_engine;
use crate::plan::{avsg_plan, check_readable};
use crate::segments::AVSG_MAX_SEGMENTS;
use crate::status::avsg_status::{AVSG_NULL, AVSG_SIZE, AVSG_UNSUPPORTED};
use crate::status::{Failure, Result, avsg_status, ensure};
use crate::{boundary, handle};
use avsg::engine::{Batch, BatchOf, DeviceArray, DeviceBatch, Engine, RawStream};
use avsg::plan::Plan;
use avsg::rows::MAX_SEGMENTS;

/// An array of int32_t, whose length is checked.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_i32s {
    /// The first element.
    pub data: *const i32,
    /// The number of elements.
    pub len: usize,
}

/// The batch of one decode step. An array has an element per request unless its comment says otherwise.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_batch {
    /// sizeof(avsg_batch).
    pub size: usize,
    /// The ids of token t from t * ids_stride on; negative: padding. A repeated id may take a slot and a copy more.
    pub ids: avsg_i32s,
    /// Elements from one token of `ids` to the next.
    pub ids_stride: usize,
    /// Ids per token: 1 to the engine's K.
    pub k: usize,
    /// The first token of each request, from 0, at most N_q apart (in an append: any), then the number of tokens.
    pub cu_q: avsg_i32s,
    /// A distinct state of each request; -1: a padded request, without slots.
    pub state: avsg_i32s,
    /// A plan empties a table whose last plan had another one. Take a number that the state has not had: a
    /// table without a plan in between still has the slots of an earlier number.
    pub generation: avsg_i32s,
    /// Tokens whose rows were final before this step. Slots of ids from there on are emptied first,
    /// and the rows of those ids are fresh rows. -1: neither.
    pub stable_len: avsg_i32s,
    /// Tokens of the sequence with those of this step, at most 16777216.
    pub seq_len: avsg_i32s,
    /// The pool's blocks of each request; empty if `page` is 0.
    pub block_table: avsg_i32s,
    /// Elements from one request of `block_table` to the next.
    pub block_stride: usize,
    /// The indexer that selected the ids.
    pub indexer: usize,
    /// In a stream, the most rows of an append; 0: one per token of `ids`, or N_q per request.
    pub append_rows: usize,
}

/// The fresh rows of a step: that of token t of the batch is at t * segment_stride in each segment.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_fresh {
    /// sizeof(avsg_fresh).
    pub size: usize,
    /// Segments of a row.
    pub segments: usize,
    /// The row of token 0 in each segment.
    pub data: [*const c_void; AVSG_MAX_SEGMENTS],
    /// Bytes there: (most tokens - 1) * stride + segment_bytes.
    pub bytes: [usize; AVSG_MAX_SEGMENTS],
}

/// Returns the arrays of a batch, each as `array` reads it.
fn batch_of<A>(
    batch: &avsg_batch,
    array: impl Fn(&str, avsg_i32s) -> Result<A>,
) -> Result<BatchOf<A>> {
    Ok(BatchOf {
        ids: array("ids", batch.ids)?,
        ids_stride: batch.ids_stride,
        k: batch.k,
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

/// Returns the address and length of an array in device memory.
fn device_array<T>(what: &str, at: *const T, len: usize) -> Result<DeviceArray> {
    if len > 0 && at.is_null() {
        return Err(boundary::null_error(what));
    }
    Ok(DeviceArray { address: at.addr() as u64, len })
}

/// Returns the arrays of a batch in device memory.
fn device_batch(batch: &avsg_batch) -> Result<DeviceBatch> {
    batch_of(batch, |what, array| device_array(what, array.data, array.len))
}

/// A segment of fresh rows: its address and its bytes.
type RawSegment = (*const c_void, usize);

/// Reads the `size` of a struct of fresh rows, and where they are.
///
/// # Safety
/// `fresh` is NULL or valid for reads of the number of bytes in its `size`.
unsafe fn read_fresh(
    fresh: *const avsg_fresh,
) -> Result<(usize, heapless::Vec<RawSegment, MAX_SEGMENTS>)> {
    let fresh = contract!(boundary::read(fresh))?;
    let n = fresh.segments;
    ensure!(
        (1..=MAX_SEGMENTS).contains(&n),
        "avsg_fresh.segments is {n}, but a row has 1 to {MAX_SEGMENTS}; pass the pool's segments"
    );
    Ok((fresh.size, fresh.data.into_iter().zip(fresh.bytes).take(n).collect()))
}

/// Returns a segment of fresh rows in device memory.
fn device_rows((data, bytes): RawSegment) -> Result<DeviceArray> {
    device_array("fresh data", data, bytes)
}

/// The most segments that the fresh rows of a call have in all its layers: 256 layers of one segment, or 64
/// of 4.
pub const AVSG_MAX_LIST_SEGMENTS: usize = 256;

/// Runs `run` with the fresh rows of `count` layers, of which `convert` makes those of one segment: the segments of
/// the first layer, then those of the second, and so on; None if `list` is NULL. It is not inlined, because a
/// thread may have a small stack, and its caller has two of these lists.
///
/// # Safety
/// `list` is NULL or an array of `count` structs, each of which is valid for reads of the number of bytes in
/// its `size`.
#[inline(never)]
unsafe fn with_rows<T, const MOST: usize>(
    list: *const avsg_fresh,
    count: usize,
    convert: impl Fn(RawSegment) -> Result<T>,
    run: impl FnOnce(Option<&[T]>) -> Result<()>,
) -> Result<()> {
    if list.is_null() || count == 0 {
        return run((count == 0).then_some(&[]));
    }
    let mut all = heapless::Vec::<_, MOST>::new();
    let (size, first) = contract!(read_fresh(list))?;
    let segments = first.len();
    if count > MOST / segments {
        return Failure::refuse(format!(
            "count is {count}, but fresh rows of {segments} segments are taken for {} layers; pass the other \
             layers in another call",
            MOST / segments
        ));
    }
    for index in 0..count {
        // The caller's version of the struct may have more bytes than this one.
        let (own, fresh) = contract!(read_fresh(list.byte_add(index * size)))?;
        if own != size {
            let text = format!(
                "fresh[{index}].size is {own}, but fresh[0].size is {size}; set both to sizeof(avsg_fresh)"
            );
            return Err(Failure::new(AVSG_SIZE, text));
        }
        if fresh.len() != segments {
            let own = fresh.len();
            return Failure::refuse(format!(
                "fresh[{index}] has {own} segments, but fresh[0] has {segments}; pass those of the pool"
            ));
        }
        for segment in fresh {
            // This cannot fail: `count` is at most what fits.
            let _ = all.push(convert(segment)?);
        }
    }
    run(Some(&all))
}

/// Runs `run` as [`with_rows`] does, with fresh rows in host memory.
///
/// # Safety
/// As for [`with_rows`]; during the call each segment is NULL or valid for reads of its bytes, and not
/// written.
unsafe fn with_host_rows<const MOST: usize>(
    list: *const avsg_fresh,
    count: usize,
    run: impl FnOnce(Option<&[&[u8]]>) -> Result<()>,
) -> Result<()> {
    let rows =
        |(data, bytes): RawSegment| contract!(boundary::array("fresh data", data.cast(), bytes));
    contract!(with_rows::<_, MOST>(list, count, rows, run))
}

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
        let batch = contract!(boundary::read(batch))?;
        let Some(stream) = stream else {
            let run = |fresh: Option<&[&[u8]]>| {
                let batch = contract!(host_batch(&batch))?;
                Ok(engine.step(&batch, &mut plan, layer, fresh)?)
            };
            return contract!(with_host_rows::<MAX_SEGMENTS>(fresh, 1, run));
        };
        let run = |fresh: Option<&[DeviceArray]>| {
            let batch = device_batch(&batch)?;
            Ok(contract!(engine.enqueue_step(&batch, &mut plan, layer, fresh, stream))?)
        };
        contract!(with_rows::<_, MAX_SEGMENTS>(fresh, 1, device_rows, run))
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
        let batch = contract!(boundary::read(batch))?;
        match stream {
            None => engine.plan(&contract!(host_batch(&batch))?, &mut plan)?,
            Some(stream) => {
                let batch = device_batch(&batch)?;
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
    contract!(transfer(engine, plan, (layers, count, fresh), stream, Engine::transfer))
}

/// What a transfer over host arrays does with its engine, its plan, its layers and their fresh rows.
type Transfer = fn(&mut Engine, &mut Plan, &[usize], Option<&[&[u8]]>) -> avsg::Result<()>;

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
        let layers = contract!(boundary::array("layers", layers, count))?;
        if let Some(stream) = stream {
            let run = |fresh: Option<&[DeviceArray]>| {
                Ok(contract!(engine.enqueue_transfer(&plan, layers, fresh, stream))?)
            };
            return contract!(with_rows::<_, AVSG_MAX_LIST_SEGMENTS>(
                fresh,
                count,
                device_rows,
                run
            ));
        }
        check_readable(plan.is_queued())?;
        let run = |fresh: Option<&[&[u8]]>| Ok(on_host(&mut engine, &mut plan, layers, fresh)?);
        contract!(with_host_rows::<AVSG_MAX_LIST_SEGMENTS>(fresh, count, run))
    })
}

/// Writes the step's fresh rows to `count` layers of the pool, in ascending order: fresh row g of a request
/// becomes the row of id stable_len + g. `fresh` is that of a transfer. A request may have any number of
/// rows, which writes those of a prefill or a restore. `ids`, `ids_stride`, `k`, `indexer` and the elements
/// of `generation` are ignored. Requests whose `stable_len` or `state` is -1 are skipped. If two requests
/// have one row in the pool, host arrays leave that of the later one, and a stream that of either or a mix.
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
        let batch = contract!(boundary::read(batch))?;
        let layers = contract!(boundary::array("layers", layers, count))?;
        let none = || {
            let text = "fresh is NULL, but append needs the fresh rows; pass those of the step";
            Failure::new(AVSG_NULL, text.into())
        };
        if let Some(stream) = stream {
            let run = |fresh: Option<&[DeviceArray]>| {
                let (fresh, rows) = (fresh.ok_or_else(none)?, batch.append_rows);
                let batch = device_batch(&batch)?;
                Ok(contract!(engine.enqueue_append(&batch, rows, layers, fresh, stream))?)
            };
            return contract!(with_rows::<_, AVSG_MAX_LIST_SEGMENTS>(
                fresh,
                count,
                device_rows,
                run
            ));
        }
        let run = |fresh: Option<&[&[u8]]>| {
            let (fresh, batch) = (fresh.ok_or_else(none)?, contract!(host_batch(&batch))?);
            Ok(engine.append(&batch, layers, fresh)?)
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
    batch_of(batch, |what, array| contract!(boundary::array(what, array.data, array.len)))
}

#[cfg(test)]
mod tests;
