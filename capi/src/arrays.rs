//! The batch and the fresh rows of a step, as C passes them.

use std::ffi::c_void;

use crate::contract::contract;
use crate::segments::AVSG_MAX_SEGMENTS;
use crate::sized::{self, SizedStruct};
use crate::status::{Failure, Result};
use avsg::engine::{Batch, Fresh};
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

/// The batch of one decode step. An array has an element per request unless its comment says otherwise,
/// and must not overlap what the call writes: the plan, the slots and the tables.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_batch {
    /// sizeof(avsg_batch).
    pub size: usize,
    /// The ids of token t from t * ids_stride on; a negative id is padding.
    pub ids: avsg_i32s,
    /// Elements from one token of `ids` to the next.
    pub ids_stride: usize,
    /// Ids per token: 1 to the engine's K.
    pub k: usize,
    /// The first token of each request, from 0 and at most N_q apart, and then the number of tokens.
    pub cu_q: avsg_i32s,
    /// A distinct state of each request; -1: a padded request, without slots.
    pub state: avsg_i32s,
    /// One that the state has not had empties the state.
    pub generation: avsg_i32s,
    /// Tokens whose rows were final before this step. Slots of ids from there on are emptied first,
    /// and the rows of those ids are fresh rows. -1: neither.
    pub stable_len: avsg_i32s,
    /// Tokens of the sequence with those of this step, at most 4194304.
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

// SAFETY: the struct is repr(C) with `size` first, and its fields are 20 words (asserted below)
// that may have any value.
unsafe impl SizedStruct for avsg_batch {
    const NAME: &'static str = "avsg_batch";
    const FIRST_SIZE: usize = 160;
}
const _: () = assert!(size_of::<avsg_batch>() == 160);

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
    let array = |what, a: avsg_i32s| contract!(sized::array(what, a.data, a.len));
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
    let fresh = contract!(sized::read(fresh)?);
    if fresh.segments > MAX_SEGMENTS {
        let n = fresh.segments;
        return Failure::refuse(format!(
            "avsg_fresh.segments is {n}, but a row has 1 to {MAX_SEGMENTS}; pass the pool's segments"
        ));
    }
    let mut slices: [&[u8]; MAX_SEGMENTS] = [&[]; MAX_SEGMENTS];
    for (i, slice) in slices.iter_mut().enumerate().take(fresh.segments) {
        *slice = contract!(sized::array("fresh data", fresh.data[i].cast(), fresh.bytes[i])?);
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
