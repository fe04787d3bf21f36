//! What calls with host arrays need beside a plan's arrays: memory for block tables and for fresh
//! rows. It belongs to the engine, because one call runs at a time, and grows to the
//! largest batch so far.

use avsg_device::tiling::MAX_SEGMENTS;

use super::acl::{MemorySource, Mirrored, sys};
use crate::Result;
use crate::call::{Batch, Call, HostCall, Work};
use crate::device_arrays::{DeviceArray, DeviceBatch, DeviceCall, RawStream};
use crate::resources::Resources;
use crate::rows::RowFormat;

/// The alignment of each segment of the fresh rows, and the least bytes of an allocation.
const ALIGN: usize = 64;

/// Returns the bytes that an allocation for `bytes` bytes takes: a power of two, so that growing
/// batches seldom allocate. `None` on overflow.
fn capacity(bytes: usize) -> Option<usize> {
    if bytes == 0 { Some(0) } else { bytes.max(ALIGN).checked_next_power_of_two() }
}

/// Returns the bytes of `rows` fresh rows; `None` on overflow.
fn fresh_bytes(format: &RowFormat, rows: usize) -> Option<usize> {
    format.as_slice().iter().try_fold(0usize, |sum, segment| {
        sum.checked_add(rows.checked_mul(segment.stride)?.checked_next_multiple_of(ALIGN)?)
    })
}

/// Returns the most bytes of device memory, and as many of pinned memory, that batches of `rows`
/// rows and `requests` requests with `entries` entries each in the block table take; `None` on
/// overflow.
pub(super) fn bytes(
    format: &RowFormat,
    rows: usize,
    requests: usize,
    entries: usize,
) -> Option<usize> {
    let table = capacity(requests.checked_mul(entries)?.checked_mul(4)?)?;
    table.checked_add(capacity(fresh_bytes(format, rows)?)?)
}

/// Returns the entries per request of a batch's block table that kernels read: those of the
/// longest sequence.
fn entries(resources: &Resources, batch: &Batch<'_>) -> usize {
    // The lengths of padded requests are ignored.
    let longest = batch.seq_len.iter().zip(batch.state).filter(|(_, s)| **s >= 0);
    let longest = longest.map(|(&seq, _)| seq.max(0) as usize).max().unwrap_or(0);
    match resources.config.params.page as usize {
        0 => 0,
        page => batch.block_stride.min(longest.div_ceil(page)),
    }
}

/// Returns the plan of a call's batch with the sizes that kernels read, without addresses.
pub(super) fn sizes(resources: &Resources, call: &HostCall<'_>) -> DeviceCall<'static> {
    let HostCall { batch, tokens, .. } = call;
    let state = DeviceArray { address: 0, len: batch.requests() };
    let (k, block_stride) = (batch.k, entries(resources, batch));
    let arrays = DeviceBatch { state, k, ids_stride: k, block_stride, ..Default::default() };
    Call::of(Work::Plan, arrays, *tokens)
}

/// Makes room for `bytes` bytes in memory that no work uses.
fn make_room(memory: &mut Option<Mirrored>, source: MemorySource<'_>, bytes: usize) -> Result<()> {
    if memory.as_ref().map_or(0, |memory| memory.device.len()) < bytes {
        *memory = None;
        // An allocation of too many bytes fails.
        *memory = Some(Mirrored::new(source, capacity(bytes).unwrap_or(bytes))?);
    }
    Ok(())
}

#[derive(Debug, Default)]
pub(super) struct Staging {
    table: Option<Mirrored>,
    fresh: Option<Mirrored>,
}

impl Staging {
    /// Makes room for the block table and the fresh rows of a call. No work uses this memory.
    pub fn reserve(
        &mut self,
        source: MemorySource<'_>,
        resources: &Resources,
        HostCall { batch, tokens, fresh, .. }: &HostCall<'_>,
    ) -> Result<()> {
        let words = batch.requests() * entries(resources, batch);
        make_room(&mut self.table, source, 4 * words)?;
        let bytes = fresh.map_or(Some(0), |_| fresh_bytes(resources.pool.format(), *tokens));
        make_room(&mut self.fresh, source, bytes.unwrap_or(usize::MAX))
    }

    /// Puts the copy of a batch's block table into a stream, and returns it and its entries per
    /// request. [`Self::reserve`] has made room.
    ///
    /// # Safety
    /// Earlier work on this memory is done, and the memory is neither dropped nor passed to another upload
    /// before this work is. The stream is alive and belongs to the current context, which is the memory's.
    pub unsafe fn upload_table(
        &mut self,
        resources: &Resources,
        batch: &Batch<'_>,
        stream: RawStream,
    ) -> Result<(DeviceArray, usize)> {
        let entries = entries(resources, batch);
        let n = batch.requests() * entries;
        let Some(memory) = self.table.as_mut().filter(|_| n > 0) else {
            return Ok((DeviceArray::default(), entries));
        };
        // SAFETY: earlier work on this memory is done (`# Safety`).
        let words = unsafe { memory.words_mut() };
        for request in 0..batch.requests() {
            let from = &batch.block_table[request * batch.block_stride..][..entries];
            words[request * entries..][..entries].copy_from_slice(from);
        }
        // SAFETY: the memory is kept and left alone until the copy is done, and the stream is alive
        // (`# Safety`).
        unsafe { memory.copy(sys::ACL_MEMCPY_HOST_TO_DEVICE, 0, 4 * n, stream)? };
        Ok((DeviceArray { address: memory.device.address(), len: n }, entries))
    }

    /// Puts the copy of `rows` fresh rows into a stream and returns the rows of each segment there;
    /// address 0 without fresh rows. [`Self::reserve`] has made room.
    ///
    /// # Safety
    /// As for [`Self::upload_table`].
    pub unsafe fn upload_fresh(
        &mut self,
        format: &RowFormat,
        fresh: Option<&[&[u8]]>,
        rows: usize,
        stream: RawStream,
    ) -> Result<[DeviceArray; MAX_SEGMENTS]> {
        let mut on_device = [DeviceArray::default(); MAX_SEGMENTS];
        let (Some(parts), Some(memory)) = (fresh, &mut self.fresh) else {
            return Ok(on_device);
        };
        let mut at = 0;
        let segments = parts.iter().zip(format.as_slice());
        for (rows_at, (part, segment)) in on_device.iter_mut().zip(segments) {
            let len = part.len().min(rows * segment.stride);
            // SAFETY: earlier work on this memory is done (`# Safety`), and the copy is queued after this
            // loop.
            let bytes = unsafe { memory.bytes_mut() };
            bytes[at..][..len].copy_from_slice(&part[..len]);
            *rows_at = DeviceArray { address: memory.device.address() + at as u64, len };
            at += (rows * segment.stride).next_multiple_of(ALIGN);
        }
        // SAFETY: as in `upload_table`.
        unsafe { memory.copy(sys::ACL_MEMCPY_HOST_TO_DEVICE, 0, at, stream)? };
        Ok(on_device)
    }
}
