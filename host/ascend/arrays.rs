//! A batch's arrays and a plan's outputs in device memory, the pinned memory that they are copied
//! through, and those of all plans of an engine.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use avsg_device::request::summary;

use super::acl::{MemorySource, Mirrored, sys};
use crate::call::{Batch, Call, HostCall, Work};
use crate::device_arrays::{DeviceArray, DeviceBatch, DeviceCall, DevicePlan, RawStream};
use crate::plan::{Plan, SharedCounters};
use crate::{Result, invalid};

/// The alignment of arrays in words: 64 bytes.
const ALIGN_WORDS: usize = 16;

/// Offsets in words, the same in device memory and in pinned memory: of `cu_q`, `state`, `generation`, `stable_len` and
/// `seq_len`, which are adjacent, and `ids`; of summaries, `valid`, `slot`, and the columns of the miss list.
type Offsets = ([usize; 6], [usize; 7]);

/// Returns the offsets, and the words of all arrays; `None` if their bytes overflow.
fn offsets(k: usize, rows: usize, requests: usize) -> Option<(Offsets, usize)> {
    let (selected, n) = (rows.checked_mul(k)?, requests);
    let mut inputs = [n.checked_add(1)?, n, n, n, n, selected];
    let mut outputs = [selected; 7];
    (outputs[0], outputs[1]) = (n.checked_mul(summary::WORDS)?, rows);
    let mut words = 0usize;
    for at in inputs.iter_mut().chain(&mut outputs) {
        let end = words.checked_add(at.checked_next_multiple_of(ALIGN_WORDS)?)?;
        *at = core::mem::replace(&mut words, end);
    }
    words.checked_mul(4).map(|_| ((inputs, outputs), words))
}

/// The arrays of batches with at most `rows` rows and `requests` requests.
#[derive(Debug)]
pub(crate) struct Arrays {
    offsets: Offsets,
    /// The device address of the first.
    address: u64,
    memory: Mutex<Mirrored>,
}

impl Arrays {
    /// Returns the bytes of device memory, and as many of pinned memory, that [`Self::new`]
    /// allocates; `None` on overflow.
    pub fn bytes(k: usize, rows: usize, requests: usize) -> Option<usize> {
        offsets(k, rows, requests).map(|(_, words)| 4 * words)
    }

    pub fn new(source: MemorySource<'_>, k: usize, rows: usize, requests: usize) -> Result<Self> {
        let (offsets, words) = offsets(k, rows, requests).ok_or_else(|| {
            invalid!("max_tokens" is rows, but "its arrays must fit the address space";
                "size it for your largest batch")
        })?;
        let memory = Mirrored::new(source, 4 * words)?;
        Ok(Self { offsets, address: memory.device.address(), memory: memory.into() })
    }

    fn memory(&self) -> MutexGuard<'_, Mirrored> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, word: usize) -> u64 {
        self.address + 4 * word as u64
    }

    /// Puts the copies of a checked batch to the device into a stream and returns the call
    /// over them, without layers. The batch's block table is there already, with `block_stride` entries per request.
    ///
    /// # Safety
    /// Earlier work on these arrays is done, and they are neither dropped nor passed to another upload
    /// before this work is. The stream is alive and belongs to the current context, which is theirs.
    pub unsafe fn upload(
        &self,
        HostCall { work, batch, tokens: rows, .. }: &HostCall<'_>,
        (block_table, block_stride): (DeviceArray, usize),
        stream: RawStream,
    ) -> Result<DeviceCall<'static>> {
        let (requests, rows) = (batch.requests(), *rows);
        let (inputs, [first, .., last, at_ids]) = (self.offsets.0, self.offsets.0);
        let mut memory = self.memory();
        // SAFETY: earlier work on these arrays is done (`# Safety`).
        let words = unsafe { memory.words_mut() };
        let Batch { cu_q, state, generation, stable_len, seq_len, .. } = *batch;
        let arrays = [cu_q, state, generation, stable_len, seq_len];
        for (at, array) in inputs.into_iter().zip(arrays) {
            words[at..][..array.len()].copy_from_slice(array);
        }
        let k = batch.k;
        for row in 0..rows {
            let ids = &batch.ids[row * batch.ids_stride..][..k];
            words[at_ids + row * k..][..k].copy_from_slice(ids);
        }
        // The arrays of requests are adjacent, and copied as one.
        for (at, n) in [(first, last + requests - first), (at_ids, rows * k)] {
            // SAFETY: the arrays are kept and left alone until the copy is done, and the stream is alive
            // (`# Safety`).
            unsafe { memory.copy(sys::ACL_MEMCPY_HOST_TO_DEVICE, 4 * at, 4 * n, stream)? };
        }
        let arrays = self.batch(k, requests, rows, batch.indexer);
        Ok(Call::of(*work, DeviceBatch { block_table, block_stride, ..arrays }, rows))
    }

    /// Returns the transfer, without layers, of the batch that was planned last.
    pub fn transfer(&self, plan: &Plan) -> DeviceCall<'static> {
        let rows = plan.tokens();
        Call::of(Work::Transfer, self.batch(plan.k, plan.requests, rows, plan.indexer), rows)
    }

    fn batch(&self, k: usize, requests: usize, rows: usize, indexer: usize) -> DeviceBatch {
        let [cu_q, state, generation, stable_len, seq_len, ids] =
            self.offsets.0.map(|at| DeviceArray { address: self.at(at), len: requests });
        DeviceBatch {
            ids: DeviceArray { len: rows * k, ..ids },
            ids_stride: k,
            k,
            cu_q: DeviceArray { len: requests + 1, ..cu_q },
            state,
            generation,
            stable_len,
            seq_len,
            indexer,
            ..DeviceBatch::default()
        }
    }

    /// Returns the device addresses of the outputs.
    pub fn outputs(&self) -> DevicePlan {
        let [summary, valid, slot, miss @ ..] = self.offsets.1.map(|at| self.at(at));
        DevicePlan { slot, valid, miss, summary }
    }

    /// Puts the copies of a plan's outputs to the host into a stream.
    ///
    /// # Safety
    /// The arrays are neither dropped nor used by other functions before this work is done. The stream is
    /// alive and belongs to the current context, which is theirs; the kernels that write the outputs are
    /// in it.
    pub unsafe fn download(&self, plan: &Plan, stream: RawStream) -> Result<()> {
        let memory = self.memory();
        for (at, n) in self.written(plan) {
            // SAFETY: the arrays are kept and left alone until the copy is done, which comes after the
            // kernels, and the stream is alive (`# Safety`).
            unsafe { memory.copy(sys::ACL_MEMCPY_DEVICE_TO_HOST, 4 * at, 4 * n, stream)? };
        }
        Ok(())
    }

    /// Copies the downloaded outputs into the plan.
    ///
    /// # Safety
    /// The stream of the download has been synchronized.
    pub unsafe fn copy_to_plan(&self, plan: &mut Plan) {
        let (written, mut memory) = (self.written(plan), self.memory());
        // SAFETY: the download is done, because its stream has been synchronized (`# Safety`).
        let words = unsafe { memory.words_mut() };
        let Plan { summary, valid, slot, miss: [position, id, miss_slot, row], .. } = plan;
        let arrays = [summary, valid, slot, position, id, miss_slot, row];
        for (array, (at, n)) in arrays.into_iter().zip(written) {
            array[..n].copy_from_slice(&words[at..][..n]);
        }
    }

    /// Returns the place and the number of the words that the kernels write for a plan's batch: summary,
    /// valid, slot, and the columns of the miss list.
    fn written(&self, plan: &Plan) -> [(usize, usize); 7] {
        let selected = plan.tokens() * plan.k;
        let mut written = self.offsets.1.map(|at| (at, selected));
        (written[0].1, written[1].1) = (plan.requests * summary::WORDS, plan.tokens());
        written
    }
}

/// The arrays of each plan with its counters, including dropped plans whose arrays the stream may still write.
#[derive(Default)]
pub(super) struct Plans(Mutex<Vec<(Weak<SharedCounters>, Arc<Arrays>)>>);

impl Plans {
    /// Allocates the arrays of a new plan. `idle` tells that no work uses the arrays of dropped
    /// plans, which are released then.
    pub fn prepare(&self, source: MemorySource<'_>, plan: &mut Plan, idle: bool) -> Result<()> {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle {
            plans.retain(|(counters, _)| counters.strong_count() > 0);
        }
        let (k, rows, requests) = (plan.k, plan.max_tokens, plan.max_requests);
        let arrays = Arrays::new(source, k, rows, requests)?;
        plan.device = Some(arrays.outputs());
        plans.push((Arc::downgrade(&plan.counters()), Arc::new(arrays)));
        Ok(())
    }

    /// Returns the arrays of a plan, or an error if it was made elsewhere.
    pub fn arrays(&mut self, plan: &Plan) -> Result<Arc<Arrays>> {
        let plans = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let own = plan.counters.as_ref().map(Arc::as_ptr);
        let known = plans.iter().find(|(counters, _)| Some(counters.as_ptr()) == own);
        known.map(|(_, arrays)| Arc::clone(arrays)).ok_or_else(|| {
            invalid!("plan" is "foreign", but "it was made for another device";
                "make it with this engine's new_plan")
        })
    }
}
