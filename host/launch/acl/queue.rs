//! Launches: which address goes where, and what the scalars are. Nothing here allocates or waits.

use avsg_device::params::Params;
use avsg_device::tiling::{Fault, HALF_BYTES, Launch, MAX_CHUNKS, MAX_SEGMENTS, Segment, Tiling};

use super::kernels::launch;
use super::{Ascend, Health, lost};
use crate::acl::api::capture;
use crate::acl::owned::RawStream;
use crate::engine::core::Core;
use crate::engine::{Config, DeviceBatch, DeviceFresh, DevicePlan};
use crate::pool::HostPool;
use crate::{Error, Result};

/// Refuses a geometry that no batch could be launched with.
pub(super) fn check(config: &Config, pool: &HostPool) -> Result<()> {
    let k = config.params.k as usize;
    let smallest = DeviceBatch { requests: 1, rows: 1, k, ids_stride: k, ..Default::default() };
    tiling(config, pool, &smallest, config.cores).map(drop)
}

fn tiling(config: &Config, pool: &HostPool, batch: &DeviceBatch, cores: usize) -> Result<Tiling> {
    let params = &config.params;
    let word = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let mut segments = heapless::Vec::<Segment, { crate::rows::MAX_SEGMENTS }>::new();
    for (i, segment) in pool.format().as_slice().iter().enumerate() {
        let (chunk_shift, chunks) = pool.chunking(i).unwrap_or_default();
        let stride = word(segment.stride);
        // Cannot fail: a format has no more segments than this holds.
        let _ = segments.push(Segment {
            bytes: word(segment.bytes),
            host_stride: stride,
            kv_stride: stride,
            fresh_stride: stride,
            chunk_shift,
            chunks: word(chunks),
        });
    }
    let shape = Launch {
        requests: word(batch.requests),
        rows: word(batch.rows),
        k: word(batch.k),
        ids_stride: word(batch.ids_stride),
        block_stride: word(batch.block_stride),
        pool_units: word(pool.rows() / (params.page as usize).max(1)),
        states: word(config.states),
        copy_cores: word(cores),
        segments: &segments,
    };
    Tiling::new(params, &shape).map_err(|fault| explain(fault, params))
}

fn explain(fault: Fault, params: &Params) -> Error {
    let most = |n: u64| format!("a device kernel takes at most {n}");
    match fault {
        Fault::Segments(n) => Error::invalid(
            "segments",
            n,
            most(MAX_SEGMENTS as u64),
            "merge segments that are adjacent in memory",
        ),
        Fault::RowBytes(n) => Error::invalid(
            "row bytes",
            n,
            most(HALF_BYTES.into()),
            "split the row into layers of their own",
        ),
        Fault::Chunks(n) => Error::invalid(
            "chunks of a layer",
            n,
            most(MAX_CHUNKS.into()),
            "pass a larger chunk_bytes to the pool",
        ),
        Fault::ChunkShift(n) => Error::invalid(
            "rows of a chunk",
            format!("2^{n}"),
            "a device kernel counts 2^30",
            "pass a smaller chunk_bytes to the pool",
        ),
        Fault::Words(n) => {
            Error::invalid("words of an array", n, most(i32::MAX as u64), "split the batch")
        }
        Fault::Cores => Error::invalid("cores", 0, "one at least copies", "pass more cores"),
        Fault::K(k) => {
            let limit = format!("it must be 1..={} and at most the stride", params.k);
            Error::invalid("k", k, limit, "pass 1..=K ids per row")
        }
    }
}

impl Ascend {
    /// The layer's slots, segment by segment. An error would take memory, so none is made.
    fn kv(core: &Core, layer: usize) -> [u64; 2] {
        let segments = core.pool.format().as_slice().len();
        let base = |i| core.buffer.segment_base(layer, i).map_or(0, |base| base as u64);
        [0, 1].map(|i| if i < segments { base(i) } else { 0 })
    }

    /// The layer's chunk addresses, segment by segment.
    fn host_chunks(&self, core: &Core, layer: usize) -> u64 {
        let segments = core.pool.format().as_slice().len();
        let chunks = |i| core.pool.chunking(i).map_or(0, |(_, chunks)| chunks);
        let per_layer: usize = (0..segments).map(chunks).sum();
        self.chunks.address() + 8 * (layer * per_layer) as u64
    }

    /// Cores of a launch and its scalars, which go together: kernels cut their work by that number.
    /// Never more than the stream may have now; a captured launch keeps what it was captured with.
    ///
    /// # Safety
    /// The stream is alive.
    unsafe fn shape(
        &self,
        core: &Core,
        b: &DeviceBatch,
        stream: RawStream,
    ) -> Result<(usize, Tiling)> {
        // SAFETY: the contract.
        let limit = unsafe { stream.vector_cores(self.context())? };
        let cores = limit.map_or(core.config.cores, |limit| limit.min(core.config.cores));
        Ok((cores, tiling(&core.config, &core.pool, b, cores)?))
    }

    fn rules(&self) -> u64 {
        self.rules.as_ref().map_or(0, |rules| rules.address())
    }

    /// Puts a reset of every table into a stream.
    pub(super) fn reset(&mut self, core: &Core, stream: RawStream) -> Result<()> {
        let k = core.config.params.k as usize;
        let shape = DeviceBatch { k, ids_stride: k, ..DeviceBatch::default() };
        let context = std::sync::Arc::clone(self.context());
        let _current = context.bind()?;
        // SAFETY: the stream is ours, or the caller's of an `enqueue_*`.
        let (cores, tiling) = unsafe { self.shape(core, &shape, stream)? };
        let addresses = [self.tables.address(), 0];
        // SAFETY: the tables live as long as this, whose drop waits.
        unsafe { launch(&mut self.kernels.reset, &addresses, &tiling, cores, false, stream) }
    }

    /// # Safety
    /// As for [`crate::engine::Engine::enqueue_plan`], in the current context.
    pub(super) unsafe fn launch_plan(
        &mut self,
        core: &Core,
        b: &DeviceBatch,
        out: &DevicePlan,
        stream: RawStream,
    ) -> Result<()> {
        // SAFETY: the contract.
        let (cores, tiling) = unsafe { self.shape(core, b, stream)? };
        let [pos, id, slot, row] = out.miss;
        let (tables, rules, none) = (self.tables.address(), self.rules(), 0);
        let addresses = [
            b.ids,
            b.cu_q,
            b.state,
            b.generation,
            b.stable_len,
            b.seq_len,
            b.block_table,
            tables,
            rules,
            out.slot,
            out.valid,
            pos,
            id,
            slot,
            row,
            out.record,
            none,
        ];
        // A request is one core's work.
        let cores = cores.min(b.requests.max(1));
        // SAFETY: the contract; tables and rules live as long as this.
        unsafe { launch(&mut self.kernels.plan, &addresses, &tiling, cores, false, stream) }
    }

    /// # Safety
    /// As for [`crate::engine::Engine::enqueue_transfer`], in the current context.
    pub(super) unsafe fn launch_transfer(
        &mut self,
        core: &Core,
        b: &DeviceBatch,
        out: &DevicePlan,
        layer: usize,
        fresh: [u64; 2],
        stream: RawStream,
    ) -> Result<()> {
        // SAFETY: the contract.
        let (cores, tiling) = unsafe { self.shape(core, b, stream)? };
        let ([kv0, kv1], [_, _, slot, row]) = (Self::kv(core, layer), out.miss);
        let chunks = self.host_chunks(core, layer);
        let addresses =
            [b.cu_q, b.state, slot, row, out.record, chunks, kv0, kv1, fresh[0], fresh[1], 0];
        // SAFETY: the contract; chunks and slots live as long as the engine, whose drop waits.
        unsafe { launch(&mut self.kernels.transfer, &addresses, &tiling, cores, false, stream) }
    }

    /// # Safety
    /// As for [`crate::engine::Engine::enqueue_step`], in the current context.
    pub(super) unsafe fn launch_step(
        &mut self,
        core: &Core,
        b: &DeviceBatch,
        out: &DevicePlan,
        layer: usize,
        fresh: [u64; 2],
        stream: RawStream,
    ) -> Result<()> {
        // SAFETY: the contract.
        let (cores, tiling) = unsafe { self.shape(core, b, stream)? };
        let ([kv0, kv1], [pos, id, slot, row]) = (Self::kv(core, layer), out.miss);
        let (tables, rules) = (self.tables.address(), self.rules());
        let (chunks, none) = (self.host_chunks(core, layer), 0);
        let addresses = [
            b.ids,
            b.cu_q,
            b.state,
            b.generation,
            b.stable_len,
            b.seq_len,
            b.block_table,
            tables,
            rules,
            chunks,
            kv0,
            kv1,
            fresh[0],
            fresh[1],
            out.slot,
            out.valid,
            pos,
            id,
            slot,
            row,
            out.record,
            none,
        ];
        // SAFETY: as above. In batch mode all cores start together, which SyncAll needs.
        unsafe { launch(&mut self.kernels.step, &addresses, &tiling, cores, true, stream) }
    }

    /// # Safety
    /// As for [`crate::engine::Engine::enqueue_append`], in the current context.
    pub(super) unsafe fn launch_append(
        &mut self,
        core: &Core,
        b: &DeviceBatch,
        layer: usize,
        fresh: [u64; 2],
        stream: RawStream,
    ) -> Result<()> {
        // SAFETY: the contract.
        let (cores, tiling) = unsafe { self.shape(core, b, stream)? };
        let chunks = self.host_chunks(core, layer);
        let addresses = [
            b.cu_q,
            b.state,
            b.stable_len,
            b.seq_len,
            b.block_table,
            chunks,
            fresh[0],
            fresh[1],
            0,
        ];
        // SAFETY: as for `launch_transfer`.
        unsafe { launch(&mut self.kernels.append, &addresses, &tiling, cores, false, stream) }
    }

    /// What comes before work in a caller's stream. After a failure its tables start cold there, but
    /// not in a recording: there the reset would run at every replay, or never, if it is thrown away.
    ///
    /// # Safety
    /// The stream is alive.
    unsafe fn enqueue(
        &mut self,
        core: &Core,
        plans: bool,
        stream: RawStream,
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if self.health == Health::Lost {
            return Err(lost());
        }
        let context = std::sync::Arc::clone(self.context());
        let recorded = || {
            let _current = context.bind()?;
            // SAFETY: the contract.
            unsafe { capture::under_way(context.acl(), stream.handle()) }
        };
        if plans && self.health == Health::Shaken {
            if recorded()? {
                let limit = "tables start cold after a failure, which a recording cannot hold";
                let remedy = "plan once outside of a capture, then capture again";
                return Err(Error::invalid("device state", "shaken", limit, remedy));
            }
            self.reset(core, stream)?;
            self.epoch += 1;
            self.health = Health::Good;
        }
        let done = context.bind().and_then(|_current| work(self));
        // Nothing that is recorded has run yet, and this recording never will.
        if done.is_err() && !recorded().unwrap_or(false) {
            self.health = Health::Shaken;
        }
        done
    }

    /// # Safety
    /// As for [`crate::engine::Engine::enqueue_plan`].
    pub unsafe fn enqueue_plan(
        &mut self,
        core: &Core,
        batch: &DeviceBatch,
        plan: &DevicePlan,
        stream: RawStream,
    ) -> Result<()> {
        // SAFETY: the contract.
        unsafe {
            self.enqueue(core, true, stream, |this| this.launch_plan(core, batch, plan, stream))
        }
    }

    /// # Safety
    /// As for [`crate::engine::Engine::enqueue_transfer`].
    pub unsafe fn enqueue_transfer(
        &mut self,
        core: &Core,
        batch: &DeviceBatch,
        plan: &DevicePlan,
        layer: usize,
        fresh: Option<&DeviceFresh>,
        stream: RawStream,
    ) -> Result<()> {
        let fresh = fresh.map_or([0; 2], |fresh| fresh.segments);
        // SAFETY: the contract.
        unsafe {
            self.enqueue(core, false, stream, |this| {
                this.launch_transfer(core, batch, plan, layer, fresh, stream)
            })
        }
    }

    /// # Safety
    /// As for [`crate::engine::Engine::enqueue_step`].
    pub unsafe fn enqueue_step(
        &mut self,
        core: &Core,
        batch: &DeviceBatch,
        plan: &DevicePlan,
        layer: usize,
        fresh: Option<&DeviceFresh>,
        stream: RawStream,
    ) -> Result<()> {
        let fresh = fresh.map_or([0; 2], |fresh| fresh.segments);
        let one = self.one_launch(false);
        // SAFETY: the contract.
        unsafe {
            self.enqueue(core, true, stream, |this| {
                if one {
                    return this.launch_step(core, batch, plan, layer, fresh, stream);
                }
                this.launch_plan(core, batch, plan, stream)?;
                this.launch_transfer(core, batch, plan, layer, fresh, stream)
            })
        }
    }

    /// # Safety
    /// As for [`crate::engine::Engine::enqueue_append`].
    pub unsafe fn enqueue_append(
        &mut self,
        core: &Core,
        batch: &DeviceBatch,
        layer: usize,
        fresh: &DeviceFresh,
        stream: RawStream,
    ) -> Result<()> {
        // SAFETY: the contract.
        unsafe {
            self.enqueue(core, false, stream, |this| {
                this.launch_append(core, batch, layer, fresh.segments, stream)
            })
        }
    }
}
