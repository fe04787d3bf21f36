//! The parts of an engine that do not depend on its device: configuration, pool and buffer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use avsg_device::params::Params;

use crate::buffer::{BlockTable, BufferConfig, CallerBuffer, DeviceBuffer};
use crate::call::{Batch, HostCall};
use crate::copy::Copier;
use crate::indexers::Indexers;
use crate::overlap::{self, Grids};
use crate::pool::{Geometry, HostPool};
use crate::rows::{MAX_SEGMENTS, Row};
use crate::system::allocator::Allocator;
use crate::system::cpus::{MAX_CORES, allowed_cpu_count};
use crate::system::fork::Birth;
use crate::{Result, ensure, geometry};

/// The vector machine that runs the kernels on the CPU device. Ascend devices ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MachineChoice {
    /// The fastest machine of this CPU, by a measurement.
    #[default]
    Auto,
    /// The scalar machine, which every CPU has.
    Emu,
    /// AVX2 with the faster of its two forms of gather, by a measurement.
    Avx2,
    /// AVX-512 with the faster of its two forms of gather, by a measurement.
    Avx512,
    /// AVX-512 with gathers by scalar loads.
    Avx512Loads,
    /// AVX-512 with gathers by `vpgatherdd`.
    Avx512Gather,
    /// NEON.
    Neon,
}

/// The most transfers of an engine that may be under way.
pub const MAX_UNDER_WAY: usize = 64;

/// The size and the rules of an engine.
#[derive(Clone, Debug)]
pub struct Config {
    /// Geometry and rules of every table.
    pub params: Params,
    /// Number of states: the most requests that can be resident at once; at least 1.
    pub states: usize,
    /// Number of cores, 1..=[`MAX_CORES`](crate::system::cpus::MAX_CORES). Stage Two cuts the misses into
    /// as many shares.
    pub cores: usize,
    /// The vector machine of the CPU device.
    pub machine: MachineChoice,
    /// How the CPU device copies rows; `None` for [`Copier::for_rows`]. Ascend devices ignore it.
    pub copier: Option<Copier>,
    /// The layers that share a table. Every state has a table for each indexer.
    pub indexers: Indexers,
    /// The caller's memory for the slots; `None` lets the engine allocate them.
    pub buffer: Option<CallerBuffer>,
    /// Makes the slots in [`Plan::slots`](crate::plan::Plan::slots) indices among the slots of all
    /// states: this number plus state * S + slot, or the place that the caller's table of blocks gives it.
    /// Miss lists keep slots within the state, which Stage Two reads.
    pub slot_base: Option<i32>,
    /// The most transfers that are under way at once ([`Engine::begin`](crate::engine::Engine::begin)), up to
    /// [`MAX_UNDER_WAY`]; 0 for 4.
    pub under_way: usize,
    /// The caller's allocator for tables, slots and working memory, and for the plans of the engine;
    /// `None` for the system's and the device's.
    pub allocator: Option<Arc<dyn Allocator>>,
}

impl Config {
    /// Returns a configuration with one core per CPU of this process and the fastest
    /// machine.
    pub fn new(params: Params, states: usize) -> Self {
        Self {
            params,
            states,
            cores: allowed_cpu_count(),
            machine: MachineChoice::Auto,
            copier: None,
            indexers: Indexers::default(),
            buffer: None,
            slot_base: None,
            under_way: 0,
            allocator: None,
        }
    }

    /// Returns the most transfers that are under way at once.
    pub fn transfers(&self) -> usize {
        if self.under_way == 0 { 4 } else { self.under_way }
    }

    /// Returns the number of tables: one for each indexer and state.
    pub fn tables(&self) -> usize {
        self.indexers.count().saturating_mul(self.states)
    }

    /// Returns the bytes that slots of this shape take; 0 in the caller's memory.
    pub(crate) fn slot_bytes(&self, shape: &BufferConfig) -> Result<usize> {
        if self.buffer.is_some() { Ok(0) } else { shape.bytes() }
    }

    /// Returns the caller's table of the blocks of each state, if the slots have one.
    pub(crate) fn slot_table(&self) -> Option<BlockTable> {
        self.buffer.as_ref().and_then(|caller| caller.table)
    }

    /// Returns the number of indices that slots of all states have.
    pub(crate) fn slot_indices(&self) -> usize {
        let all = self.states.saturating_mul(self.params.slots as usize);
        self.slot_table().map_or(all, |table| table.indices())
    }

    /// Returns the number of a table. The tables of an indexer are adjacent.
    pub(crate) fn table(&self, indexer: usize, state: usize) -> usize {
        indexer * self.states + state
    }
}

static ENGINES: AtomicU64 = AtomicU64::new(1);

/// The parts of an engine that every call of its device takes.
pub(crate) struct Resources {
    pub config: Config,
    pub buffer: Arc<DeviceBuffer>,
    pub id: u64,
    pub birth: Birth,
    // The last field, so that it is dropped after everything that refers to it.
    pub pool: Arc<HostPool>,
}

impl Resources {
    /// Checks a configuration for a pool as far as it does not depend on the device, and returns the
    /// shape of its buffer. `rows` is the memory of the pool's rows, which is known once there is a pool.
    pub fn check(
        config: &Config,
        pool: &Geometry,
        rows: impl Iterator<Item = Result<Grids>>,
    ) -> Result<BufferConfig> {
        let params = &config.params;
        geometry::check(params)?;
        ensure!((1..=MAX_CORES).contains(&config.cores), "cores" is config.cores, but
            "a device has 1..={MAX_CORES} cores"; "pass a number in that range");
        ensure!(config.states != 0 && config.states <= i32::MAX as usize,
            "states" is config.states, but "it must be 1..={}", i32::MAX;
            "pass your largest batch");
        ensure!(config.under_way <= MAX_UNDER_WAY, "transfers under way" is config.under_way, but
            "it must be 0..={MAX_UNDER_WAY}"; "pass 0 for 4");
        config.indexers.check(pool.layers)?;
        pool.check_indexers(&config.indexers)?;
        let page = params.page as usize;
        ensure!(pool.rows >= page, "pool rows" is pool.rows, but "a block is {page} rows";
            "make the pool larger");
        ensure!(pool.rows <= i32::MAX as usize, "pool rows" is pool.rows, but
            "kernels count rows up to {}", i32::MAX; "split the pool");
        let (states, layers, slots) = (config.states, pool.layers, params.slots as usize);
        let buffer = BufferConfig { states, layers, slots, format: pool.format.clone() };
        if let Some(caller) = &config.buffer {
            caller.check(&buffer)?;
            overlap::check(caller.grids(&buffer).chain(rows))?;
        }
        if let Some(base) = config.slot_base {
            let indices = config.slot_indices();
            let end = usize::try_from(base).ok().and_then(|base| base.checked_add(indices));
            ensure!(end.is_some_and(|end| end <= i32::MAX as usize), "slot_base" is base, but
                "it must be 0 or more, and {indices} slots behind it fit int32";
                "pass a smaller base");
        }
        Ok(buffer)
    }

    /// Replaces the slots of one state by indices among the slots of all states, if the
    /// configuration asks for them.
    pub fn globalize(&self, state: usize, slots: &mut [i32]) {
        let Some(base) = self.config.slot_base else { return };
        // The CPU device alone calls this, and its table is in process memory, so this cannot fail.
        let Ok(index) = self.buffer.indices(state) else { return slots.fill(-1) };
        for slot in slots.iter_mut().filter(|slot| **slot >= 0) {
            // The sum fits, because `check` has compared the largest one.
            *slot = index(*slot as usize).map_or(-1, |index| base + index as i32);
        }
    }

    /// Joins the parts of a new engine.
    pub fn new(config: Config, pool: Arc<HostPool>, buffer: DeviceBuffer) -> Arc<Self> {
        let id = ENGINES.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { config, buffer: Arc::new(buffer), id, birth: Birth::now(), pool })
    }

    /// Returns the number of rows of the pool, or of blocks if the geometry has pages.
    pub fn pool_units(&self) -> usize {
        self.pool.rows() / (self.config.params.page as usize).max(1)
    }

    /// Returns the pool row of an id of a request; `None` if the id has no row.
    pub fn row(&self, batch: &Batch<'_>, request: usize, id: usize) -> Option<usize> {
        let page = self.config.params.page as usize;
        let row = match (id.checked_div(page), id.checked_rem(page)) {
            (Some(entry), Some(within)) => {
                let inside = entry < batch.block_stride;
                let at = request * batch.block_stride + entry;
                let block = *batch.block_table.get(at).filter(|_| inside)?;
                usize::try_from(block).ok()?.checked_mul(page)? + within
            }
            _ => id,
        };
        (row < self.pool_units() * page.max(1)).then_some(row)
    }

    /// Returns the fresh rows of a batch, as (token of the batch, request, id). Those at or above the
    /// sequence length are skipped: they are no tokens, and their block may belong to another
    /// request.
    pub fn fresh_ids<'b>(
        batch: &'b Batch<'_>,
    ) -> impl Iterator<Item = (usize, usize, usize)> + use<'b> {
        (0..batch.state.len())
            .filter(|&r| batch.state[r] >= 0 && batch.stable_len[r] >= 0)
            .flat_map(|r| {
                let (first, end) = (batch.cu_q[r] as usize, batch.cu_q[r + 1] as usize);
                let (stable, seq) = (batch.stable_len[r] as usize, batch.seq_len[r] as usize);
                (first..end)
                    .map(move |row| (row, r, stable + row - first))
                    .filter(move |&(_, _, id)| id < seq)
            })
    }

    /// Writes the fresh rows of an append to the pool, from this thread and token by token,
    /// because the rows of a token in all layers of an indexer are one record of a file. If the pool's file
    /// does not take a row, it and the rows behind it are errors when they are read, until they are written.
    pub fn write_rows(&self, call: &HostCall<'_>) -> Result<()> {
        let rows = Self::fresh_ids(&call.batch).filter_map(|(at, request, id)| {
            self.row(&call.batch, request, id).map(|row| (at, row))
        });
        self.pool.write_each(rows.flat_map(|(at, row)| {
            call.layers.iter().enumerate().map(move |(index, &layer)| {
                let mut parts = [&[][..]; MAX_SEGMENTS];
                let fresh = call.fresh_of(index).unwrap_or(&[]);
                let segments = self.pool.format().as_slice().iter().zip(fresh);
                for (part, (segment, rows)) in parts.iter_mut().zip(segments) {
                    *part = &rows[at * segment.stride..][..segment.bytes];
                }
                Row { layer, row, parts }
            })
        }))
    }

    /// Checks that every fresh row of a batch has a row in the pool.
    pub fn check_append_rows(&self, batch: &Batch<'_>) -> Result<()> {
        for (_, request, id) in Self::fresh_ids(batch) {
            let row = self.row(batch, request, id);
            ensure!(row.is_some(), "appended id" is id, but
                "request {request} has no host row for it (the pool holds {} rows)",
                self.pool.rows(); "enlarge the pool, or give the block table an entry for it");
            row.map_or(Ok(()), |row| self.pool.check_kept(row))?;
        }
        Ok(())
    }
}
