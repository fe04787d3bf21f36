//! The CPU device: worker threads stand in for the cores, and process memory for device memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use avsg_device::memory::{clear_state, table_words};
use avsg_device::params::{NO_STABLE_LEN, Params};
use avsg_device::sequential::Sequential;
use avsg_device::work::work_words;

use super::machine::Machine;
use super::outputs::Outputs;
use super::stage::StageOne;
use super::transfer::Transfer;
use super::worker_pool::WorkerPool;
use crate::backend::Device;
use crate::batch::{Batch, Layer, Step};
use crate::buffer::{BufferConfig, DeviceBuffer};
use crate::copy::Copier;
use crate::cpus::allowed_cpus;
use crate::engine::Engine;
use crate::mapping::{MIB2, Mapping};
use crate::plan::Plan;
use crate::pool::HostPool;
use crate::resources::{Config, Resources};
use crate::{Error, Result, geometry, memory};

/// Words in a 64-byte cache line; columns of different workers share none.
const LINE_WORDS: usize = 16;

fn worker_words(params: &Params) -> usize {
    work_words::<Sequential>(params).next_multiple_of(LINE_WORDS)
}

/// Returns the bytes of `words` words in whole 2 MiB pages, so that a table's random accesses miss
/// no TLB entry where the kernel grants hugepages; `None` on overflow.
fn hugepage_bytes(words: usize) -> Option<usize> {
    words.checked_mul(4)?.checked_next_multiple_of(MIB2)
}

/// Maps `words` words of zero in whole 2 MiB pages.
fn map_words(what: &str, words: usize) -> Result<Mapping> {
    let bytes = hugepage_bytes(words).ok_or_else(|| {
        let limit = "it must fit the address space";
        Error::invalid("words of an engine", words, limit, "ask for fewer states")
    })?;
    Mapping::anonymous(what, bytes)
}

pub(crate) struct Cpu {
    cores: Cores,
    workers: WorkerPool,
}

/// The memory and the choices that the workers share.
struct Cores {
    machine: Machine,
    copier: Copier,
    tables: Mapping,
    work: Mapping,
}

impl Engine {
    /// Makes an engine on the CPU: allocates the slots and the tables, and starts the worker
    /// threads. The pool sets the number of layers and the row format. Several engines may share a
    /// pool (pass clones of an `Arc`).
    ///
    /// # Errors
    /// If the configuration is invalid, too little memory is available, or a thread cannot be
    /// started.
    pub fn new(config: Config, pool: impl Into<Arc<HostPool>>) -> Result<Self> {
        let (resources, device) = Cpu::new(config, pool.into())?;
        Ok(Self::from_parts(resources, Box::new(device)))
    }

    /// Returns the bytes of device memory that an engine on the CPU allocates: (slots, tables of all
    /// indexers and working columns).
    ///
    /// # Errors
    /// If the geometry is invalid, or its sizes overflow.
    pub fn bytes_needed(config: &Config, buffer: &BufferConfig) -> Result<(usize, usize)> {
        Cpu::bytes_needed(config, buffer)
    }
}

impl Cpu {
    pub fn bytes_needed(config: &Config, buffer: &BufferConfig) -> Result<(usize, usize)> {
        geometry::check(&config.params)?;
        let workers = config.cores.min(allowed_cpus().len().max(1));
        let tables = table_words(&config.params).checked_mul(config.tables());
        let work = worker_words(&config.params).checked_mul(workers);
        let bytes = tables.and_then(hugepage_bytes).zip(work.and_then(hugepage_bytes));
        let bytes = bytes.and_then(|(tables, work)| tables.checked_add(work)).ok_or_else(|| {
            let limit = "the tables must fit the address space";
            Error::invalid("states", config.states, limit, "ask for fewer states")
        })?;
        let slots = match &config.buffer {
            Some(_) => 0,
            None => DeviceBuffer::bytes_needed(buffer)?,
        };
        Ok((slots, bytes))
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
            tables: map_words("tables", table_words(params) * config.tables())?,
            work: map_words("working columns", worker_words(params) * workers)?,
        };
        let workers = WorkerPool::new(config.cores)?;
        for table in 0..config.tables() {
            // SAFETY: `table` is in range, and no other thread has access to the new device.
            clear_state(params, unsafe { cores.table(params, table) });
        }
        let buffer = match &config.buffer {
            Some(caller) => DeviceBuffer::from_caller(&buffer, caller, None)?,
            None => DeviceBuffer::new(&buffer)?,
        };
        Ok((Resources::new(config, pool, buffer), Self { cores, workers }))
    }
}

impl Cores {
    /// Returns the words of one table.
    ///
    /// # Safety
    /// `table` is below the number of tables, and nothing else accesses this table while the result
    /// is in use.
    #[expect(clippy::mut_from_ref, reason = "the contract is exclusive use of this one table")]
    unsafe fn table(&self, params: &Params, table: usize) -> &mut [i32] {
        let n = table_words(params);
        let at = self.tables.ptr().cast::<i32>();
        // SAFETY: the mapping holds all tables, is zeroed and begins on a page; the caller keeps
        // `table` in range and the access exclusive (`# Safety`).
        unsafe { core::slice::from_raw_parts_mut(at.add(table * n), n) }
    }

    /// Runs Stage One on one worker, which takes requests from `next` until none is left.
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
        // SAFETY: the mapping holds `n` words per worker, is zeroed and aligned, and only this
        // worker uses the words of index `worker`.
        let work = unsafe { core::slice::from_raw_parts_mut(at.add(worker * n), n) };
        loop {
            let request = next.fetch_add(1, Ordering::Relaxed);
            if request >= batch.state.len() {
                return;
            }
            self.plan_request(resources, batch, out, work, request);
        }
    }

    fn plan_request(
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
        // SAFETY: the engine checked that `cu_q` ascends and that the plan is large enough, so the
        // parts of requests are disjoint and in range; each request is taken by one worker.
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
            // SAFETY: the engine checked that the indexer and `state` are in range, and that `state`
            // is named once in the batch.
            state: unsafe { self.table(params, resources.config.table(batch.indexer, state)) },
            work,
            tokens,
            k: batch.k,
            generation: batch.generation[request],
            stable: if stable < 0 { NO_STABLE_LEN } else { stable },
            limit: batch.seq_len[request],
            rows: resources.pool_units(),
            // The last requests of a batch may have no tokens and start after the last row.
            ids: batch.ids.get(first * batch.ids_stride..).unwrap_or(&[]),
            ids_stride: batch.ids_stride,
            blocks,
            slot: &mut *slot,
            valid,
            miss,
            record,
        });
        resources.globalize(state, slot);
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
            // The number of misses is not known before Stage One; a tenth of the ids is typical.
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
        resources.write_rows(batch, layer)
    }

    fn read_table(&mut self, resources: &Resources, table: usize) -> Result<&[i32]> {
        // SAFETY: no launch runs, because this method has `&mut self`, and the engine checked the
        // table's number.
        Ok(unsafe { self.cores.table(&resources.config.params, table) })
    }

    fn edit_table(
        &mut self,
        resources: &Resources,
        table: usize,
        edit: &mut dyn FnMut(&mut [i32]) -> bool,
    ) -> Result<()> {
        // SAFETY: no launch runs, because this method has `&mut self`, and the engine checked the
        // table's number.
        edit(unsafe { self.cores.table(&resources.config.params, table) });
        Ok(())
    }

    fn copy_slots(
        &mut self,
        resources: &Resources,
        layer: usize,
        states: [usize; 2],
        ids: &[i32],
    ) -> Result<()> {
        resources.buffer.for_each_copy(layer, states, ids, |from, to, bytes| {
            // SAFETY: both ranges are slots of the buffer, of different states, which do not
            // overlap. No launch runs, because this method has `&mut self`.
            unsafe { core::ptr::copy_nonoverlapping(from, to, bytes) };
            Ok(())
        })
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

/// Returns an estimate of the time that one core takes to copy `rows` rows, at 6 bytes per
/// nanosecond (measured).
fn copy_nanoseconds(resources: &Resources, rows: usize) -> u64 {
    (rows * resources.pool.format().bytes() / 6) as u64
}

/// Returns an estimate of the time that one core takes for Stage One, at 4 ns per id (measured); 0
/// for one request, which is not shared among cores.
fn match_nanoseconds(batch: &Batch<'_>) -> u64 {
    if batch.requests() > 1 { (batch.rows() * batch.k * 4) as u64 } else { 0 }
}
