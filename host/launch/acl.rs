//! The Ascend device: the same calls as the CPU device's, as kernels in a stream.
//!
//! ```text
//! plan, transfer, step, append       host arrays: copy in, launch, copy out, wait
//! enqueue_*                          device arrays, the caller's stream: launch, nothing else
//! ```
//! When a call of the runtime fails half-way, a table may say that a slot holds a row that was never
//! copied. So the next plan waits for the stream and starts every table cold; plans from before are
//! refused. If the wait fails as well, the device is lost and every call says so.

mod arrays;
mod kernels;
mod options;
mod pool;
mod queue;
#[cfg(feature = "ascend-sim")]
pub mod simulated;

use std::sync::{Arc, Mutex, PoisonError};

use avsg_device::params::Lifetime;
use avsg_device::stage_two::Strategy;
use avsg_device::tiling::rules;

use crate::acl::owned::{Context, DeviceMemory, RawStream, Stream};
use crate::acl::sys;
use crate::buffer::DeviceBuffer;
use crate::engine::core::Core;
use crate::engine::{Batch, Config, Device, Fresh};
use crate::plan::Plan;
use crate::{Error, Result};
use arrays::FreshRows;
use avsg_device::machine::memory::table_words;
use kernels::Kernels;

pub(crate) use arrays::Arrays;
pub use options::AscendOptions;
use pool::Lease;
pub use pool::RegisteredPool;

/// How far the device is to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Good,
    /// Something failed: tables and rows may disagree.
    Shaken,
    /// It does not answer.
    Lost,
}

impl Health {
    /// What is known after a wait that failed: of one that was refused because this thread captures a
    /// stream, nothing new.
    fn after(error: &Error) -> Self {
        match error {
            Error::Acl { code: sys::ACL_ERROR_RT_STREAM_CAPTURE_MODE_NOT_SUPPORT, .. } => {
                Self::Shaken
            }
            _ => Self::Lost,
        }
    }
}

/// The device of one engine.
///
/// Fields go in this order: the stream, with force if it hangs; then what its work used.
pub(crate) struct Ascend {
    stream: Stream,
    kernels: Kernels,
    fresh: FreshRows,
    /// Inputs of appends; grows to the largest batch that came.
    inputs: Option<Arrays>,
    /// Arrays of plans that may have gone while the stream still wrote them.
    plans: Mutex<Vec<Arc<Arrays>>>,
    chunks: DeviceMemory,
    tables: DeviceMemory,
    rules: Option<DeviceMemory>,
    table: Vec<i32>,
    lease: Lease,
    options: AscendOptions,
    timeout: i32,
    health: Health,
    /// Failures so far.
    epoch: u64,
}

impl Ascend {
    pub fn new(
        mut config: Config,
        registered: RegisteredPool,
        options: &AscendOptions,
    ) -> Result<(Core, Self)> {
        let pool = Arc::clone(&registered.pool);
        let buffer = Core::check(&config, &pool)?;
        if config.strategy != Strategy::Balanced {
            let value = format!("{:?}", config.strategy).to_lowercase();
            let limit = "device kernels spread misses evenly over cores";
            return Err(Error::invalid("strategy", value, limit, "choose balanced"));
        }
        let (context, timeout) = (&options.context, options.timeout()?);
        config.cores = config.cores.min(context.vector_cores()?.max(1));
        let params = &config.params;
        queue::check(&config, &pool)?;
        let kernels = Kernels::load(options)?;
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
        let core = Core::new(config, pool, DeviceBuffer::on_device(&buffer, context)?);
        let mut ascend = Self {
            stream: Stream::new(context)?,
            kernels,
            fresh: FreshRows::default(),
            inputs: None,
            plans: Mutex::default(),
            chunks,
            tables,
            rules,
            table: vec![0; words],
            lease: Lease::new(registered),
            options: options.clone(),
            timeout,
            health: Health::Shaken,
            epoch: 0,
        };
        ascend.ready(&core)?;
        Ok((core, ascend))
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.options.context
    }

    /// Makes tables and rows agree again after a failure.
    fn ready(&mut self, core: &Core) -> Result<()> {
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
        let stream = self.stream.raw();
        self.reset(core, stream)?;
        self.stream.synchronize(self.timeout)?;
        self.health = Health::Good;
        Ok(())
    }

    /// Runs calls of which a failed one leaves tables and rows in doubt. The stream is waited for
    /// even then, so that nobody writes what the caller frees.
    fn attempt(&mut self, calls: impl FnOnce(&mut Self, RawStream) -> Result<()>) -> Result<()> {
        let stream = self.stream.raw();
        let done = calls(self, stream).and_then(|()| self.stream.synchronize(self.timeout));
        if done.is_err() {
            let waited = self.stream.synchronize(self.timeout);
            self.health = waited.map_or_else(|error| Health::after(&error), |()| Health::Shaken);
        }
        done
    }

    fn arrays(plan: &Plan) -> Result<Arc<Arrays>> {
        plan.arrays.clone().ok_or_else(|| {
            let limit = "it was made for another device";
            Error::invalid("plan", "foreign", limit, "make it with this engine's new_plan")
        })
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

    fn one_launch(&self, own: bool) -> bool {
        self.options.one_launch.unwrap_or(own)
    }
}

fn lost() -> Error {
    let limit = "it did not answer after a failure";
    Error::invalid("device state", "lost", limit, "destroy the engine and make a new one")
}

impl Device for Ascend {
    fn prepare(&self, plan: &mut Plan) -> Result<()> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if self.health == Health::Good {
            // Between calls a good device's own stream is idle.
            plans.retain(|arrays| Arc::strong_count(arrays) > 1);
        }
        let arrays = Arrays::new(&self.options.context, plan.k, plan.max_rows, plan.max_requests)?;
        let arrays = Arc::new(arrays);
        plans.push(Arc::clone(&arrays));
        plan.arrays = Some(arrays);
        Ok(())
    }

    fn plan(&mut self, core: &Core, batch: &Batch<'_>, plan: &mut Plan) -> Result<()> {
        let arrays = Self::arrays(plan)?;
        self.ready(core)?;
        plan.begin(batch);
        self.attempt(|this, stream| {
            let context = Arc::clone(this.context());
            let _current = context.bind()?;
            let page = core.config.params.page as usize;
            // SAFETY: the last call waited for the stream; the arrays are this engine's, and `plans`
            // keeps them until it has waited for this work.
            unsafe {
                let batch = arrays.upload(batch, page, stream)?;
                this.launch_plan(core, &batch, &arrays.outputs(), stream)?;
                arrays.download(plan, stream)
            }
        })
        .inspect_err(|_| plan.forget())?;
        arrays.give(plan);
        plan.epoch = self.epoch;
        plan.finish();
        Ok(())
    }

    fn transfer(
        &mut self,
        core: &Core,
        plan: &mut Plan,
        layer: usize,
        fresh: Option<&Fresh<'_>>,
    ) -> Result<()> {
        let arrays = Self::arrays(plan)?;
        if self.health == Health::Lost {
            return Err(lost());
        }
        if self.health == Health::Shaken || plan.epoch != self.epoch {
            let limit = "a device failure came after it";
            return Err(Error::invalid("plan", "stale", limit, "plan the batch again"));
        }
        self.attempt(|this, stream| {
            let context = Arc::clone(this.context());
            let _current = context.bind()?;
            // SAFETY: as for `plan`.
            unsafe {
                let fresh = this.fresh(fresh, stream)?;
                let batch = arrays.planned(plan);
                this.launch_transfer(core, &batch, &arrays.outputs(), layer, fresh, stream)
            }
        })
    }

    fn step(
        &mut self,
        core: &Core,
        batch: &Batch<'_>,
        plan: &mut Plan,
        layer: usize,
        fresh: Option<&Fresh<'_>>,
    ) -> Result<()> {
        let arrays = Self::arrays(plan)?;
        self.ready(core)?;
        plan.begin(batch);
        self.attempt(|this, stream| {
            let context = Arc::clone(this.context());
            let _current = context.bind()?;
            let page = core.config.params.page as usize;
            // SAFETY: as for `plan`.
            unsafe {
                let batch = arrays.upload(batch, page, stream)?;
                let (fresh, out) = (this.fresh(fresh, stream)?, arrays.outputs());
                if this.one_launch(true) {
                    this.launch_step(core, &batch, &out, layer, fresh, stream)?;
                } else {
                    this.launch_plan(core, &batch, &out, stream)?;
                    this.launch_transfer(core, &batch, &out, layer, fresh, stream)?;
                }
                arrays.download(plan, stream)
            }
        })
        .inspect_err(|_| plan.forget())?;
        arrays.give(plan);
        plan.epoch = self.epoch;
        plan.finish();
        Ok(())
    }

    fn append(
        &mut self,
        core: &Core,
        batch: &Batch<'_>,
        layer: usize,
        fresh: &Fresh<'_>,
    ) -> Result<()> {
        match self.health {
            Health::Good => {}
            Health::Lost => return Err(lost()),
            // Its staging may still be on the way.
            Health::Shaken => self.stream.synchronize(self.timeout)?,
        }
        let (requests, rows) = (batch.state.len(), batch.cu_q[batch.state.len()] as usize);
        let fits = |a: &Arrays| a.rows >= rows && a.requests >= requests;
        if !self.inputs.as_ref().is_some_and(fits) {
            let (rows, requests) = (rows.next_power_of_two(), requests.next_power_of_two());
            self.inputs = None;
            self.inputs = Some(Arrays::new(&self.options.context, 0, rows, requests)?);
        }
        // An append has no ids.
        let batch = Batch { ids: &[], k: core.config.params.k as usize, ..*batch };
        self.attempt(|this, stream| {
            let context = Arc::clone(this.context());
            let _current = context.bind()?;
            let Some(inputs) = &this.inputs else { return Ok(()) };
            let page = core.config.params.page as usize;
            // SAFETY: the last call waited for the stream; the inputs live as long as this.
            unsafe {
                let batch = inputs.upload(&batch, page, stream)?;
                let fresh = this.fresh(Some(fresh), stream)?;
                this.launch_append(core, &batch, layer, fresh, stream)
            }
        })
    }

    fn read_table(&mut self, core: &Core, state: usize) -> Result<&[i32]> {
        let bytes = 4 * table_words(&core.config.params);
        let mut read = vec![0; bytes];
        self.tables.read(state * bytes, &mut read)?;
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

    fn ascend(&mut self) -> Option<&mut Ascend> {
        Some(self)
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
