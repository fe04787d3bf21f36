//! The Ascend device: an engine's calls as kernels in a stream.
//!
//! ```text
//! plan, transfer, step, append       host arrays: copy in, launch, copy out, wait
//! enqueue_*                          device arrays, the caller's stream: launch, nothing else
//! ```
//! If a call of the runtime fails, a table may list a row that was never copied. So the next plan
//! synchronizes the stream and empties every table, and earlier plans are refused. If the
//! synchronization fails, too, the device is lost, and every later call returns that error.

use std::sync::Arc;
use std::time::Duration;

use avsg_device::memory::table_words;
use avsg_device::params::Lifetime;
use avsg_device::stage_two::Strategy;
use avsg_device::tiling::rules;

use super::acl::api::capture;
use super::acl::owned::{Context, DeviceMemory, RawStream, Stream};
use super::arrays::{Arrays, FreshRows};
use super::health::{Health, lost};
use super::kernels::Kernels;
use super::launch::{self, Launcher};
use super::options::AscendOptions;
use super::plans::Plans;
use super::pool::{PoolUse, RegisteredPool};
use super::readback;
use super::slots;
use crate::backend::Device;
use crate::batch::{Batch, Layer, Step};
use crate::device_arrays::{CallKind, DevicePlan, QueuedStep};
use crate::engine::Engine;
use crate::plan::Plan;
use crate::resources::{Config, Resources};
use crate::{Error, Result, memory};

/// The device of one engine.
///
/// Fields are dropped in this order: first the stream, by force if it hangs, then the memory that
/// its work uses.
struct Ascend {
    stream: Stream,
    launcher: Launcher,
    fresh: FreshRows,
    /// The arrays of appends, which grow to the largest batch so far.
    inputs: Option<Arrays>,
    plans: Plans,
    table: Vec<i32>,
    pool_use: PoolUse,
    options: AscendOptions,
    timeout: i32,
    health: Health,
    /// Number of resets so far; plans of an earlier epoch are refused.
    epoch: u64,
}

impl Engine {
    /// Makes an engine on an Ascend device. Its number of cores is at most the device's number of
    /// vector cores.
    ///
    /// # Errors
    /// As for [`Self::new`], or if the device has too little memory, a kernel cannot be loaded, or
    /// device kernels do not support the geometry.
    pub fn on_ascend(
        config: Config,
        pool: RegisteredPool,
        options: &AscendOptions,
    ) -> Result<Self> {
        let (resources, device) = Ascend::new(config, pool, options)?;
        Self::from_parts(resources, Box::new(device))
    }
}

impl Ascend {
    fn new(
        mut config: Config,
        registered: RegisteredPool,
        options: &AscendOptions,
    ) -> Result<(Resources, Self)> {
        let pool = Arc::clone(&registered.pool);
        let buffer = Resources::check(&config, &pool)?;
        if config.strategy != Strategy::Balanced {
            let value = format!("{:?}", config.strategy).to_lowercase();
            let limit = "device kernels spread misses evenly over cores";
            return Err(Error::invalid("strategy", value, limit, "choose balanced"));
        }
        slots::check(&config)?;
        let (context, timeout) = (&options.context, options.timeout()?);
        config.cores = config.cores.min(context.vector_cores()?.max(1));
        let params = &config.params;
        launch::check(&config, &pool)?;
        let kernels = Kernels::load(options, params)?;
        let words = table_words(params);
        let bytes = config.tables().checked_mul(4 * words).ok_or_else(|| {
            let limit = "the tables must fit the address space";
            Error::invalid("states", config.states, limit, "ask for fewer states")
        })?;
        let tables = DeviceMemory::new(context, bytes)?;
        let rules = match &params.lifetime {
            Lifetime::Frequency(rule) => {
                let bytes: Vec<u8> = rules(rule).iter().flat_map(|h| h.to_ne_bytes()).collect();
                let memory = DeviceMemory::new(context, bytes.len())?;
                memory.write(0, &bytes)?;
                Some(memory)
            }
            Lifetime::Constant(_) => None,
        };
        let count = 8 * registered.starts().len();
        let mut addresses = memory::with_capacity("chunk addresses", count)?;
        addresses.extend(registered.starts().flat_map(u64::to_ne_bytes));
        let chunks = DeviceMemory::new(context, addresses.len())?;
        chunks.write(0, &addresses)?;
        let slots = slots::allocate(&config, &buffer, context)?;
        let resources = Resources::new(config, pool, slots);
        let launcher = Launcher { kernels, chunks, tables, rules, context: Arc::clone(context) };
        let mut ascend = Self {
            stream: Stream::new(context)?,
            launcher,
            fresh: FreshRows::default(),
            inputs: None,
            plans: Plans::default(),
            table: memory::filled("table", words, 0)?,
            pool_use: PoolUse::new(registered),
            options: options.clone(),
            timeout,
            health: Health::NeedsReset,
            epoch: 0,
        };
        ascend.reset_if_needed(&resources)?;
        Ok((resources, ascend))
    }

    fn context(&self) -> &Arc<Context> {
        &self.options.context
    }

    /// Empties every table if an earlier call failed.
    fn reset_if_needed(&mut self, resources: &Resources) -> Result<()> {
        match self.health {
            Health::Good => return Ok(()),
            Health::Lost => return Err(lost()),
            Health::NeedsReset => {}
        }
        if let Err(error) = self.stream.synchronize(self.timeout) {
            self.health = Health::after(&error);
            return Err(error);
        }
        self.epoch += 1;
        self.launcher.reset(resources, self.stream.raw())?;
        self.stream.synchronize(self.timeout)?;
        self.health = Health::Good;
        Ok(())
    }

    /// Runs `calls` and synchronizes the stream. If a call fails, the stream is synchronized
    /// nevertheless, because the caller may then free memory that its work uses.
    fn run_and_wait(
        &mut self,
        calls: impl FnOnce(&mut Self, RawStream) -> Result<()>,
    ) -> Result<()> {
        let (stream, context) = (self.stream.raw(), Arc::clone(self.context()));
        let calls = |this: &mut Self| {
            let _current = context.bind()?;
            calls(this, stream)
        };
        let done = calls(self).and_then(|()| self.stream.synchronize(self.timeout));
        if done.is_err() {
            let waited = self.stream.synchronize(self.timeout);
            self.health =
                waited.map_or_else(|error| Health::after(&error), |()| Health::NeedsReset);
        }
        done
    }

    /// Returns an error if the tables were emptied after the plan, or must be.
    fn refuse_stale(&self, plan: &Plan) -> Result<()> {
        if self.health == Health::Lost {
            return Err(lost());
        }
        if self.health == Health::NeedsReset || plan.epoch != self.epoch {
            let limit = "a device failure came after it";
            return Err(Error::invalid("plan", "stale", limit, "plan the batch again"));
        }
        Ok(())
    }
}

impl Device for Ascend {
    fn prepare(&self, plan: &mut Plan) -> Result<()> {
        // Between calls the engine's stream is idle unless the device needs a reset.
        self.plans.prepare(&self.options.context, plan, self.health == Health::Good)
    }

    fn run(
        &mut self,
        resources: &Resources,
        step: &Step<'_>,
        plan: &mut Plan,
    ) -> Result<Option<Duration>> {
        let arrays = self.plans.arrays(plan)?;
        let kind = match step {
            Step::Plan(_) => CallKind::Plan,
            Step::Transfer(_) => CallKind::Transfer,
            Step::PlanAndTransfer(..) => CallKind::PlanAndTransfer,
        };
        match step.batch() {
            Some(batch) => {
                self.reset_if_needed(resources)?;
                plan.begin(batch);
            }
            None => self.refuse_stale(plan)?,
        }
        let one_launch = self.options.one_launch.unwrap_or(true);
        let done = self.run_and_wait(|this, stream| {
            let page = resources.config.params.page as usize;
            let layer = step.layer();
            // SAFETY: the last call synchronized the stream. `plans` keeps the arrays of this
            // engine until this work is synchronized.
            unsafe {
                let batch = match step.batch() {
                    Some(batch) => arrays.upload(batch, page, stream)?,
                    None => arrays.planned_batch(plan),
                };
                let fresh = layer.and_then(|layer| layer.fresh);
                let fresh = this.fresh.upload(&this.options.context, fresh, stream)?;
                let layer = layer.map_or(0, |layer| layer.number);
                let step = QueuedStep { kind, batch, out: arrays.outputs(), layer, fresh };
                this.launcher.run(resources, &step, one_launch, stream)?;
                if kind == CallKind::Transfer { Ok(()) } else { arrays.download(plan, stream) }
            }
        });
        if step.batch().is_none() {
            return done.map(|()| None);
        }
        done.inspect_err(|_| plan.clear())?;
        // SAFETY: `run_and_wait` has synchronized the stream, and no call failed.
        unsafe { arrays.copy_to_plan(plan) };
        if let Err(wrong) = readback::check(plan, &resources.config.params, resources.pool.rows()) {
            plan.clear();
            // A device that writes wrong words here may have written wrong tables.
            self.health = Health::NeedsReset;
            return Err(wrong);
        }
        resources.globalize_plan(plan);
        plan.epoch = self.epoch;
        plan.finish();
        Ok(None)
    }

    fn append(&mut self, resources: &Resources, batch: &Batch<'_>, layer: Layer<'_>) -> Result<()> {
        match self.health {
            Health::Good => {}
            Health::Lost => return Err(lost()),
            // The stream may still copy from the pinned memory.
            Health::NeedsReset => self.stream.synchronize(self.timeout)?,
        }
        let (requests, rows) = (batch.requests(), batch.rows());
        let fits = |a: &Arrays| a.rows >= rows && a.requests >= requests;
        if !self.inputs.as_ref().is_some_and(fits) {
            let (rows, requests) = (rows.next_power_of_two(), requests.next_power_of_two());
            self.inputs = None;
            self.inputs = Some(Arrays::new(&self.options.context, 0, rows, requests)?);
        }
        // An append needs no ids.
        let batch = Batch { ids: &[], k: resources.config.params.k as usize, ..*batch };
        self.run_and_wait(|this, stream| {
            let Some(inputs) = &this.inputs else { return Ok(()) };
            let page = resources.config.params.page as usize;
            // SAFETY: the last call synchronized the stream; this value owns the arrays, and its
            // drop waits.
            unsafe {
                let batch = inputs.upload(&batch, page, stream)?;
                let fresh = this.fresh.upload(&this.options.context, layer.fresh, stream)?;
                let (kind, out) = (CallKind::Append, DevicePlan::default());
                let step = QueuedStep { kind, batch, out, layer: layer.number, fresh };
                this.launcher.run(resources, &step, false, stream)
            }
        })
    }

    unsafe fn enqueue(
        &mut self,
        resources: &Resources,
        step: &QueuedStep,
        stream: RawStream,
    ) -> Result<()> {
        if self.health == Health::Lost {
            return Err(lost());
        }
        let context = Arc::clone(self.context());
        let capturing = || {
            let _current = context.bind()?;
            // SAFETY: the caller guarantees that the stream is alive (`# Safety`).
            unsafe { capture::is_capturing(context.acl(), stream.handle()) }
        };
        let plans = matches!(step.kind, CallKind::Plan | CallKind::PlanAndTransfer);
        // After a failure the tables are emptied in a caller's stream, too, but not in a capture:
        // the reset would run at every replay, or never if the graph is destroyed.
        if plans && self.health == Health::NeedsReset {
            if capturing()? {
                let limit = "tables are reset after a failure, which a capture must not record";
                let remedy = "plan once outside of a capture, then capture again";
                return Err(Error::invalid("device state", "not reset", limit, remedy));
            }
            self.launcher.reset(resources, stream)?;
            self.epoch += 1;
            self.health = Health::Good;
        }
        let one_launch = self.options.one_launch.unwrap_or(false);
        let done = context.bind().and_then(|_current| {
            // SAFETY: the caller keeps the contract of this function (`# Safety`).
            unsafe { self.launcher.run(resources, step, one_launch, stream) }
        });
        // Captured work has not run, and a capture with a failed call yields no graph.
        if done.is_err() && !capturing().unwrap_or(false) {
            self.health = Health::NeedsReset;
        }
        done
    }

    fn read_table(&mut self, resources: &Resources, table: usize) -> Result<&[i32]> {
        let bytes = 4 * table_words(&resources.config.params);
        let mut read = memory::filled("table", bytes, 0)?;
        self.launcher.tables.read(table * bytes, &mut read)?;
        for (word, bytes) in self.table.iter_mut().zip(read.as_chunks::<4>().0) {
            *word = i32::from_ne_bytes(*bytes);
        }
        Ok(&self.table)
    }

    fn edit_table(
        &mut self,
        resources: &Resources,
        table: usize,
        edit: &mut dyn FnMut(&mut [i32]) -> bool,
    ) -> Result<()> {
        if self.health != Health::Good {
            // Unless the device is lost, the next plan empties every table.
            return if self.health == Health::Lost { Err(lost()) } else { Ok(()) };
        }
        // Callers' streams may use the table, too.
        self.context().synchronize(self.timeout)?;
        self.read_table(resources, table)?;
        if !edit(&mut self.table) {
            return Ok(());
        }
        let bytes: Vec<u8> = self.table.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let written = self.launcher.tables.write(table * bytes.len(), &bytes);
        written.inspect_err(|_| self.health = Health::NeedsReset)
    }

    fn copy_slots(
        &mut self,
        resources: &Resources,
        layer: usize,
        states: [usize; 2],
        ids: &[i32],
    ) -> Result<()> {
        let copied = slots::copy(self.context(), &resources.buffer, layer, states, ids);
        copied.inspect_err(|_| self.health = Health::NeedsReset)
    }

    fn epoch(&self) -> u64 {
        // The next plan resets the tables first, which raises the epoch.
        self.epoch + u64::from(self.health != Health::Good)
    }

    fn name(&self) -> &'static str {
        if self.context().acl().simulated() { "ascend-sim" } else { "ascend" }
    }

    fn close(self: Box<Self>, resources: Resources) -> Result<()> {
        let context = Arc::clone(self.context());
        // The fields of a tuple are dropped in order.
        drop((self, resources));
        Context::finish(context)
    }
}

impl Drop for Ascend {
    fn drop(&mut self) {
        // Work in callers' streams and replays may still use tables, slots and the pool.
        if let Err(error) = self.options.context.synchronize(self.timeout) {
            self.options.context.record(error);
            // The pool waits again, after the engine's stream was destroyed by force.
            self.pool_use.wait_again_on_drop(self.timeout);
        }
    }
}
