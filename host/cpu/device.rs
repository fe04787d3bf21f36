//! The CPU device: worker threads stand in for the cores, and process memory for device memory.

use std::sync::OnceLock;
use std::time::Duration;

use avsg_device::memory::{clear_state, table_words};
use avsg_device::one_request::{ROW, SLOT};
use avsg_device::params::{Lifetime, Params};
use avsg_device::stage_two::for_each_range;

use super::cores::{Cores, Outputs, worker_words};
use super::machine::Machine;
use super::records_read::{self, RecordsReader};
use super::slots_copy::SlotsCopy;
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
use crate::system::array::ProcessMemory;
use crate::system::mapping::MIB2;
use crate::system::{available_memory, reserve};
use crate::{Error, Result, invalid};

pub(crate) struct Cpu {
    cores: Cores,
    workers: WorkerPool,
    /// What reads the rows of a pool in a file.
    reader: Option<RecordsReader>,
    /// Whether a piece of a launch has panicked, so that the tables or the slots are invalid.
    broken: bool,
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
        let both = both.filter(|(tables, work)| tables.checked_add(*work).is_some());
        let (tables, work) = both.ok_or_else(|| {
            invalid!("states" is config.states, but "the tables must fit the address space";
                "ask for fewer states")
        })?;
        let reads = records_read::engine_bytes(pool.disk.as_ref());
        Ok(Sizes { slots: config.slot_bytes(&shape)?, shape, tables, work, reads })
    }

    /// Makes the slots and the device of a configuration.
    pub fn new(
        config: &Config,
        pool: &HostPool,
        workers: &WorkerPool,
    ) -> Result<(DeviceBuffer, Box<Self>)> {
        let params = &config.params;
        let rows = pool.geometry.grids(&pool.starts, Start::in_process);
        let sizes = Self::sizes(config, &pool.geometry, rows, workers.threads())?;
        let allocator = config.allocator.as_ref();
        if allocator.is_none() {
            let bytes = sizes.slots.saturating_add(sizes.tables + sizes.work + sizes.reads);
            available_memory::check("device memory", bytes)?;
        }
        let cores = Cores {
            machine: Machine::find(config.machine)?,
            copier: config.copier.unwrap_or(Copier::for_rows(pool.format().bytes())),
            tables: ProcessMemory::zeroed("tables", sizes.tables, Allocated::LINE, allocator)?,
            work: ProcessMemory::zeroed("working columns", sizes.work, Allocated::LINE, allocator)?,
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
        let reader = RecordsReader::new(pool, allocator)?;
        Ok((buffer, Box::new(Self { cores, workers: workers.clone(), reader, broken: false })))
    }

    /// Returns the bytes that a plan for `max_tokens` tokens takes beside its arrays.
    pub fn plan_bytes(pool: &Geometry, params: &Params, max_tokens: usize) -> Result<usize> {
        records_read::plan_bytes(pool.disk.as_ref(), max_tokens * params.k as usize)
    }
}

impl Device for Cpu {
    fn run(
        &mut self,
        resources: &Resources,
        call: &HostCall<'_>,
        plan: &mut Plan,
    ) -> Result<Option<Duration>> {
        if self.broken {
            return Err(Error::broken_device());
        }
        let planned = call.planned();
        if let Some(batch) = planned {
            plan.begin(batch);
        }
        if let Some(reader) = self.reader.as_mut().filter(|_| !call.layers.is_empty()) {
            let done = reader.transfer(resources, self.cores.copier, &self.workers, plan, call);
            self.broken = matches!(done, Err(Error::Broken { .. }));
            return done.map(|()| None);
        }
        let rows = planned.map_or(plan.misses, expected_misses) * call.layers.len();
        let copy = copy_nanoseconds(rows, resources.pool.format().bytes());
        let (outputs, cores) = (Outputs::of(plan), &self.cores);
        let transfer = Transfer { resources, copier: cores.copier, out: &outputs, call };
        let copies = transfer.pieces() > 0;
        let one = planned.map(|batch| {
            let outputs = &outputs;
            let run = move |request: usize, worker: usize| {
                cores.plan_request(resources, (batch, copies), outputs, request, worker);
            };
            (batch.requests(), run)
        });
        let learns = copies && resources.config.params.lifetime == Lifetime::Learned;
        let last = planned.filter(|_| learns).map(|batch| {
            move |worker: usize| cores.learn(resources, batch, 0..batch.requests(), worker)
        });
        let two = Stage { pieces: transfer.pieces(), run: &|piece, _| transfer.run(piece) };
        let one = one.as_ref().map(|(pieces, run)| Stage { pieces: *pieces, run });
        let last = last.as_ref().map(|last| last as &(dyn Fn(usize) + Sync));
        let nanoseconds = planned.map_or(0, match_nanoseconds) + copy;
        let launched = self.workers.launch_with([one, copies.then_some(two)], last, nanoseconds);
        self.broken = matches!(launched, Err(Error::Broken { .. }));
        let plan_time = launched?;
        if planned.is_some() {
            plan.finish();
        }
        Ok(Some(plan_time))
    }

    fn steps_in_one_launch(&self) -> bool {
        self.reader.is_none()
    }

    fn append(&mut self, resources: &Resources, call: &HostCall<'_>) -> Result<()> {
        let pieces = call.layers.len();
        // The queue of writes of a file has one lock, and wants the rows of a record one after another.
        if pieces < 2 || self.reader.is_some() {
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
        self.workers.launch(time, None, Some(Stage { pieces, run: &run }))?;
        failed.into_inner().map_or(Ok(()), Err)
    }

    fn prepare(&self, resources: &Resources, plan: &mut Plan) -> Result<()> {
        let allocator = resources.config.allocator.as_ref();
        self.reader.as_ref().map_or(Ok(()), |reader| reader.prepare(plan, allocator))
    }

    fn read_table(&mut self, resources: &Resources, table: usize) -> Result<&[i32]> {
        // SAFETY: no launch runs, because this method has `&mut self`, and the engine checked the
        // table's number.
        Ok(unsafe { self.cores.table(&resources.config.params, table) })
    }

    fn wait_for_tables(&mut self) -> Result<bool> {
        if self.broken { Err(Error::broken_device()) } else { Ok(true) }
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

    fn copy_slots(&mut self, resources: &Resources, copy: &SlotCopy<'_>) -> Result<()> {
        let copies = SlotsCopy { resources, copier: self.cores.copier, copy };
        let stage = Stage { pieces: copies.pieces(), run: &|piece, _| copies.run(piece) };
        let copied = self.workers.launch(copies.nanoseconds(), None, Some(stage));
        self.broken = matches!(copied, Err(Error::Broken { .. }));
        copied.map(drop)
    }

    fn take_read_wait(&mut self) -> Duration {
        self.reader.as_mut().map_or(Duration::ZERO, RecordsReader::take_wait)
    }

    fn name(&self) -> &'static str {
        "cpu"
    }

    fn cpu(&self) -> Option<CpuChoices> {
        let Cores { machine, copier, .. } = self.cores;
        Some(CpuChoices { machine: machine.name(), threads: self.workers.threads(), copier })
    }
}

/// One launch of Stage Two. Its pieces are the shares of the cores in each layer.
struct Transfer<'a> {
    resources: &'a Resources,
    copier: Copier,
    out: &'a Outputs<'a>,
    call: &'a HostCall<'a>,
}

impl Transfer<'_> {
    /// Returns the number of pieces.
    fn pieces(&self) -> usize {
        self.call.layers.len() * self.resources.config.cores
    }

    /// Copies the share of one core in one layer.
    fn run(&self, piece: usize) {
        let (resources, out) = (self.resources, self.out);
        let cores = resources.config.cores;
        let (index, core) = (piece / cores, piece % cores);
        let (layer, fresh_rows) = (self.call.layers[index], self.call.fresh_of(index));
        let misses = |request| out.misses(request, ROW).len();
        for_each_range(core, cores, out.requests, misses, |request, range| {
            let slots = &out.misses(request, SLOT)[range.clone()];
            let rows = &out.misses(request, ROW)[range];
            let (first, state) = (out.cu_q[request] as usize, out.state[request] as usize);
            for (i, segment) in resources.pool.format().as_slice().iter().enumerate() {
                let to = resources.buffer.checked_view(state, layer, i);
                let from = resources.pool.checked_view(layer, i);
                let source = |n: usize| match rows[n] {
                    row @ 0.. => from.ptr(row as usize),
                    fresh => {
                        let at = (first + !fresh as usize) * segment.stride;
                        // `check::call` has checked that the slice holds a row of every token.
                        fresh_rows.map_or(core::ptr::null(), |f| f[i][at..].as_ptr())
                    }
                };
                // SAFETY: Stage One returns only rows of the pool and of this step, and slots below
                // S. A slot is in one miss of one request, so destinations are distinct. Pool,
                // buffer and fresh rows do not overlap, and no other thread or process writes these
                // rows (module `pool`).
                unsafe {
                    self.copier.copy_rows(slots.len(), segment.bytes, source, |n| {
                        to.ptr(slots[n] as usize)
                    });
                }
            }
        });
    }
}
