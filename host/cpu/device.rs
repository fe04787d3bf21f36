//! The CPU device: threads play the cores, process memory is the device's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use avsg_device::memory::{clear_state, table_words};
use avsg_device::params::{NO_STABLE_LEN, Params};
use avsg_device::request::record;
use avsg_device::sequential::Sequential;
use avsg_device::stage_two::{Share, pieces};
use avsg_device::work::work_words;

use super::machine::Machine;
use super::stage::{POSITION, ROW, SLOT, StageOne};
use super::worker_pool::WorkerPool;
use crate::backend::Device;
use crate::batch::{Batch, Layer, Step};
use crate::buffer::{BufferConfig, DeviceBuffer};
use crate::copy::Copier;
use crate::cpus::allowed_cpus;
use crate::engine::Engine;
use crate::mapping::{MIB2, Mapping};
use crate::plan::Plan;
use crate::pool::{HostPool, RowView};
use crate::resources::{Config, Resources};
use crate::rows::MAX_SEGMENTS;
use crate::{Error, Result, geometry, memory};

/// Words in a 64-byte line: two workers share none.
const LINE: usize = 16;

fn worker_words(params: &Params) -> usize {
    work_words::<Sequential>(params).next_multiple_of(LINE)
}

/// Bytes of so many words in whole 2 MiB pages: a table's random accesses then miss no TLB where the
/// kernel grants a hugepage.
fn pages(words: usize) -> usize {
    (4 * words).next_multiple_of(MIB2)
}

/// All that the cores of one engine touch, besides its core.
pub(crate) struct Cpu {
    cores: Cores,
    workers: WorkerPool,
}

/// What the cores share.
struct Cores {
    machine: Machine,
    copier: Copier,
    tables: Mapping,
    work: Mapping,
}

impl Engine {
    /// Takes all memory and starts the cores. The engine's layers and row format are the pool's,
    /// which several engines may share (pass clones of an `Arc`).
    ///
    /// # Errors
    /// If the geometry breaks a rule, memory is short, or a core cannot be started.
    pub fn new(config: Config, pool: impl Into<Arc<HostPool>>) -> Result<Self> {
        let (resources, device) = Cpu::new(config, pool.into())?;
        Ok(Self::with(resources, Box::new(device)))
    }

    /// Device memory that an engine takes, in bytes: (slots, tables and working columns).
    ///
    /// # Errors
    /// If the geometry is not valid.
    pub fn bytes_needed(config: &Config, buffer: &BufferConfig) -> Result<(usize, usize)> {
        Cpu::bytes_needed(config, buffer)
    }
}

impl Cpu {
    pub fn bytes_needed(config: &Config, buffer: &BufferConfig) -> Result<(usize, usize)> {
        geometry::check(&config.params)?;
        let workers = config.cores.min(allowed_cpus().len().max(1));
        let words = table_words(&config.params)
            .checked_mul(config.states)
            .and_then(|t| t.checked_add(worker_words(&config.params) * workers))
            .and_then(|w| w.checked_mul(4));
        let words = words.ok_or_else(|| {
            let limit = "the tables must fit the address space";
            Error::invalid("states", config.states, limit, "ask for fewer states")
        })?;
        Ok((DeviceBuffer::bytes_needed(buffer)?, words))
    }

    pub fn new(config: Config, pool: Arc<HostPool>) -> Result<(Resources, Self)> {
        let buffer = Resources::check(&config, &pool)?;
        let params = &config.params;
        let (slots, words) = Self::bytes_needed(&config, &buffer)?;
        memory::check("device memory", slots.saturating_add(words))?;
        let workers = config.cores.min(allowed_cpus().len().max(1));
        let cores = Cores {
            machine: Machine::find(config.machine, params)?,
            copier: Copier::measure(pool.format().bytes(), workers),
            tables: Mapping::anonymous("tables", pages(table_words(params) * config.states))?,
            work: Mapping::anonymous("working columns", pages(worker_words(params) * workers))?,
        };
        let workers = WorkerPool::new(config.cores)?;
        for state in 0..config.states {
            // SAFETY: the device is not shared yet.
            clear_state(params, unsafe { cores.table(params, state) });
        }
        Ok((Resources::new(config, pool, DeviceBuffer::new(&buffer)?), Self { cores, workers }))
    }
}

impl Cores {
    /// The words of one table.
    ///
    /// # Safety
    /// `state` is below the number of states, and nobody else uses this table meanwhile.
    #[expect(clippy::mut_from_ref, reason = "the contract is exclusive use of this one table")]
    unsafe fn table(&self, params: &Params, state: usize) -> &mut [i32] {
        let n = table_words(params);
        let at = self.tables.ptr().cast::<i32>();
        // SAFETY: `new` made the mapping `states` tables long, zeroed and aligned to a page; the
        // contract gives the index and exclusive use.
        unsafe { core::slice::from_raw_parts_mut(at.add(state * n), n) }
    }

    /// Stage One on one worker: takes requests off `next` until none is left.
    fn stage_one(
        &self,
        resources: &Resources,
        batch: &Batch<'_>,
        out: &Outputs,
        worker: usize,
        next: &AtomicUsize,
    ) {
        let n = worker_words(&resources.config.params);
        let at = self.work.ptr().cast::<i32>();
        // SAFETY: the mapping holds `workers` such runs, zeroed and aligned, and only this worker
        // uses run number `worker`.
        let work = unsafe { core::slice::from_raw_parts_mut(at.add(worker * n), n) };
        loop {
            let request = next.fetch_add(1, Ordering::Relaxed);
            if request >= batch.state.len() {
                return;
            }
            self.request(resources, batch, out, work, request);
        }
    }

    fn request(
        &self,
        resources: &Resources,
        batch: &Batch<'_>,
        out: &Outputs,
        work: &mut [i32],
        request: usize,
    ) {
        let params = &resources.config.params;
        let k = params.k as usize;
        let first = batch.cu_q[request] as usize;
        let tokens = batch.cu_q[request + 1] as usize - first;
        // SAFETY: a request's rows are its own (`cu_q` ascends, checked), and each request is taken
        // by one worker; the plan is as large as the batch (checked).
        let (slot, valid, miss, record) = unsafe { out.parts(request, first, tokens, k) };
        if batch.k < k {
            slot.fill(-1);
        }
        let Ok(state) = usize::try_from(batch.state[request]) else {
            slot.fill(-1);
            valid.fill(0);
            return;
        };
        let stable = batch.stable_len[request];
        let blocks = if params.page == 0 {
            &[]
        } else {
            &batch.block_table[request * batch.block_stride..][..batch.block_stride]
        };
        self.machine.run(StageOne {
            params,
            // SAFETY: `state` is in range and named once in the batch (checked).
            state: unsafe { self.table(params, state) },
            work,
            tokens,
            k: batch.k,
            generation: batch.generation[request],
            stable: if stable < 0 { NO_STABLE_LEN } else { stable },
            limit: batch.seq_len[request],
            rows: resources.pool_units(),
            // A request without tokens at the end of the batch may start behind the last row.
            ids: batch.ids.get(first * batch.ids_stride..).unwrap_or(&[]),
            ids_stride: batch.ids_stride,
            blocks,
            slot,
            valid,
            miss,
            record,
        });
    }
}

impl Device for Cpu {
    fn run(&mut self, resources: &Resources, step: &Step<'_>, plan: &mut Plan) -> Result<()> {
        if let Some(batch) = step.batch() {
            plan.begin(batch);
        }
        let (outputs, next, cores) = (Outputs::of(plan), AtomicUsize::new(0), &self.cores);
        let transfer = |layer| Transfer::new(resources, cores.copier, &outputs, layer);
        let transfer = step.layer().map(transfer).transpose()?;
        let rows = match step.batch() {
            // Stage One knows the misses only afterwards: a tenth of the ids is the usual share.
            Some(batch) => plan.rows() * batch.k / 10,
            None => plan.misses,
        };
        let copy = if transfer.is_some() { copy_nanoseconds(resources, rows) } else { 0 };
        let one = step.batch().map(|batch| {
            let (outputs, next) = (&outputs, &next);
            move |_: usize, worker: usize| cores.stage_one(resources, batch, outputs, worker, next)
        });
        let two = transfer.as_ref().map(|transfer| |core: usize, _: usize| transfer.run(core));
        self.workers.launch(
            step.batch().map_or(0, |batch| match_nanoseconds(batch)) + copy,
            one.as_ref().map(|stage| stage as &(dyn Fn(usize, usize) + Sync)),
            two.as_ref().map(|stage| stage as &(dyn Fn(usize, usize) + Sync)),
        )?;
        if step.batch().is_some() {
            plan.finish();
        }
        Ok(())
    }

    fn append(&mut self, resources: &Resources, batch: &Batch<'_>, layer: Layer<'_>) -> Result<()> {
        let Some(fresh) = layer.fresh else { return Ok(()) };
        for (at, request, id) in Resources::fresh_ids(batch) {
            let Some(row) = resources.row(batch, request, id) else { continue };
            for (i, segment) in resources.pool.format().as_slice().iter().enumerate() {
                let bytes = &fresh.segments[i][at * segment.stride..][..segment.bytes];
                resources.pool.write_segment(layer.number, i, row, bytes)?;
            }
        }
        Ok(())
    }

    fn read_table(&mut self, resources: &Resources, state: usize) -> Result<&[i32]> {
        // SAFETY: `&mut self`: no launch runs; the engine checked the state.
        Ok(unsafe { self.cores.table(&resources.config.params, state) })
    }

    fn name(&self) -> &'static str {
        "cpu"
    }

    fn machine(&self) -> Option<&'static str> {
        Some(self.cores.machine.name())
    }

    fn copier(&self) -> Option<Copier> {
        Some(self.cores.copier)
    }
}

/// About what copying so many rows takes one core: 6 bytes a nanosecond, measured.
fn copy_nanoseconds(resources: &Resources, rows: usize) -> u64 {
    (rows * resources.pool.format().bytes() / 6) as u64
}

/// About what Stage One takes one core: 4 ns per id, measured. One request is one core's work.
fn match_nanoseconds(batch: &Batch<'_>) -> u64 {
    if batch.requests() > 1 { (batch.rows() * batch.k * 4) as u64 } else { 0 }
}

/// A plan's arrays, shared by the cores of a launch.
struct Outputs {
    requests: usize,
    k: usize,
    cu_q: *const i32,
    state: *const i32,
    slot: *mut i32,
    valid: *mut i32,
    record: *mut i32,
    miss: [*mut i32; 4],
}

// SAFETY: it stands for an exclusive borrow of a plan for the length of one launch (the engine's
// methods hold `&mut Plan`); cores write only their requests' parts, and read others' after SyncAll.
unsafe impl Sync for Outputs {}

/// A request's output arrays: slots, valid counts, miss list, record.
type Parts<'a> = (&'a mut [i32], &'a mut [i32], [&'a mut [i32]; 4], &'a mut [i32]);

impl Outputs {
    /// The arrays of a plan that `begin` has shaped.
    fn of(plan: &mut Plan) -> Self {
        Self {
            requests: plan.requests,
            k: plan.k,
            cu_q: plan.cu_q.as_ptr(),
            state: plan.state.as_ptr(),
            slot: plan.slot.as_mut_ptr(),
            valid: plan.valid.as_mut_ptr(),
            record: plan.record.as_mut_ptr(),
            miss: plan.miss.each_mut().map(|m| m.as_mut_ptr()),
        }
    }

    /// One request's parts, to write.
    ///
    /// # Safety
    /// The rows `first..first + tokens` and the request are in the plan and used by nobody else.
    unsafe fn parts(&self, request: usize, first: usize, tokens: usize, k: usize) -> Parts<'_> {
        let slice = |at: *mut i32, from: usize, n: usize| {
            // SAFETY: the contract, and the plan's arrays are as long as its rows and requests.
            unsafe { core::slice::from_raw_parts_mut(at.add(from), n) }
        };
        (
            slice(self.slot, first * k, tokens * k),
            slice(self.valid, first, tokens),
            self.miss.map(|m| slice(m, first * k, tokens * k)),
            slice(self.record, request * record::WORDS, record::WORDS),
        )
    }

    fn word(at: *const i32, i: usize) -> usize {
        // SAFETY: called with indices inside the plan's arrays only (`misses` and `Transfer`).
        unsafe { *at.add(i) as usize }
    }

    /// One column of a request's misses, after SyncAll.
    fn misses(&self, request: usize, column: usize) -> &[i32] {
        let n = Self::word(self.record, request * record::WORDS + record::TOTAL as usize);
        let at = Self::word(self.cu_q, request) * self.k;
        // SAFETY: Stage One wrote `n` entries there, and nobody writes any more.
        unsafe { core::slice::from_raw_parts(self.miss[column].add(at), n) }
    }
}

/// Stage Two of one layer.
struct Transfer<'a> {
    resources: &'a Resources,
    copier: Copier,
    out: &'a Outputs,
    layer: Layer<'a>,
    rows: heapless::Vec<RowView<'a>, MAX_SEGMENTS>,
}

impl<'a> Transfer<'a> {
    fn new(
        resources: &'a Resources,
        copier: Copier,
        out: &'a Outputs,
        layer: Layer<'a>,
    ) -> Result<Self> {
        let segments = resources.pool.format().as_slice().len();
        let rows = (0..segments).map(|s| resources.pool.view(layer.number, s));
        Ok(Self { resources, copier, out, layer, rows: rows.collect::<Result<_>>()? })
    }

    /// Copies one core's share.
    fn run(&self, at: usize) {
        let (resources, out) = (self.resources, self.out);
        let share = |r: usize| Share {
            positions: out.misses(r, POSITION),
            selected: (Outputs::word(out.cu_q, r + 1) - Outputs::word(out.cu_q, r)) * out.k,
        };
        let config = &resources.config;
        pieces(config.strategy, at, config.cores, out.requests, share, |request, range| {
            let slots = &out.misses(request, SLOT)[range.clone()];
            let rows = &out.misses(request, ROW)[range];
            let first = Outputs::word(out.cu_q, request);
            let state = Outputs::word(out.state, request);
            for (i, segment) in resources.pool.format().as_slice().iter().enumerate() {
                let Ok(to) = resources.buffer.view(state, self.layer.number, i) else { return };
                let source = |n: usize| match rows[n] {
                    row @ 0.. => self.rows[i].ptr(row as usize),
                    fresh => {
                        let at = (first + !fresh as usize) * segment.stride;
                        // `check::fresh` has seen that every row of the batch is in there.
                        self.layer.fresh.map_or(core::ptr::null(), |f| f.segments[i][at..].as_ptr())
                    }
                };
                // SAFETY: Stage One lets only rows of the pool and of this step pass, and slots below
                // S; a slot is in one miss of one request, so destinations are distinct; pool,
                // buffer and fresh rows do not overlap, and the caller keeps the pool's promise.
                unsafe {
                    self.copier.copy_rows(slots.len(), segment.bytes, source, |n| {
                        to.ptr(slots[n] as usize)
                    });
                }
            }
        });
    }
}
