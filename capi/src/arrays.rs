//! The batch and the fresh rows of a step, as C passes them.

use std::ffi::c_void;

use crate::pool_config::AVSG_MAX_SEGMENTS;
use crate::sized::{self, SizedStruct};
use crate::status::avsg_status::AVSG_INVALID;
use crate::status::{Failure, Result};
use avsg::engine::{Batch, Fresh};
use avsg::rows::MAX_SEGMENTS;

/// An array of int32_t. Its length is checked against the batch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_i32s {
    /// The first element.
    pub data: *const i32,
    /// The number of elements.
    pub len: usize,
}

/// The batch of one decode step. The rule Streams states which memory the arrays are in. One that
/// overlaps the outputs of the call's plan, or the device buffer or a table of its engine, is
/// AVSG_INVALID in a call that plans. In a stream the number of rows is read
/// on the device and is at most what `ids` has elements for. An array has one element per request
/// unless its comment states a different length.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_batch {
    /// sizeof(avsg_batch).
    pub size: usize,
    /// The selected ids: row r has `k` of them from r * ids_stride on. A negative id is padding. An
    /// id at or above its request's `seq_len`, or that misses and whose row is outside the pool, is
    /// treated as padding and sets an `avsg_request_status` bit. An id that hits keeps its slot also
    /// if its block has left the pool or the block table. An id may occur in a row more than once:
    /// all that hit have one slot, and each that misses takes a slot and a copy of its own
    /// (`avsg_plan_count_duplicates`).
    pub ids: avsg_i32s,
    /// Elements from one row of `ids` to the next, at least `k`.
    pub ids_stride: usize,
    /// Ids per row: 1 to the engine's K.
    pub k: usize,
    /// The first row of each request, and then the number of rows: requests + 1 elements that begin
    /// at 0 and ascend by at most N_q.
    pub cu_q: avsg_i32s,
    /// The state of each request, distinct, or -1 for a padded request, whose slots become -1 and
    /// which copies nothing. Its length is the number of requests.
    pub state: avsg_i32s,
    /// The generation of each request, by the rule Generations.
    pub generation: avsg_i32s,
    /// The number of tokens whose rows were final before this step: the context length without this
    /// step's tokens. Slots of ids from there on are emptied first, and the rows of those ids are
    /// fresh rows. -1 disables both.
    pub stable_len: avsg_i32s,
    /// The sequence length with this step's tokens, at most 4194304. If `stable_len` is not -1, it is
    /// at least `stable_len` and at most `stable_len` plus the request's rows.
    pub seq_len: avsg_i32s,
    /// The pool's blocks of each request, `block_stride` elements per request; empty if the
    /// engine's `page` is 0.
    pub block_table: avsg_i32s,
    /// Elements from one request of `block_table` to the next.
    pub block_stride: usize,
    /// The indexer that selected the ids: a number of `avsg_engine_config.layer_indexer`, or 0 in an
    /// engine with one indexer. An append ignores it.
    pub indexer: usize,
    /// In a stream, the most rows that `cu_q` counts in an append: 0 means those that `ids` has
    /// elements for, or N_q per request without ids. Other calls ignore it.
    pub rows: usize,
}

// SAFETY: the struct is repr(C) with `size` first, and its fields are 20 words (asserted below)
// that may have any value.
unsafe impl SizedStruct for avsg_batch {
    const NAME: &'static str = "avsg_batch";
    const FIRST_SIZE: usize = 144;
}
const _: () = assert!(size_of::<avsg_batch>() == 160);

/// The fresh rows of a step. In each segment, row r of the batch is at r * (the segment's stride).
/// The rule Streams states which memory they are in; a call that transfers refuses rows that overlap
/// what it writes, as it refuses arrays of a batch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_fresh {
    /// sizeof(avsg_fresh).
    pub size: usize,
    /// The number of segments, which is the pool's.
    pub segments: usize,
    /// The first row of each segment.
    pub data: [*const c_void; AVSG_MAX_SEGMENTS],
    /// Bytes at each of `data`: at least (rows - 1) * stride + (bytes of the segment), in a stream
    /// for the largest number of rows that the batch can have.
    pub bytes: [usize; AVSG_MAX_SEGMENTS],
}

// SAFETY: the struct is repr(C) with `size` first, and its fields are words that may have any
// value.
unsafe impl SizedStruct for avsg_fresh {
    const NAME: &'static str = "avsg_fresh";
    const FIRST_SIZE: usize = 80;
}
const _: () = assert!(size_of::<avsg_fresh>() == 80);

/// Borrows the arrays of a batch in host memory.
///
/// # Safety
/// During 'a each array of `batch` is NULL or valid for reads of its length, and not written.
pub(crate) unsafe fn host_batch<'a>(batch: &avsg_batch) -> Result<Batch<'a>> {
    // SAFETY: the caller keeps the contract of this function (`# Safety`).
    let array = |what, a: avsg_i32s| unsafe { sized::array(what, a.data, a.len) };
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
        indexer: batch.indexer,
    })
}

/// The segments of fresh rows, and their number.
type Segments<'a> = ([&'a [u8]; MAX_SEGMENTS], usize);

/// Reads fresh rows in host memory; None for NULL.
///
/// # Safety
/// `fresh` is NULL or valid for reads of the number of bytes in its `size`. During 'a each of its
/// `data` is NULL or valid for reads of its `bytes`, and not written.
pub(crate) unsafe fn read_fresh<'a>(fresh: *const avsg_fresh) -> Result<Option<Segments<'a>>> {
    if fresh.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller keeps the contract of this function (`# Safety`).
    let fresh = unsafe { sized::read(fresh)? };
    if fresh.segments > MAX_SEGMENTS {
        let n = fresh.segments;
        let text = format!(
            "avsg_fresh.segments is {n}, but a row has 1 to {MAX_SEGMENTS}; pass the pool's segments"
        );
        return Err(Failure::new(AVSG_INVALID, text));
    }
    let mut slices: [&[u8]; MAX_SEGMENTS] = [&[]; MAX_SEGMENTS];
    for (i, slice) in slices.iter_mut().enumerate().take(fresh.segments) {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        *slice = unsafe { sized::array("fresh data", fresh.data[i].cast(), fresh.bytes[i])? };
    }
    Ok(Some((slices, fresh.segments)))
}

/// Calls `run` with fresh rows in the engine's type.
pub(crate) fn with_fresh<T>(
    fresh: Option<&Segments<'_>>,
    run: impl FnOnce(Option<&Fresh<'_>>) -> T,
) -> T {
    match fresh {
        Some((slices, n)) => run(Some(&Fresh { segments: &slices[..*n] })),
        None => run(None),
    }
}
