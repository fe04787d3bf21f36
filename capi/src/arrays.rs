//! A step's batch and its fresh rows, as C passes them.

use std::ffi::c_void;

use crate::pool_config::AVSG_MAX_SEGMENTS;
use crate::sized::{self, Sized_};
use crate::status::avsg_status::AVSG_INVALID;
use crate::status::{Fail, Result};
use avsg::engine::{Batch, Fresh};
use avsg::rows::MAX_SEGMENTS;

/// An array of int32 and its length in elements. The length is checked against what the batch needs.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_i32s {
    /// The first element. NULL only if `len` is 0.
    pub data: *const i32,
    /// Elements.
    pub len: usize,
}

/// One decode step's batch. With a NULL `stream`, arrays are host memory and are read during the call only;
/// with a stream, they are memory of the device, must stay until its work (and every replay) is done, and
/// the batch has as many rows as `ids` has room for, at most. Neither may overlap memory of the engine or a
/// plan. All are per request unless they say
/// otherwise.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_batch {
    /// sizeof(avsg_batch).
    pub size: usize,
    /// Selected ids, row by row (a row is a token of a request); negative is padding. An id that is not
    /// below its request's `seq_len`, or whose block is outside the pool, is treated as padding and
    /// raises a status bit of the request.
    pub ids: avsg_i32s,
    /// Elements from row to row of `ids`, at least `k`.
    pub ids_stride: usize,
    /// Ids per row, 1 to the engine's K.
    pub k: usize,
    /// First row of each request, and the number of rows at the end: requests + 1 elements, from 0,
    /// ascending by at most N_q.
    pub cu_q: avsg_i32s,
    /// State of each request, each at most once; -1 for a padded request: its slots are -1 and it copies
    /// nothing. Its length is the number of requests.
    pub state: avsg_i32s,
    /// Generation: a value other than the state's last one starts cold. Change it when another request
    /// takes the state, or when the request's rows were computed anew.
    pub generation: avsg_i32s,
    /// Tokens whose KV was final before this step: the context length without this step's rows. Slots
    /// of ids from there on are dropped first, and those ids come from the fresh rows. -1: neither.
    pub stable_len: avsg_i32s,
    /// Sequence length with this step's tokens: ids must be below it. At most 4194304.
    pub seq_len: avsg_i32s,
    /// Host blocks of each request, `block_stride` elements each; empty if the engine's page is 0.
    pub block_table: avsg_i32s,
    /// Elements of one request in `block_table`.
    pub block_stride: usize,
}

// SAFETY: repr(C), words only (18 of them, asserted below), size first; any bytes are a value.
unsafe impl Sized_ for avsg_batch {
    const NAME: &'static str = "avsg_batch";
    const FIRST: usize = 144;
}
const _: () = assert!(size_of::<avsg_batch>() == 144);

/// The rows of this step, which exist only on the device so far: for each segment, row r of the batch
/// is at r * (the segment's stride). Host memory with a NULL `stream`, else memory of the device.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_fresh {
    /// sizeof(avsg_fresh).
    pub size: usize,
    /// Segments, as many as the pool's rows have.
    pub segments: usize,
    /// Where each segment's rows begin.
    pub data: [*const c_void; AVSG_MAX_SEGMENTS],
    /// Bytes of each, at least (rows - 1) * stride + bytes of a row; in a stream for all rows that the
    /// batch may have.
    pub bytes: [usize; AVSG_MAX_SEGMENTS],
}

// SAFETY: repr(C), words only, size first; any bytes are a value.
unsafe impl Sized_ for avsg_fresh {
    const NAME: &'static str = "avsg_fresh";
    const FIRST: usize = 80;
}
const _: () = assert!(size_of::<avsg_fresh>() == 80);

/// A batch that Rust may look at.
///
/// # Safety
/// `batch` is NULL or valid for as many bytes as its `size` says, and each of its arrays is NULL or
/// valid for reads of its length, and not written, for as long as 'a.
pub(crate) unsafe fn batch<'a>(batch: *const avsg_batch) -> Result<Batch<'a>> {
    // SAFETY: the contract.
    let batch = unsafe { sized::read(batch)? };
    // SAFETY: the contract.
    let array = |what, of: avsg_i32s| unsafe { sized::array(what, of.data, of.len) };
    Ok(Batch {
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
    })
}

/// Fresh rows that Rust may look at: slices of the segments, and how many.
type Segments<'a> = ([&'a [u8]; MAX_SEGMENTS], usize);

/// Fresh rows; None for NULL.
///
/// # Safety
/// As for [`batch`].
pub(crate) unsafe fn fresh<'a>(fresh: *const avsg_fresh) -> Result<Option<Segments<'a>>> {
    if fresh.is_null() {
        return Ok(None);
    }
    // SAFETY: the contract.
    let fresh = unsafe { sized::read(fresh)? };
    if fresh.segments > MAX_SEGMENTS {
        let n = fresh.segments;
        let text = format!(
            "avsg_fresh.segments is {n}, but a row has 1 to {MAX_SEGMENTS}; pass the pool's number"
        );
        return Err(Fail::new(AVSG_INVALID, text));
    }
    let mut slices: [&[u8]; MAX_SEGMENTS] = [&[]; MAX_SEGMENTS];
    for (i, slice) in slices.iter_mut().enumerate().take(fresh.segments) {
        // SAFETY: the contract.
        *slice = unsafe { sized::array("fresh data", fresh.data[i].cast(), fresh.bytes[i])? };
    }
    Ok(Some((slices, fresh.segments)))
}

/// Calls `run` with the fresh rows as the engine takes them.
pub(crate) fn with_fresh<T>(
    fresh: Option<&Segments<'_>>,
    run: impl FnOnce(Option<&Fresh<'_>>) -> T,
) -> T {
    match fresh {
        Some((slices, n)) => run(Some(&Fresh { segments: &slices[..*n] })),
        None => run(None),
    }
}
