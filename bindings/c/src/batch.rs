//! The batch and the fresh rows of a step, as C passes them.

use std::ffi::c_void;

use crate::segments::AVSG_MAX_SEGMENTS;
use crate::sized;
use crate::status::avsg_status::AVSG_SIZE;
use crate::status::{Failure, Result, ensure};
use avsg::engine::{BatchOf, DeviceArray, DeviceFresh, DeviceRows, Fresh};
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
pub(crate) fn batch_of<A>(
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
pub(crate) fn device_array(what: &str, array: avsg_i32s) -> Result<DeviceArray> {
    check_device_memory(what, array.data, array.len)?;
    Ok(DeviceArray { address: array.data.addr() as u64, len: array.len })
}

fn check_device_memory<T>(what: &str, at: *const T, len: usize) -> Result<()> {
    if len > 0 && at.is_null() { Err(sized::null_error(what)) } else { Ok(()) }
}

/// The segments of fresh rows.
pub(crate) type Segments<T> = heapless::Vec<T, MAX_SEGMENTS>;

/// A segment of fresh rows: its address and its bytes.
pub(crate) type RawSegment = (*const c_void, usize);

/// Reads the `size` of a struct of fresh rows, and where they are.
///
/// # Safety
/// `fresh` is NULL or valid for reads of the number of bytes in its `size`.
pub(crate) unsafe fn read_fresh(fresh: *const avsg_fresh) -> Result<(usize, Segments<RawSegment>)> {
    let fresh = contract!(sized::read(fresh))?;
    let n = fresh.segments;
    ensure!(
        (1..=MAX_SEGMENTS).contains(&n),
        "avsg_fresh.segments is {n}, but a row has 1 to {MAX_SEGMENTS}; pass the pool's segments"
    );
    Ok((fresh.size, fresh.data.into_iter().zip(fresh.bytes).take(n).collect()))
}

/// Borrows the segments of fresh rows in host memory.
///
/// # Safety
/// During 'a each segment is NULL or valid for reads of its bytes, and not written.
pub(crate) unsafe fn host_segments<'a>(fresh: &[RawSegment]) -> Result<Segments<&'a [u8]>> {
    let borrow =
        |&(data, bytes): &RawSegment| contract!(sized::array("fresh data", data.cast(), bytes));
    fresh.iter().map(borrow).collect()
}

/// Returns the segments of fresh rows in device memory.
pub(crate) fn device_segments(fresh: &[RawSegment]) -> Result<Segments<DeviceRows>> {
    let rows = |&(data, bytes): &RawSegment| {
        check_device_memory("fresh data", data, bytes)?;
        Ok(DeviceRows { address: data.addr() as u64, bytes })
    };
    fresh.iter().map(rows).collect()
}

/// The most segments that the fresh rows of a call have in all its layers: 256 layers of one segment, or 64
/// of 4.
pub const AVSG_MAX_LIST_SEGMENTS: usize = 256;

/// Reads the fresh rows of `count` layers, of which `convert` makes those of one, and returns whether `list`
/// has them: it may be NULL. The result is in `all`, because a thread may have a small stack.
///
/// # Safety
/// `list` is NULL or an array of `count` structs, each of which is valid for reads of the number of bytes in
/// its `size`.
unsafe fn read_list<T, const MOST: usize>(
    list: *const avsg_fresh,
    count: usize,
    convert: impl Fn(&[RawSegment]) -> Result<Segments<T>>,
    all: &mut heapless::Vec<T, MOST>,
) -> Result<bool> {
    if list.is_null() || count == 0 {
        return Ok(count == 0);
    }
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
        // This cannot fail: `count` is at most what fits.
        all.extend(convert(&fresh)?);
    }
    Ok(true)
}

/// Runs `run` with the fresh rows of `count` layers in host memory: the segments of the first layer, then those
/// of the second, and so on; None if `list` is NULL.
///
/// # Safety
/// As for [`read_list`]; during the call each segment is NULL or valid for reads of its bytes, and not
/// written.
pub(crate) unsafe fn with_host_rows<const MOST: usize>(
    list: *const avsg_fresh,
    count: usize,
    run: impl FnOnce(Option<&Fresh<'_>>) -> Result<()>,
) -> Result<()> {
    let mut all = heapless::Vec::<_, MOST>::new();
    let given = contract!(read_list(list, count, |segments| host_segments(segments), &mut all))?;
    run(given.then_some(Fresh { segments: &all }).as_ref())
}

/// Runs `run` as [`with_host_rows`] does, with fresh rows in device memory. It is not inlined, because the stack
/// of its caller has a list of its own.
///
/// # Safety
/// As for [`read_list`].
#[inline(never)]
pub(crate) unsafe fn with_device_rows<const MOST: usize>(
    list: *const avsg_fresh,
    count: usize,
    run: impl FnOnce(Option<&DeviceFresh<'_>>) -> Result<()>,
) -> Result<()> {
    let mut all = heapless::Vec::<_, MOST>::new();
    let given = contract!(read_list(list, count, device_segments, &mut all))?;
    run(given.then_some(DeviceFresh { segments: &all }).as_ref())
}

#[cfg(test)]
mod tests;
