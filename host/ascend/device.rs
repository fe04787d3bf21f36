//! The Ascend device: the same calls as the CPU device's, as kernels in a stream.
//!
//! ```text
//! plan, transfer, step, append       host arrays: copy in, launch, copy out, wait
//! enqueue_*                          device arrays, the caller's stream: launch, nothing else
//! ```
//! When a call of the runtime fails half-way, a table may say that a slot holds a row that was never
//! copied. So the next plan waits for the stream and starts every table cold; plans from before are
//! refused. If the wait fails as well, the device is lost and every call says so.

use std::sync::{Arc, Mutex, PoisonError, Weak};

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
use super::pool::{Lease, RegisteredPool};
use crate::backend::Device;
use crate::batch::{Batch, Fresh, Layer, Step};
use crate::buffer::{self, DeviceBuffer};
use crate::engine::Engine;
use crate::plan::Plan;
use crate::queued::{DevicePlan, QueuedStep, Work};
use crate::resources::{Config, Resources};
use crate::{Error, Result};

/// What a plan has on the device, as long as the plan lives.
struct PlanArrays {
    plan: Weak<()>,
    arrays: Arc<Arrays>,
}

/// The device of one engine.
///
/// Fields go in this order: the stream, with force if it hangs; then what its work used.
struct Ascend {
    stream: Stream,
    launcher: Launcher,
    fresh: FreshRows,
    /// Inputs of appends; grows to the largest batch that came.
    inputs: Option<Arrays>,
    /// Arrays of plans, some of which may have gone while the stream still wrote them.
    plans: Mutex<Vec<PlanArrays>>,
    table: Vec<i32>,
    lease: Lease,
    options: AscendOptions,
    timeout: i32,
    health: Health,
    /// Failures so far.
    epoch: u64,
}

impl Engine {
    /// The same on an Ascend device. It has as many cores as the device at most.
    ///
    /// # Errors
    /// As for [`Self::new`]; or if the device lacks memory, a kernel cannot be loaded, or the
    /// geometry is none that a device kernel takes.
    pub fn on_ascend(
        config: Config,
        pool: RegisteredPool,
        options: &AscendOptions,
    ) -> Result<Self> {
        let (resources, device) = Ascend::new(config, pool, options)?;
        Ok(Self::with(resources, Box::new(device)))
    }
}

impl buffer::DeviceMemory for DeviceMemory {
    fn address(&self) -> u64 {
        self.address()
    }

    fn bytes(&self) -> usize {
        self.len()
    }

    fn read(&self, from: usize, into: &mut [u8]) -> Result<()> {
        self.read(from, into)
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
        let (context, timeout) = (&options.context, options.timeout()?);
        config.cores = config.cores.min(context.vector_cores()?.max(1));
        let params = &config.params;
        launch::check(&config, &pool)?;
        let kernels = Kernels::load(options, params)?;
        let words = table_words(params);
        let bytes = words.checked_mul(4 * config.states).ok_or_else(|| {
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
        let addresses: Vec<u8> = registered.addresses().flat_map(u64::to_ne_bytes).collect();
        let chunks = DeviceMemory::new(context, addresses.len())?;
        chunks.write(0, &addresses)?;
        let zeroed = |bytes| DeviceMemory::zeroed(context, bytes);
        let resources = Resources::new(config, pool, DeviceBuffer::on_device(&buffer, zeroed)?);
        let launcher = Launcher { kernels, chunks, tables, rules, context: Arc::clone(context) };
        let mut ascend = Self {
            stream: Stream::new(context)?,
            launcher,
            fresh: FreshRows::default(),
            inputs: None,
            plans: Mutex::default(),
            table: vec![0; words],
            lease: Lease::new(registered),
            options: options.clone(),
            timeout,
            health: Health::Shaken,
            epoch: 0,
        };
        ascend.ready(&resources)?;
        Ok((resources, ascend))
    }

    fn context(&self) -> &Arc<Context> {
        &self.options.context
    }

    /// Makes tables and rows agree again after a failure.
    fn ready(&mut self, resources: &Resources) -> Result<()> {
        match self.health {
            Health::Good => return Ok(()),
            Health::Lost => return Err(lost()),
            Health::Shaken => {}
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

    /// Runs calls of which a failed one leaves tables and rows in doubt. The stream is waited for
    /// even then, so that nobody writes what the caller frees.
    fn attempt(&mut self, calls: impl FnOnce(&mut Self, RawStream) -> Result<()>) -> Result<()> {
        let (stream, context) = (self.stream.raw(), Arc::clone(self.context()));
        let calls = |this: &mut Self| {
            let _current = context.bind()?;
            calls(this, stream)
        };
        let done = calls(self).and_then(|()| self.stream.synchronize(self.timeout));
        if done.is_err() {
            let waited = self.stream.synchronize(self.timeout);
            self.health = waited.map_or_else(|error| Health::after(&error), |()| Health::Shaken);
        }
        done
    }

    /// A plan's arrays.
    fn arrays(&mut self, plan: &Plan) -> Result<Arc<Arrays>> {
        let plans = self.plans.get_mut().unwrap_or_else(PoisonError::into_inner);
        let known = plans.iter().find(|known| known.plan.as_ptr() == Arc::as_ptr(&plan.alive));
        known.map(|known| Arc::clone(&known.arrays)).ok_or_else(|| {
            let limit = "it was made for another device";
            Error::invalid("plan", "foreign", limit, "make it with this engine's new_plan")
        })
    }

    /// Refuses a plan whose rows the tables may no longer name.
    fn refuse_stale(&self, plan: &Plan) -> Result<()> {
        if self.health == Health::Lost {
            return Err(lost());
        }
        if self.health == Health::Shaken || plan.epoch != self.epoch {
            let limit = "a device failure came after it";
            return Err(Error::invalid("plan", "stale", limit, "plan the batch again"));
        }
        Ok(())
    }

    /// Puts fresh rows into the stream.
    ///
    /// # Safety
    /// The stream's earlier work is done.
    unsafe fn fresh(&mut self, fresh: Option<&Fresh<'_>>, stream: RawStream) -> Result<[u64; 2]> {
        match fresh {
            // SAFETY: the contract; the rows live as long as this, whose drop waits.
            Some(fresh) => unsafe {
                self.fresh.upload(&self.options.context, fresh.segments, stream)
            },
            None => Ok([0; 2]),
        }
    }
}

impl Device for Ascend {
    fn prepare(&self, plan: &mut Plan) -> Result<()> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if self.health == Health::Good {
            // Between calls a good device's own stream is idle.
            plans.retain(|known| known.plan.strong_count() > 0);
        }
        let arrays = Arrays::new(&self.options.context, plan.k, plan.max_rows, plan.max_requests)?;
        plan.device = Some(arrays.outputs());
        plans.push(PlanArrays { plan: Arc::downgrade(&plan.alive), arrays: Arc::new(arrays) });
        Ok(())
    }

    fn run(&mut self, resources: &Resources, step: &Step<'_>, plan: &mut Plan) -> Result<()> {
        let arrays = self.arrays(plan)?;
        let work = match step {
            Step::Plan(_) => Work::Plan,
            Step::Transfer(_) => Work::Transfer,
            Step::Both(..) => Work::Both,
        };
        match step.batch() {
            Some(batch) => {
                self.ready(resources)?;
                plan.begin(batch);
            }
            None => self.refuse_stale(plan)?,
        }
        let one_launch = self.options.one_launch.unwrap_or(true);
        let done = self.attempt(|this, stream| {
            let page = resources.config.params.page as usize;
            let layer = step.layer();
            // SAFETY: the last call waited for the stream; the arrays are this engine's, and `plans`
            // keeps them until it has waited for this work.
            unsafe {
                let batch = match step.batch() {
                    Some(batch) => arrays.upload(batch, page, stream)?,
                    None => arrays.planned(plan),
                };
                let fresh = this.fresh(layer.and_then(|layer| layer.fresh), stream)?;
                let layer = layer.map_or(0, |layer| layer.number);
                let step = QueuedStep { work, batch, out: arrays.outputs(), layer, fresh };
                this.launcher.run(resources, &step, one_launch, stream)?;
                if work == Work::Transfer { Ok(()) } else { arrays.download(plan, stream) }
            }
        });
        if step.batch().is_none() {
            return done;
        }
        done.inspect_err(|_| plan.forget())?;
        arrays.give(plan);
        plan.epoch = self.epoch;
        plan.finish();
        Ok(())
    }

    fn append(&mut self, resources: &Resources, batch: &Batch<'_>, layer: Layer<'_>) -> Result<()> {
        match self.health {
            Health::Good => {}
            Health::Lost => return Err(lost()),
            // Its staging may still be on the way.
            Health::Shaken => self.stream.synchronize(self.timeout)?,
        }
        let (requests, rows) = (batch.requests(), batch.rows());
        let fits = |a: &Arrays| a.rows >= rows && a.requests >= requests;
        if !self.inputs.as_ref().is_some_and(fits) {
            let (rows, requests) = (rows.next_power_of_two(), requests.next_power_of_two());
            self.inputs = None;
            self.inputs = Some(Arrays::new(&self.options.context, 0, rows, requests)?);
        }
        // An append has no ids.
        let batch = Batch { ids: &[], k: resources.config.params.k as usize, ..*batch };
        self.attempt(|this, stream| {
            let Some(inputs) = &this.inputs else { return Ok(()) };
            let page = resources.config.params.page as usize;
            // SAFETY: the last call waited for the stream; the inputs live as long as this.
            unsafe {
                let batch = inputs.upload(&batch, page, stream)?;
                let fresh = this.fresh(layer.fresh, stream)?;
                let (work, out) = (Work::Append, DevicePlan::default());
                let step = QueuedStep { work, batch, out, layer: layer.number, fresh };
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
        let recorded = || {
            let _current = context.bind()?;
            // SAFETY: the contract.
            unsafe { capture::under_way(context.acl(), stream.handle()) }
        };
        let plans = matches!(step.work, Work::Plan | Work::Both);
        // After a failure a caller's stream starts the tables cold, too, but not in a recording: there the
        // reset would run at every replay, or never, if the recording is thrown away.
        if plans && self.health == Health::Shaken {
            if recorded()? {
                let limit = "tables start cold after a failure, which a recording cannot hold";
                let remedy = "plan once outside of a capture, then capture again";
                return Err(Error::invalid("device state", "shaken", limit, remedy));
            }
            self.launcher.reset(resources, stream)?;
            self.epoch += 1;
            self.health = Health::Good;
        }
        let one_launch = self.options.one_launch.unwrap_or(false);
        let done = context.bind().and_then(|_current| {
            // SAFETY: the contract.
            unsafe { self.launcher.run(resources, step, one_launch, stream) }
        });
        // Nothing that is recorded has run yet, and this recording never will.
        if done.is_err() && !recorded().unwrap_or(false) {
            self.health = Health::Shaken;
        }
        done
    }

    fn read_table(&mut self, resources: &Resources, state: usize) -> Result<&[i32]> {
        let bytes = 4 * table_words(&resources.config.params);
        let mut read = vec![0; bytes];
        self.launcher.tables.read(state * bytes, &mut read)?;
        for (word, bytes) in self.table.iter_mut().zip(read.as_chunks::<4>().0) {
            *word = i32::from_ne_bytes(*bytes);
        }
        Ok(&self.table)
    }

    fn epoch(&self) -> u64 {
        // Whatever comes next makes it good first.
        self.epoch + u64::from(self.health != Health::Good)
    }

    fn name(&self) -> &'static str {
        if self.context().acl().simulated() { "ascend-sim" } else { "ascend" }
    }

    fn close(self: Box<Self>, resources: Resources) -> Result<()> {
        let context = Arc::clone(self.context());
        // A tuple's fields are dropped in order.
        drop((self, resources));
        Context::finish(context)
    }
}

impl Drop for Ascend {
    fn drop(&mut self) {
        // Callers' streams and replays may still use tables, slots and the pool.
        if let Err(error) = self.options.context.settle(self.timeout) {
            self.options.context.record(error);
            // Asked again when our own stream was destroyed by force.
            self.lease.doubt(self.timeout);
        }
    }
}
