//! Launches: the kernels of a call, their arguments and their tiling data. No function here
//! allocates or waits.

use std::sync::Arc;

use avsg_device::kernels::{Arg, KernelName, MAX_ARGS};
use avsg_device::memory::table_words;
use avsg_device::tiling::{Fault, Launch, Segment, Tiling};

use super::acl::{Args, Context, DeviceMemory};
use super::kernels::{PerKernel, TILING};
use crate::call::{Call, Work};
use crate::device_arrays::{DeviceArray, DeviceBatch, DeviceCall, DevicePlan, RawStream};
use crate::pool::{Geometry, SegmentLayout};
use crate::resources::{Config, Resources};
use crate::rows::{self, Steps, Strides};
use crate::{Result, ensure, invalid};

/// Returns an error if no batch of this geometry can be launched.
pub(super) fn check(config: &Config, pool: &Geometry) -> Result<()> {
    let k = config.params.k as usize;
    let state = DeviceArray { address: 0, len: 1 };
    let arrays = DeviceBatch { state, k, ids_stride: k, ..Default::default() };
    check_batch(config, pool, &Call::of(Work::Plan, arrays, 1))
}

/// Returns an error if a batch of these sizes cannot be launched. Its addresses are not read.
pub(super) fn check_batch(config: &Config, pool: &Geometry, call: &DeviceCall<'_>) -> Result<()> {
    tiling(config, pool, call, config.cores, config.tables()).map(drop)
}

/// The steps between the slots of each segment: of the caller's buffer, or of the row format.
fn slot_steps(config: &Config, segment: usize, stride: usize) -> Steps {
    let caller = config.buffer.as_ref().and_then(|caller| caller.strides.get(segment));
    caller.map_or(Strides::rows(stride), |strides| *strides).steps()
}

fn tiling(
    config: &Config,
    pool: &Geometry,
    DeviceCall { batch, tokens, .. }: &DeviceCall<'_>,
    cores: usize,
    states: usize,
) -> Result<Tiling> {
    let params = &config.params;
    let word = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let gap = |bytes: isize| {
        i32::try_from(bytes).map_err(|_| {
            invalid!("block stride" is bytes, but
                "a device kernel takes at most 2 GiB between two blocks"; "pass smaller blocks")
        })
    };
    let kv_blocks = config.slot_table().map_or(0, |table| table.blocks);
    ensure!(kv_blocks <= i32::MAX as usize, "blocks of the buffer" is kv_blocks, but
        "entries of the table are at most {}", i32::MAX; "pass larger blocks of slots");
    // All segments have the same rows per block.
    let block_shift = pool.segments.first().map_or(0, |rows| rows.strides.steps().shift);
    let segment = |(i, (segment, rows)): (usize, (&rows::Segment, &SegmentLayout))| {
        let (steps, slots) = (rows.strides.steps(), slot_steps(config, i, segment.stride));
        Ok(Segment {
            bytes: word(segment.bytes),
            host_stride: word(steps.row),
            host_gap: gap(steps.gap)?,
            kv_stride: word(slots.row),
            kv_gap: gap(slots.gap)?,
            fresh_stride: word(segment.stride),
            chunk_shift: rows.shift,
            chunks: word(rows.chunks),
        })
    };
    let segments = pool.format.as_slice().iter().zip(&pool.segments).enumerate();
    let segments: heapless::Vec<Segment, { rows::MAX_SEGMENTS }> =
        segments.map(segment).collect::<Result<_>>()?;
    let shape = Launch {
        requests: word(batch.requests()),
        rows: word(*tokens),
        k: word(batch.k),
        ids_stride: word(batch.ids_stride),
        block_stride: word(batch.block_stride),
        pool_units: word(pool.rows / (params.page as usize).max(1)),
        states: word(states),
        cores: word(cores),
        copy_cores: word(cores),
        host_block_shift: block_shift,
        kv_block_shift: slot_steps(config, 0, 0).shift,
        kv_blocks: word(kv_blocks),
        slot_base: config.slot_base,
        segments: &segments,
    };
    Tiling::new(params, &shape).map_err(|Fault { what, value, limits: (least, most), remedy }| {
        invalid!(what is value, but "a device kernel takes at least {least} and at most {most}"; remedy)
    })
}

/// The kernels of an engine and the device memory that every launch takes.
pub(super) struct Launcher {
    pub kernels: PerKernel<Args>,
    /// `[layers, chunks per layer]` u64, the device addresses of the pool's chunks.
    pub chunks: DeviceMemory,
    pub tables: DeviceMemory,
    pub rules: Option<DeviceMemory>,
    pub context: Arc<Context>,
    pub resources: Arc<Resources>,
}

impl Launcher {
    /// Puts the kernels of a call for at most one layer, and its outputs, into a stream. With `one_launch`, Stage One and Stage Two are one
    /// kernel.
    ///
    /// # Safety
    /// As for [`crate::engine::Engine::enqueue_plan`]; the engine's context is current.
    pub unsafe fn run(
        &mut self,
        (call, out): (&DeviceCall<'_>, DevicePlan),
        one_launch: bool,
        stream: RawStream,
    ) -> Result<()> {
        let kernels: &[KernelName] = match call.work {
            Work::Plan => &[KernelName::Plan],
            Work::Transfer => &[KernelName::Transfer],
            Work::Step if one_launch => &[KernelName::Step],
            Work::Step => &[KernelName::Plan, KernelName::Transfer],
            Work::Append => &[KernelName::Append],
        };
        // SAFETY: the stream is alive, its context is current, and arrays, plan and engine stay valid until
        // the work is done (`# Safety`).
        kernels.iter().try_for_each(|&k| unsafe { self.launch(k, (call, out), stream) })
    }

    /// Puts a kernel that empties every table into a stream.
    ///
    /// # Safety
    /// The stream is alive and belongs to the engine's context. This value is not dropped before the
    /// kernel is done, and nothing else uses the tables until then.
    pub unsafe fn reset(&mut self, stream: RawStream) -> Result<()> {
        let k = self.resources.config.params.k as usize;
        let arrays = DeviceBatch { k, ids_stride: k, ..Default::default() };
        let no_requests = (&Call::of(Work::Plan, arrays, 0), DevicePlan::default());
        let context = Arc::clone(&self.context);
        let _current = context.bind()?;
        // SAFETY: the kernel has the tables only, which this value owns. It is kept until the kernel is
        // done, the stream is alive (`# Safety`), and the context is bound above.
        unsafe { self.launch(KernelName::Reset, no_requests, stream) }
    }

    /// # Safety
    /// As for [`Self::run`].
    unsafe fn launch(
        &mut self,
        kernel: KernelName,
        (call, out): (&DeviceCall<'_>, DevicePlan),
        stream: RawStream,
    ) -> Result<()> {
        // Kernels cut their work by the number of cores, so it is in the tiling data, too. It is
        // never more than the stream's limit at this moment; a captured launch keeps the number
        // that it was captured with.
        // SAFETY: the stream is alive and its context is current (`# Safety`).
        let limit = unsafe { self.context.stream_vector_cores(stream)? };
        let most = self.resources.config.cores;
        let cores = limit.map_or(most, |limit| limit.min(most));
        // A reset empties the tables of all indexers; other kernels see those of one.
        let config = &self.resources.config;
        let states = if kernel == KernelName::Reset { config.tables() } else { config.states };
        let tiling = tiling(config, &self.resources.pool.geometry, call, cores, states)?;
        let args = kernel.args().iter().map(|&arg| self.address((call, &out), arg));
        // The most arguments of a kernel include the workspace.
        let addresses: heapless::Vec<u64, MAX_ARGS> = args.chain([0]).collect();
        // One core plans a request.
        let requests = call.batch.requests().max(1);
        let cores = if kernel == KernelName::Plan { cores.min(requests) } else { cores };
        let mut scalars = [0; TILING];
        for (to, word) in scalars.as_chunks_mut::<4>().0.iter_mut().zip(tiling.words()) {
            *to = word.to_ne_bytes();
        }
        // In batch mode the kernel starts only when all its cores are idle, which SyncAll needs.
        let (batch, args) = (kernel == KernelName::Step, &mut self.kernels[kernel as usize]);
        // SAFETY: the arrays of the call stay allocated, the engine lives and the stream is alive until
        // the kernel is done (`# Safety`). The engine owns kernels, tables, rules, chunks and slots, or
        // the caller keeps the slots (`CallerBuffer::new`), and its drop waits.
        unsafe { args.launch(&addresses, &scalars, cores, batch, stream) }
    }

    /// Returns the address for a parameter of a kernel. It must not fail, because an error would
    /// allocate.
    fn address(&self, (call, out): (&DeviceCall<'_>, &DevicePlan), arg: Arg) -> u64 {
        let (b, layer) = (&call.batch, call.layers.first().map_or(0, |&layer| layer));
        let fresh = |segment: usize| {
            call.fresh.and_then(|fresh| fresh.get(segment)).map_or(0, |rows| rows.address)
        };
        let [miss_pos, miss_id, miss_slot, miss_row] = out.miss;
        let segments = self.resources.pool.format().as_slice().len();
        let kv = |segment: usize| {
            if segment >= segments {
                return 0;
            }
            self.resources.buffer.segment_base(layer, segment).map_or(0, |base| base as u64)
        };
        match arg {
            Arg::Ids => b.ids.address,
            Arg::CuQ => b.cu_q.address,
            Arg::State => b.state.address,
            Arg::Generation => b.generation.address,
            Arg::StableLen => b.stable_len.address,
            Arg::SeqLen => b.seq_len.address,
            Arg::BlockTable => b.block_table.address,
            Arg::Tables => {
                let config = &self.resources.config;
                let first = config.table(b.indexer, 0) * table_words(&config.params);
                self.tables.address() + 4 * first as u64
            }
            Arg::Rules => self.rules.as_ref().map_or(0, |rules| rules.address()),
            Arg::HostChunks => {
                let per_layer = self.resources.pool.geometry.chunks_per_layer();
                self.chunks.address() + 8 * (layer * per_layer) as u64
            }
            Arg::Kv0 => kv(0),
            Arg::Kv1 => kv(1),
            Arg::SlotBlocks => {
                self.resources.config.slot_table().map_or(0, |table| table.entries.0.addr() as u64)
            }
            Arg::Fresh0 => fresh(0),
            Arg::Fresh1 => fresh(1),
            Arg::Slot => out.slot,
            Arg::Valid => out.valid,
            Arg::MissPos => miss_pos,
            Arg::MissId => miss_id,
            Arg::MissSlot => miss_slot,
            Arg::MissRow => miss_row,
            Arg::Summary => out.summary,
        }
    }
}
