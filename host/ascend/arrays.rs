//! A batch's arrays and a plan's outputs in device memory, and the pinned memory that they are
//! copied through.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use avsg_device::request::record;

use super::acl::owned::{Context, DeviceMemory, PinnedMemory, RawStream};
use crate::batch::{Batch, Fresh};
use crate::device_arrays::{DevicePlan, QueuedBatch};
use crate::plan::Plan;
use crate::{Error, Result};

/// The alignment of arrays in words: 64 bytes.
const ALIGN_WORDS: usize = 16;

/// Offsets of the arrays in words, the same in device memory and in pinned memory.
#[derive(Clone, Copy, Debug)]
struct ArrayOffsets {
    cu_q: usize,
    state: usize,
    generation: usize,
    stable: usize,
    seq: usize,
    ids: usize,
    record: usize,
    valid: usize,
    slot: usize,
    miss: [usize; 4],
    words: usize,
}

impl ArrayOffsets {
    fn new(k: usize, rows: usize, requests: usize) -> Option<Self> {
        let mut words = 0usize;
        let mut place = |n: usize| {
            let at = words;
            words = words.checked_add(n.checked_next_multiple_of(ALIGN_WORDS)?)?;
            Some(at)
        };
        let selected = rows.checked_mul(k)?;
        let mut offsets = Self {
            cu_q: place(requests + 1)?,
            state: place(requests)?,
            generation: place(requests)?,
            stable: place(requests)?,
            seq: place(requests)?,
            ids: place(selected)?,
            record: place(requests.checked_mul(record::WORDS)?)?,
            valid: place(rows)?,
            slot: place(selected)?,
            miss: [place(selected)?, place(selected)?, place(selected)?, place(selected)?],
            words: 0,
        };
        offsets.words = words;
        offsets.words.checked_mul(4)?;
        Some(offsets)
    }
}

/// The pinned memory, and the memory of block tables, which grows to the largest so far.
#[derive(Debug)]
struct Staging {
    pinned: PinnedMemory,
    blocks: Option<(DeviceMemory, PinnedMemory, usize)>,
}

/// The arrays of batches with at most `rows` rows and `requests` requests.
#[derive(Debug)]
pub(crate) struct Arrays {
    context: Arc<Context>,
    k: usize,
    pub(super) rows: usize,
    pub(super) requests: usize,
    offsets: ArrayOffsets,
    device: DeviceMemory,
    staging: Mutex<Staging>,
}

impl Arrays {
    pub fn new(context: &Arc<Context>, k: usize, rows: usize, requests: usize) -> Result<Self> {
        let offsets = ArrayOffsets::new(k, rows, requests).ok_or_else(|| {
            let limit = "its arrays must fit the address space";
            Error::invalid("plan rows", rows, limit, "size it for your largest batch")
        })?;
        let device = DeviceMemory::new(context, 4 * offsets.words)?;
        let pinned = PinnedMemory::new(context, 4 * offsets.words)?;
        let staging = Mutex::new(Staging { pinned, blocks: None });
        Ok(Self { context: Arc::clone(context), k, rows, requests, offsets, device, staging })
    }

    fn staging(&self) -> MutexGuard<'_, Staging> {
        self.staging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, word: usize) -> u64 {
        self.device.address() + 4 * word as u64
    }

    /// Puts the copies of a checked batch to the device into a stream and returns the device
    /// addresses.
    ///
    /// # Safety
    /// Earlier work on these arrays is done, and they are not dropped before this work is.
    pub unsafe fn upload(
        &self,
        batch: &Batch<'_>,
        page: usize,
        stream: RawStream,
    ) -> Result<QueuedBatch> {
        let (requests, p) = (batch.state.len(), &self.offsets);
        let rows = batch.cu_q[requests] as usize;
        // The lengths of padded requests are ignored.
        let longest = batch.seq_len.iter().zip(batch.state).filter(|(_, s)| **s >= 0);
        let longest = longest.map(|(&seq, _)| seq.max(0) as usize).max().unwrap_or(0);
        // Kernels do not read entries after the longest sequence.
        let entries = match page {
            0 => 0,
            _ => batch.block_stride.min(longest.div_ceil(page)),
        };
        let mut staging = self.staging();
        // SAFETY: earlier work on these arrays is done by the contract (`# Safety`).
        let words = unsafe { staging.pinned.words_mut() };
        for (at, array) in [
            (p.cu_q, batch.cu_q),
            (p.state, batch.state),
            (p.generation, batch.generation),
            (p.stable, batch.stable_len),
            (p.seq, batch.seq_len),
        ] {
            words[at..][..array.len()].copy_from_slice(array);
        }
        // A batch for an append has no ids.
        let k = if batch.ids.is_empty() { 0 } else { batch.k };
        for row in 0..if k == 0 { 0 } else { rows } {
            let ids = &batch.ids[row * batch.ids_stride..][..k];
            words[p.ids + row * k..][..k].copy_from_slice(ids);
        }
        for (at, n) in [
            // The arrays from `cu_q` to `seq` are adjacent and copied as one.
            (p.cu_q, p.seq + requests - p.cu_q),
            (p.ids, rows * k),
        ] {
            // SAFETY: the caller keeps the contract of this function (`# Safety`).
            unsafe { self.device.upload(4 * at, &staging.pinned, 4 * at, 4 * n, stream)? };
        }
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let block_table = unsafe { self.blocks(&mut staging, batch, requests, entries, stream)? };
        Ok(QueuedBatch {
            requests,
            rows,
            k: batch.k,
            ids: self.at(p.ids),
            ids_stride: batch.k,
            cu_q: self.at(p.cu_q),
            state: self.at(p.state),
            generation: self.at(p.generation),
            stable_len: self.at(p.stable),
            seq_len: self.at(p.seq),
            block_table,
            block_stride: entries,
            indexer: batch.indexer,
        })
    }

    /// # Safety
    /// As for [`Self::upload`].
    unsafe fn blocks(
        &self,
        staging: &mut Staging,
        batch: &Batch<'_>,
        requests: usize,
        entries: usize,
        stream: RawStream,
    ) -> Result<u64> {
        let words = requests * entries;
        if words == 0 {
            return Ok(0);
        }
        if staging.blocks.as_ref().is_none_or(|(_, _, capacity)| *capacity < words) {
            // The capacity is a power of two, so that growing contexts seldom allocate.
            let capacity = words.next_power_of_two();
            staging.blocks = None;
            let device = DeviceMemory::new(&self.context, 4 * capacity)?;
            staging.blocks =
                Some((device, PinnedMemory::new(&self.context, 4 * capacity)?, capacity));
        }
        let Some((device, pinned, _)) = &mut staging.blocks else { return Ok(0) };
        // SAFETY: earlier work on these arrays is done by the contract (`# Safety`).
        let words_of_table = unsafe { pinned.words_mut() };
        for request in 0..requests {
            let from = &batch.block_table[request * batch.block_stride..][..entries];
            words_of_table[request * entries..][..entries].copy_from_slice(from);
        }
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        unsafe { device.upload(0, pinned, 0, 4 * words, stream)? };
        Ok(device.address())
    }

    /// Returns the device addresses of the batch that was planned last.
    pub fn planned_batch(&self, plan: &Plan) -> QueuedBatch {
        let p = &self.offsets;
        QueuedBatch {
            requests: plan.requests,
            rows: plan.rows(),
            k: self.k,
            ids: self.at(p.ids),
            ids_stride: self.k,
            cu_q: self.at(p.cu_q),
            state: self.at(p.state),
            indexer: plan.indexer,
            ..QueuedBatch::default()
        }
    }

    /// Returns the device addresses of the outputs.
    pub fn outputs(&self) -> DevicePlan {
        let p = &self.offsets;
        DevicePlan {
            slot: self.at(p.slot),
            valid: self.at(p.valid),
            miss: p.miss.map(|at| self.at(at)),
            record: self.at(p.record),
        }
    }

    /// Puts the copies of a plan's outputs to the host into a stream.
    ///
    /// # Safety
    /// The arrays are not dropped before this work is done.
    pub unsafe fn download(&self, plan: &Plan, stream: RawStream) -> Result<()> {
        let (p, staging) = (&self.offsets, self.staging());
        let (rows, selected) = (plan.rows(), plan.rows() * self.k);
        let [a, b, c, d] = p.miss;
        for (at, n) in [
            (p.record, plan.requests * record::WORDS),
            (p.valid, rows),
            (p.slot, selected),
            (a, selected),
            (b, selected),
            (c, selected),
            (d, selected),
        ] {
            // SAFETY: the caller keeps the contract of this function (`# Safety`).
            unsafe { self.device.download(4 * at, &staging.pinned, 4 * at, 4 * n, stream)? };
        }
        Ok(())
    }

    /// Copies the downloaded outputs into the plan.
    ///
    /// # Safety
    /// The stream of the download has been synchronized.
    pub unsafe fn copy_to_plan(&self, plan: &mut Plan) {
        let (p, staging) = (&self.offsets, self.staging());
        // SAFETY: the download is done by the contract (`# Safety`).
        let words = unsafe { staging.pinned.words() };
        let (rows, requests) = (plan.rows(), plan.requests);
        let selected = rows * self.k;
        plan.record[..requests * record::WORDS]
            .copy_from_slice(&words[p.record..][..requests * record::WORDS]);
        plan.valid[..rows].copy_from_slice(&words[p.valid..][..rows]);
        plan.slot[..selected].copy_from_slice(&words[p.slot..][..selected]);
        for (list, at) in plan.miss.iter_mut().zip(p.miss) {
            list[..selected].copy_from_slice(&words[at..][..selected]);
        }
    }
}

/// Memory for the fresh rows of a step, which grows to the largest batch so far.
#[derive(Debug, Default)]
pub(super) struct FreshRows {
    memory: Option<(DeviceMemory, PinnedMemory, usize)>,
}

impl FreshRows {
    /// Puts the copy of fresh rows into a stream and returns the device address of each segment; 0
    /// without fresh rows.
    ///
    /// # Safety
    /// Earlier work on these rows is done, and they are not dropped before this work is.
    pub unsafe fn upload(
        &mut self,
        context: &Arc<Context>,
        fresh: Option<&Fresh<'_>>,
        stream: RawStream,
    ) -> Result<[u64; 2]> {
        let Some(Fresh { segments: parts }) = fresh else { return Ok([0; 2]) };
        let padded = |part: &&[u8]| part.len().next_multiple_of(64);
        let bytes = parts.iter().map(padded).sum::<usize>().max(64);
        if self.memory.as_ref().is_none_or(|(_, _, capacity)| *capacity < bytes) {
            let capacity = bytes.next_power_of_two();
            self.memory = None;
            let device = DeviceMemory::new(context, capacity)?;
            self.memory = Some((device, PinnedMemory::new(context, capacity)?, capacity));
        }
        let mut addresses = [0; 2];
        let Some((device, pinned, _)) = &mut self.memory else { return Ok(addresses) };
        let mut at = 0;
        for (address, part) in addresses.iter_mut().zip(*parts) {
            // SAFETY: earlier work on these rows is done by the contract (`# Safety`), and the copy
            // is queued after this loop.
            let bytes = unsafe { pinned.bytes_mut() };
            bytes[at..][..part.len()].copy_from_slice(part);
            *address = device.address() + at as u64;
            at += padded(part);
        }
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        unsafe { device.upload(0, pinned, 0, at, stream)? };
        Ok(addresses)
    }
}
