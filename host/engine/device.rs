//! The memory of a CPU device and what its cores do with it. Only the engine launches them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use avsg_device::machine::memory::{clear_state, work_words};
use avsg_device::params::{NO_STABLE_LEN, Params};
use avsg_device::stage_one::record;
use avsg_device::stage_two::{Share, pieces};

use super::{Batch, Config, Fresh};
use crate::buffer::{BufferConfig, DeviceBuffer};
use crate::copy::Copier;
use crate::launch::cpu::{allowed_cpus, check_cores};
use crate::machine::Machine;
use crate::mapping::{MIB2, Mapping};
use crate::plan::Plan;
use crate::pool::{HostPool, RowView};
use crate::rows::MAX_SEGMENTS;
use crate::stage::{POSITION, ROW, SLOT, StageOne, table_words};
use crate::{Error, Result, geometry, memory};

static ENGINES: AtomicU64 = AtomicU64::new(1);

/// Words in a 64-byte line: two workers share none.
const LINE: usize = 16;

fn worker_words(params: &Params) -> usize {
    work_words(params).next_multiple_of(LINE)
}

/// Bytes of so many words in whole 2 MiB pages: a table's random accesses then miss no TLB where the
/// kernel grants a hugepage.
fn pages(words: usize) -> usize {
    (4 * words).next_multiple_of(MIB2)
}

/// All that the cores of one engine touch.
pub(super) struct Device {
    pub config: Config,
    pub machine: Machine,
    pub copier: Copier,
    pub pool: Arc<HostPool>,
    pub buffer: DeviceBuffer,
    pub id: u64,
    tables: Mapping,
    work: Mapping,
}

impl Device {
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

    pub fn new(config: Config, pool: Arc<HostPool>) -> Result<Self> {
        let params = &config.params;
        geometry::check(params)?;
        check_cores(config.cores)?;
        if config.states == 0 {
            let limit = "it must be at least 1";
            return Err(Error::invalid("states", 0, limit, "pass your largest batch"));
        }
        let page = params.page as usize;
        if pool.rows() < page {
            let limit = format!("a block is {page} rows");
            return Err(Error::invalid("pool rows", pool.rows(), limit, "make the pool larger"));
        }
        if pool.rows() > i32::MAX as usize {
            let limit = format!("kernels count rows up to {}", i32::MAX);
            return Err(Error::invalid("pool rows", pool.rows(), limit, "split the pool"));
        }
        let buffer = BufferConfig {
            states: config.states,
            layers: pool.layers(),
            slots: params.slots as usize,
            format: pool.format().clone(),
        };
        let (slots, words) = Self::bytes_needed(&config, &buffer)?;
        memory::check("device memory", slots.saturating_add(words))?;
        let workers = config.cores.min(allowed_cpus().len().max(1));
        let device = Self {
            machine: Machine::find(config.machine, params)?,
            copier: Copier::measure(pool.format().bytes(), workers),
            buffer: DeviceBuffer::new(&buffer)?,
            id: ENGINES.fetch_add(1, Ordering::Relaxed),
            tables: Mapping::anonymous("tables", pages(table_words(params) * config.states))?,
            work: Mapping::anonymous("working columns", pages(worker_words(params) * workers))?,
            config,
            pool,
        };
        for state in 0..config.states {
            // SAFETY: the device is not shared yet.
            clear_state(params, unsafe { device.table(state) });
        }
        Ok(device)
    }

    /// The words of one table.
    ///
    /// # Safety
    /// `state` is below the number of states, and nobody else uses this table meanwhile.
    #[expect(clippy::mut_from_ref, reason = "the contract is exclusive use of this one table")]
    pub unsafe fn table(&self, state: usize) -> &mut [i32] {
        let n = table_words(&self.config.params);
        let at = self.tables.ptr().cast::<i32>();
        // SAFETY: `new` made the mapping `states` tables long, zeroed and aligned to a page; the
        // contract gives the index and exclusive use.
        unsafe { core::slice::from_raw_parts_mut(at.add(state * n), n) }
    }

    /// Rows (without block table) or blocks (with one) of the pool.
    pub fn pool_units(&self) -> usize {
        self.pool.rows() / (self.config.params.page as usize).max(1)
    }

    /// Stage One on one worker: takes requests off `next` until none is left.
    pub fn stage_one(&self, batch: &Batch<'_>, out: &Outputs, worker: usize, next: &AtomicUsize) {
        let n = worker_words(&self.config.params);
        let at = self.work.ptr().cast::<i32>();
        // SAFETY: the mapping holds `workers` such runs, zeroed and aligned, and only this worker
        // uses run number `worker`.
        let work = unsafe { core::slice::from_raw_parts_mut(at.add(worker * n), n) };
        loop {
            let request = next.fetch_add(1, Ordering::Relaxed);
            if request >= batch.state.len() {
                return;
            }
            self.request(batch, out, work, request);
        }
    }

    fn request(&self, batch: &Batch<'_>, out: &Outputs, work: &mut [i32], request: usize) {
        let params = &self.config.params;
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
            state: unsafe { self.table(state) },
            work,
            tokens,
            k: batch.k,
            generation: batch.generation[request],
            stable: if stable < 0 { NO_STABLE_LEN } else { stable },
            limit: batch.seq_len[request],
            rows: self.pool_units(),
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

    /// The pool row of an id, if it has one.
    fn row(&self, batch: &Batch<'_>, request: usize, id: usize) -> Option<usize> {
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

    /// The fresh rows of a batch, as (row of the batch, request, id).
    fn fresh_ids<'b>(
        batch: &'b Batch<'_>,
    ) -> impl Iterator<Item = (usize, usize, usize)> + use<'b> {
        (0..batch.state.len())
            .filter(|&r| batch.state[r] >= 0 && batch.stable_len[r] >= 0)
            .flat_map(|r| {
                let (first, end) = (batch.cu_q[r] as usize, batch.cu_q[r + 1] as usize);
                let stable = batch.stable_len[r] as usize;
                (first..end).map(move |row| (row, r, stable + row - first))
            })
    }

    pub fn append(&self, batch: &Batch<'_>, layer: usize, fresh: &Fresh<'_>) -> Result<()> {
        for (_, request, id) in Self::fresh_ids(batch) {
            if self.row(batch, request, id).is_none() {
                let limit = format!(
                    "request {request} has no host row for it (the pool holds {} rows)",
                    self.pool.rows()
                );
                let remedy = "enlarge the pool, or give the block table an entry for it";
                return Err(Error::invalid("appended id", id, limit, remedy));
            }
        }
        for (at, request, id) in Self::fresh_ids(batch) {
            let Some(row) = self.row(batch, request, id) else { continue };
            for (i, segment) in self.pool.format().as_slice().iter().enumerate() {
                let bytes = &fresh.segments[i][at * segment.stride..][..segment.bytes];
                self.pool.write_segment(layer, i, row, bytes)?;
            }
        }
        Ok(())
    }
}

/// A plan's arrays, shared by the cores of a launch.
pub(super) struct Outputs {
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
    pub fn of(plan: &mut Plan) -> Self {
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
pub(super) struct Transfer<'a> {
    device: &'a Device,
    out: &'a Outputs,
    layer: usize,
    fresh: Option<&'a Fresh<'a>>,
    rows: heapless::Vec<RowView<'a>, MAX_SEGMENTS>,
}

impl<'a> Transfer<'a> {
    pub fn new(
        device: &'a Device,
        out: &'a Outputs,
        layer: usize,
        fresh: Option<&'a Fresh<'a>>,
    ) -> Result<Self> {
        let segments = device.pool.format().as_slice().len();
        let rows = (0..segments).map(|s| device.pool.view(layer, s)).collect::<Result<_>>()?;
        Ok(Self { device, out, layer, fresh, rows })
    }

    /// Copies one core's share.
    pub fn run(&self, core: usize) {
        let (device, out) = (self.device, self.out);
        let share = |r: usize| Share {
            positions: out.misses(r, POSITION),
            selected: (Outputs::word(out.cu_q, r + 1) - Outputs::word(out.cu_q, r)) * out.k,
        };
        let config = &device.config;
        pieces(config.strategy, core, config.cores, out.requests, share, |request, range| {
            let slots = &out.misses(request, SLOT)[range.clone()];
            let rows = &out.misses(request, ROW)[range];
            let first = Outputs::word(out.cu_q, request);
            let state = Outputs::word(out.state, request);
            for (i, segment) in device.pool.format().as_slice().iter().enumerate() {
                let Ok(to) = device.buffer.view(state, self.layer, i) else { return };
                let source = |n: usize| match rows[n] {
                    row @ 0.. => self.rows[i].ptr(row as usize),
                    fresh => {
                        let at = (first + !fresh as usize) * segment.stride;
                        // `check::fresh` has seen that every row of the batch is in there.
                        self.fresh.map_or(core::ptr::null(), |f| f.segments[i][at..].as_ptr())
                    }
                };
                // SAFETY: Stage One lets only rows of the pool and of this step pass, and slots below
                // S; a slot is in one miss of one request, so destinations are distinct; pool,
                // buffer and fresh rows do not overlap, and the caller keeps the pool's promise.
                unsafe {
                    device.copier.copy_rows(slots.len(), segment.bytes, source, |n| {
                        to.ptr(slots[n] as usize)
                    });
                }
            }
        });
    }
}
