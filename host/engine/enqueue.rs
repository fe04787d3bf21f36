//! The same calls over arrays in device memory, in a stream of the caller's: nothing is read by the
//! host, nothing waits, so that the calls can be captured and replayed.
//!
//! After a call that failed, the next plan starts every table cold, but not in a recording: there it
//! is refused. How queued work itself ends, only the caller's wait tells. If it says that some failed,
//! a table may name rows that were never copied: give every request a new generation.

use super::Engine;
use crate::acl::owned::RawStream;
use crate::launch::acl::Ascend;
use crate::{Error, Result, rows};

/// [`super::Batch`] with device addresses. All arrays are int32; their contents may change from
/// replay to replay, the numbers here are fixed when the work is captured.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceBatch {
    /// Requests, padded ones included.
    pub requests: usize,
    /// The most rows that `cu_q` may count.
    pub rows: usize,
    /// Ids per row.
    pub k: usize,
    /// Selected ids, row by row.
    pub ids: u64,
    /// Words from row to row of them.
    pub ids_stride: usize,
    /// First row of each request, and the number of rows.
    pub cu_q: u64,
    /// State of each request, -1 for a padded one. No two may name one state.
    pub state: u64,
    /// Generation of each request.
    pub generation: u64,
    /// Final tokens of each request before this step, or -1.
    pub stable_len: u64,
    /// Sequence length of each request with this step's tokens.
    pub seq_len: u64,
    /// Host blocks, request by request; unused when the geometry's page is 0.
    pub block_table: u64,
    /// Entries of one request in it.
    pub block_stride: usize,
}

/// The outputs of a plan, as device addresses of int32 arrays.
#[derive(Clone, Copy, Debug, Default)]
pub struct DevicePlan {
    /// Slots: rows · K.
    pub slot: u64,
    /// Valid ids: rows.
    pub valid: u64,
    /// Miss lists, rows · K each: position, id, slot, row. A request's begins at its first row · K.
    pub miss: [u64; 4],
    /// Records: requests · 16, as [`crate::device::stage_one::record`] says.
    pub record: u64,
}

/// This step's rows, as device addresses: one per segment, 0 behind the last one. The stride is the
/// row format's.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceFresh {
    /// Bases.
    pub segments: [u64; 2],
}

impl Engine {
    fn ascend(&mut self) -> Result<(&super::Core, &mut Ascend)> {
        match self.device.ascend() {
            Some(ascend) => Ok((&self.core, ascend)),
            None => {
                let limit = "its arrays are host memory and nothing is queued";
                Err(Error::invalid("device", "cpu", limit, "call plan, transfer, step, append"))
            }
        }
    }

    /// Puts Stage One into a stream.
    ///
    /// # Safety
    /// The arrays are device memory of the sizes that `batch` says, alive until the work (and every
    /// replay) is done, the stream is the engine's context's, and one stream at a time works on a
    /// state. What a kernel cannot check of the contents holds: `cu_q` ascends from 0 to at most
    /// `rows`, by at most N_q each, and states are in range and named once.
    ///
    /// # Errors
    /// If the shape is more than a kernel takes, or the runtime refuses.
    pub unsafe fn enqueue_plan(
        &mut self,
        batch: &DeviceBatch,
        plan: &DevicePlan,
        stream: RawStream,
    ) -> Result<()> {
        self.order.forget();
        let (core, ascend) = self.ascend()?;
        // SAFETY: the contract.
        unsafe { ascend.enqueue_plan(core, batch, plan, stream) }
    }

    /// Puts Stage Two of one layer into a stream, behind the plan's.
    ///
    /// # Safety
    /// As for [`Self::enqueue_plan`]; and `plan` was planned from `batch`. Fresh rows are there
    /// whenever some `stable_len` is not -1. For one layer and state, plans come in the order in which
    /// they were planned, and none that missed a row is left out ([`Self::transfer`] checks that; here
    /// the host sees no states, and nothing at all of a replay).
    ///
    /// # Errors
    /// If there is no such layer, or the runtime refuses.
    pub unsafe fn enqueue_transfer(
        &mut self,
        batch: &DeviceBatch,
        plan: &DevicePlan,
        layer: usize,
        fresh: Option<&DeviceFresh>,
        stream: RawStream,
    ) -> Result<()> {
        let (core, ascend) = self.ascend()?;
        rows::index("layer", layer, core.pool.layers())?;
        // SAFETY: the contract.
        unsafe { ascend.enqueue_transfer(core, batch, plan, layer, fresh, stream) }
    }

    /// Puts both into a stream: as two launches, or as one if the options say that no other stream
    /// computes meanwhile.
    ///
    /// # Safety
    /// As for [`Self::enqueue_plan`] and [`Self::enqueue_transfer`].
    ///
    /// # Errors
    /// As for both.
    pub unsafe fn enqueue_step(
        &mut self,
        batch: &DeviceBatch,
        plan: &DevicePlan,
        layer: usize,
        fresh: Option<&DeviceFresh>,
        stream: RawStream,
    ) -> Result<()> {
        self.order.forget();
        let (core, ascend) = self.ascend()?;
        rows::index("layer", layer, core.pool.layers())?;
        // SAFETY: the contract.
        unsafe { ascend.enqueue_step(core, batch, plan, layer, fresh, stream) }
    }

    /// Puts an append into a stream, behind the layer's transfer. Later work of that stream reads the
    /// rows from the pool; the host and other streams do once it is done.
    ///
    /// # Safety
    /// As for [`Self::enqueue_plan`].
    ///
    /// # Errors
    /// If there is no such layer, this process may not write the pool, or the runtime refuses.
    pub unsafe fn enqueue_append(
        &mut self,
        batch: &DeviceBatch,
        layer: usize,
        fresh: &DeviceFresh,
        stream: RawStream,
    ) -> Result<()> {
        self.refuse_reader()?;
        let (core, ascend) = self.ascend()?;
        rows::index("layer", layer, core.pool.layers())?;
        // SAFETY: the contract.
        unsafe { ascend.enqueue_append(core, batch, layer, fresh, stream) }
    }
}
