//! The CPU device: worker threads stand in for the cores, and process memory for device memory.

use std::mem;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use avsg_device::memory::{clear_state, table_words};
use avsg_device::params::{Lifetime, Params};

use super::background::{Background, Job};
use super::copies::{Transfer, copy_fresh, copy_slots};
use super::cores::{Cores, Outputs, worker_words};
use super::machine::Machine;
use super::records_read::{self, RecordsReader};
use super::worker_pool::{Stage, WorkerPool, copy_nanoseconds, expected_misses, match_nanoseconds};
use crate::backend::{CpuChoices, Device, SlotCopy};
use crate::buffer::{BufferConfig, DeviceBuffer};
use crate::call::HostCall;
use crate::copy::Copier;
use crate::overlap::Grids;
use crate::plan::Plan;
use crate::pool::{Geometry, HostPool, Start};
use crate::resources::{Config, Resources};
use crate::system::allocator::Allocated;
use crate::system::mapping::MIB2;
use crate::system::mapping::Mapping;
use crate::system::{available_memory, reserve};
use crate::{Error, Result, invalid};

pub(crate) struct Cpu {
    // Dropped first, because its job uses all else.
    background: Background,
    cores: Cores,
    workers: WorkerPool,
    /// What reads the rows of a pool in a file, for each transfer that may be under way.
    readers: Vec<RecordsReader>,
    /// Whether a piece of a launch has panicked, so that the tables or the slots are invalid.
    broken: bool,
    resources: Arc<Resources>,
}

/// The shape of a buffer, and the bytes of the slots, of the tables, of the working columns, and of what
/// reads a pool in a file.
pub(crate) struct Sizes {
    shape: BufferConfig,
    pub slots: usize,
    pub tables: usize,
    pub work: usize,
    pub reads: usize,
}

impl Cpu {
    /// Checks a configuration for a pool, whose rows are in `rows` if there is a pool.
    pub fn sizes(
        config: &Config,
        pool: &Geometry,
        rows: impl Iterator<Item = Result<Grids>>,
        threads: usize,
    ) -> Result<Sizes> {
        let shape = Resources::check(config, pool, rows)?;
        Machine::candidates(config.machine)?;
        // Whole 2 MiB pages, so that a table's random accesses miss no TLB entry where the kernel grants
        // hugepages; an allocator is asked for no more than the words.
        let page = if config.allocator.is_some() { 1 } else { MIB2 };
        let bytes = |words: usize, count: usize| {
            words.checked_mul(4)?.checked_mul(count)?.checked_next_multiple_of(page)
        };
        let tables = bytes(table_words(&config.params), config.tables());
        let both = tables.zip(bytes(worker_words(&config.params), threads));
        let (tables, work) =
            both.filter(|both| both.0.checked_add(both.1).is_some()).ok_or_else(|| {
                invalid!("states" is config.states, but "the tables must fit the address space";
                "ask for fewer states")
            })?;
        let reads = records_read::transfer_bytes(pool.disk.as_ref());
        let reads = reads.saturating_mul(config.transfers());
        Ok(Sizes { slots: config.slot_bytes(&shape)?, shape, tables, work, reads })
    }

    /// Makes the device and the resources of an engine.
    pub fn new(
        config: Config,
        pool: Arc<HostPool>,
        workers: &WorkerPool,
    ) -> Result<(Arc<Resources>, Self)> {
        let params = &config.params;
        let rows = pool.geometry.grids(&pool.starts, Start::in_process);
        let sizes = Self::sizes(&config, &pool.geometry, rows, workers.threads())?;
        let allocator = config.allocator.as_ref();
        if allocator.is_none() {
            let bytes = sizes.slots.saturating_add(sizes.tables + sizes.work + sizes.reads);
            available_memory::check("device memory", bytes)?;
        }
        let machine = Machine::find(config.machine)?;
        let cores = Cores {
            machine: machine.name(),
            kernels: machine.kernels,
            copier: config.copier.unwrap_or(Copier::for_rows(pool.format().bytes())),
            tables: Mapping::zeroed("tables", sizes.tables, Allocated::LINE, allocator)?,
            work: Mapping::zeroed("working columns", sizes.work, Allocated::LINE, allocator)?,
            learner: reserve::defaults("learners", config.states)?,
        };
        for table in 0..config.tables() {
            // SAFETY: `table` is in range, and no other thread has access to the new device.
            clear_state(params, unsafe { cores.table(params, table) });
        }
        let buffer = match &config.buffer {
            Some(caller) => DeviceBuffer::from_caller(&sizes.shape, caller, None)?,
            None => DeviceBuffer::in_process(&sizes.shape, allocator)?,
        };
        let mut readers = reserve::with_capacity("readers", config.transfers())?;
        for place in 0..config.transfers() {
            readers.extend(RecordsReader::new(&pool, place, allocator)?);
        }
        let (background, workers) = (Background::new(workers), workers.clone());
        let resources = Resources::new(config, pool, buffer);
        let shared = Arc::clone(&resources);
        Ok((
            resources,
            Self { background, cores, workers, readers, broken: false, resources: shared },
        ))
    }

    /// Notes whether a result says that the tables or the slots are invalid.
    fn watched<T>(&mut self, result: Result<T>) -> Result<T> {
        self.broken |= matches!(result, Err(Error::Broken));
        result
    }

    fn check(&self) -> Result<()> {
        if self.broken { Err(Error::Broken) } else { Ok(()) }
    }

    /// Returns the bytes that a plan for `max_tokens` tokens takes beside its arrays.
    pub fn plan_bytes(pool: &Geometry, params: &Params, max_tokens: usize) -> Result<usize> {
        records_read::plan_bytes(pool.disk.as_ref(), max_tokens * params.k as usize)
    }
}

impl Device for Cpu {
    fn run(&mut self, call: &HostCall<'_>, plan: &mut Plan) -> Result<Option<Duration>> {
        self.check()?;
        let released = self.background.release();
        self.watched(released)?;
        let (resources, batch) = (&*self.resources, &call.batch);
        plan.begin(batch);
        let (layers, misses) = (call.layers, expected_misses(batch));
        let (out, cores) = (Outputs::of(plan), &self.cores);
        let transfer = Transfer { resources, copier: cores.copier, out, misses, layers };
        let copies = transfer.pieces() > 0;
        let run = |request: usize, worker: usize| {
            cores.plan_request(resources, (batch, copies), &transfer.out, request, worker);
        };
        let one = Stage { pieces: batch.requests(), run: &run };
        let two = Stage { pieces: transfer.pieces(), run: &|piece, _| transfer.run(piece) };
        let learns = copies && resources.config.params.lifetime == Lifetime::Learned;
        let last = |worker: usize| cores.learn(resources, batch, 0..batch.requests(), worker);
        let last = learns.then_some(&last as &(dyn Fn(usize) + Sync));
        let nanoseconds = match_nanoseconds(batch) + transfer.nanoseconds();
        let stages = [Some(one), copies.then_some(two)];
        let launched = self.workers.launch(nanoseconds, stages, last);
        let plan_time = self.watched(launched)?;
        plan.finish();
        copy_fresh(&self.resources, plan, call);
        Ok(Some(plan_time))
    }

    unsafe fn begin(&mut self, place: usize, call: &HostCall<'_>, plan: &mut Plan) -> Result<()> {
        self.check()?;
        self.readers.iter_mut().try_for_each(RecordsReader::settle)?;
        let resources = &*self.resources;
        copy_fresh(resources, plan, call);
        let (layers, copier, background) = (call.layers, self.cores.copier, &mut self.background);
        // SAFETY: the plan's arrays and the list of layers are kept (`# Safety`), and the resources as long as this
        // value, whose drop ends the job first.
        let begun = unsafe {
            if let Some(reader) = self.readers.get_mut(place) {
                reader.begin((resources, copier, background), plan, layers)
            } else {
                let (misses, out) = (plan.misses, Outputs::of(plan));
                let transfer = Transfer { resources, copier, out, misses, layers };
                let work = (transfer.pieces(), transfer.nanoseconds());
                background.start(place, Job::Rows(transfer), work)
            }
        };
        self.watched(begun)
    }

    fn is_done(&mut self, place: usize) -> bool {
        match self.readers.get_mut(place) {
            Some(reader) => reader.is_done(&self.background),
            None => self.background.is_done(place),
        }
    }

    fn wait(&mut self, place: usize, layers: &[usize], plan: &mut Plan) -> Result<()> {
        let (resources, background) = (&*self.resources, &mut self.background);
        let done = match self.readers.get_mut(place) {
            Some(reader) => reader.wait((resources, self.cores.copier, background), plan, layers),
            None => background.finish(place),
        };
        self.watched(done)?;
        self.check()
    }

    fn append(&mut self, call: &HostCall<'_>) -> Result<()> {
        let (resources, pieces) = (&self.resources, call.layers.len());
        // The queue of writes of a file has one lock, and wants the rows of a record one after another.
        if pieces < 2 || !self.readers.is_empty() {
            return resources.write_rows(call);
        }
        let failed = OnceLock::new();
        let run = |index: usize, _: usize| {
            if let Err(error) = resources.write_rows(&call.layer(index)) {
                // A later error tells no more.
                let _ = failed.set(error);
            }
        };
        let rows = call.tokens * pieces;
        let time = copy_nanoseconds(rows, resources.pool.format().bytes());
        self.workers.launch(time, [None, Some(Stage { pieces, run: &run })], None)?;
        failed.into_inner().map_or(Ok(()), Err)
    }

    fn prepare(&self, plan: &mut Plan) -> Result<()> {
        let allocator = self.resources.config.allocator.as_ref();
        self.readers.first().map_or(Ok(()), |reader| reader.prepare(plan, allocator))
    }

    fn read_table(&mut self, table: usize) -> Result<&[i32]> {
        // SAFETY: no launch runs, because this method has `&mut self`, and the engine checked the
        // table's number.
        Ok(unsafe { self.cores.table(&self.resources.config.params, table) })
    }

    fn wait_for_tables(&mut self) -> Result<bool> {
        self.check().map(|()| true)
    }

    fn edit_table(&mut self, table: usize, edit: &mut dyn FnMut(&mut [i32]) -> bool) -> Result<()> {
        // SAFETY: no launch runs, because this method has `&mut self`, and the engine checked the
        // table's number.
        edit(unsafe { self.cores.table(&self.resources.config.params, table) });
        Ok(())
    }

    fn copy_slots(&mut self, copy: &SlotCopy<'_>) -> Result<()> {
        let copied = copy_slots(&self.workers, &self.resources, self.cores.copier, copy);
        self.watched(copied)
    }

    fn take_read_wait(&mut self) -> Duration {
        self.readers.iter_mut().map(|reader| mem::take(&mut reader.wait)).sum()
    }

    fn name(&self) -> &'static str {
        "cpu"
    }

    fn cpu(&self) -> Option<CpuChoices> {
        let Cores { machine, copier, .. } = self.cores;
        Some(CpuChoices { machine, threads: self.workers.threads(), copier })
    }
}
