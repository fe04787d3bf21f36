//! The Ascend device: an engine's calls as kernels in a stream.
//!
//! ```text
//! plan, transfer, step               host arrays: copy in, launch, copy out, wait
//! append                             host arrays: the calling thread writes the rows
//! enqueue_*                          device arrays, the caller's stream: launch, nothing else
//! ```
//! If a call of the runtime fails, a table may list a row that was never copied. So the next plan
//! synchronizes the stream and empties every table, and earlier plans are refused. If the
//! synchronization fails, too, the device is lost, and every later call returns that error.

use std::sync::Arc;
use std::time::Duration;

use avsg_device::memory::table_words;

use super::acl::{Context, DeviceMemory, MemorySource, Stream, sys};
use super::arrays::Plans;
use super::launch::Launcher;
use super::options::AscendOptions;
use super::pool::{PoolUse, RegisteredPool};
use super::staging::Staging;
use super::{kernels, launch, readback, sizes, slots, staging};
use crate::backend::{Device, SlotCopy};
use crate::call::{HostCall, Work};
use crate::device_arrays::{DeviceCall, DevicePlan, RawStream};
use crate::plan::Plan;
use crate::resources::{Config, Resources};
use crate::system::array::Array;
use crate::system::reserve;
use crate::{Error, Result, ensure};

/// The state of a device after failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    /// Every call so far succeeded, or the tables were reset since.
    Good,
    /// A call failed, so tables may list rows that were never copied. The next plan must wait for
    /// the stream and reset every table.
    NeedsReset,
    /// The device does not answer.
    Lost,
}

impl Health {
    /// Returns the state after a synchronization that failed with `error`.
    fn after(error: &Error) -> Self {
        if is_refused_in_capture(error) { Self::NeedsReset } else { Self::Lost }
    }

    /// Returns an error, which is that of every call, if the device is lost.
    fn check(self) -> Result<()> {
        ensure!(self != Self::Lost, "device state" is "lost", but "it did not answer after a failure";
            "destroy the engine and make a new one");
        Ok(())
    }
}

/// Returns whether a synchronization was refused because this thread captures a stream, which says
/// nothing about the device.
fn is_refused_in_capture(error: &Error) -> bool {
    matches!(error, Error::Acl { code: sys::ACL_ERROR_RT_STREAM_CAPTURE_MODE_NOT_SUPPORT, .. })
}

/// The device of one engine.
///
/// Fields are dropped in this order: first the stream, by force if it hangs, then the memory that
/// its work uses.
pub(crate) struct Ascend {
    stream: Stream,
    launcher: Launcher,
    staging: Staging,
    plans: Plans,
    /// A copy of the table that was read last.
    table: Array<i32>,
    pool_use: PoolUse,
    options: AscendOptions,
    timeout: i32,
    health: Health,
    /// Number of resets so far; plans of an earlier epoch are refused.
    epoch: u64,
    resources: Arc<Resources>,
}

impl Ascend {
    pub fn new(
        mut config: Config,
        registered: Arc<RegisteredPool>,
        options: &AscendOptions,
    ) -> Result<(Arc<Resources>, Self)> {
        let pool = Arc::clone(registered.pool());
        let rows = pool.geometry.grids(&pool.starts, |at| Some(registered.address(at) as usize));
        let buffer = sizes::check(&config, &pool.geometry, rows)?;
        let (context, timeout) = (&options.context, options.timeout()?);
        config.cores = config.cores.min(context.vector_cores()?.max(1));
        let params = &config.params;
        let kernels = kernels::load(options, params)?;
        let allocator = config.allocator.as_ref();
        let source = MemorySource { context, allocator };
        let tables = DeviceMemory::new(source, sizes::tables(&config)?)?;
        let rule = sizes::rule(&config);
        let rules = (!rule.is_empty()).then(|| DeviceMemory::copied(source, &rule)).transpose()?;
        let addresses = registered.starts().flat_map(u64::to_ne_bytes);
        let count = 8 * registered.starts().len();
        let addresses = reserve::collected("chunk addresses", count, addresses)?;
        let chunks = DeviceMemory::copied(source, &addresses)?;
        let slots = slots::allocate(&config, &buffer, context)?;
        let table = Array::filled("table", table_words(params), 0, allocator)?;
        let resources = Resources::new(config, pool, slots);
        let launcher = {
            let (context, resources) = (Arc::clone(context), Arc::clone(&resources));
            Launcher { kernels, chunks, tables, rules, context, resources }
        };
        let mut ascend = Self {
            stream: Stream::new(context)?,
            launcher,
            staging: Staging::default(),
            plans: Plans::default(),
            table,
            pool_use: PoolUse { pool: registered, second_wait: None },
            options: options.clone(),
            timeout,
            health: Health::NeedsReset,
            epoch: 0,
            resources: Arc::clone(&resources),
        };
        ascend.reset_if_needed()?;
        Ok((resources, ascend))
    }

    /// Empties every table if an earlier call failed.
    fn reset_if_needed(&mut self) -> Result<()> {
        self.health.check()?;
        if self.health == Health::Good {
            return Ok(());
        }
        self.stream.synchronize(self.timeout).inspect_err(|e| self.health = Health::after(e))?;
        self.epoch += 1;
        // SAFETY: this value owns stream and tables, and its drop waits. No other work uses the tables: the
        // stream was synchronized, and callers' streams do not work meanwhile (`Engine::enqueue_plan`).
        unsafe { self.launcher.reset(self.stream.raw())? };
        self.stream.synchronize(self.timeout)?;
        self.health = Health::Good;
        Ok(())
    }

    /// Runs `calls` and, if the caller is to `wait` or a call fails, synchronizes the stream: after a failure the
    /// caller may free memory that its work uses.
    fn run_calls(
        &mut self,
        wait: bool,
        calls: impl FnOnce(&mut Self, RawStream) -> Result<()>,
    ) -> Result<()> {
        let (stream, context) = (self.stream.raw(), Arc::clone(&self.options.context));
        let calls = |this: &mut Self| {
            let _current = context.bind()?;
            calls(this, stream)
        };
        let mut done = calls(self);
        if wait {
            done = done.and_then(|()| self.stream.synchronize(self.timeout));
        }
        if done.is_err() {
            let waited = self.stream.synchronize(self.timeout);
            self.health =
                waited.map_or_else(|error| Health::after(&error), |()| Health::NeedsReset);
        }
        done
    }

    /// Checks that no failure came after a plan: the tables were emptied then, or must be.
    fn check_epoch(&self, plan: &Plan) -> Result<()> {
        self.health.check()?;
        ensure!(self.health != Health::NeedsReset && plan.epoch == self.epoch, "plan" is "stale", but
            "a device failure came after it"; "plan the batch again");
        Ok(())
    }

    /// Puts the launches of a call into the engine's stream, and waits where fresh rows need the staging memory.
    /// `on_device` is the call without layers, over arrays of this device.
    ///
    /// # Safety
    /// The earlier work of the stream on the staging memory is done; the context is bound; the arrays of
    /// `on_device` are kept until the stream is synchronized.
    unsafe fn launch(
        &mut self,
        call: &HostCall<'_>,
        (on_device, out): (DeviceCall<'_>, DevicePlan),
    ) -> Result<()> {
        let one_launch = self.options.one_launch.unwrap_or(true);
        for (index, one) in call.launches().enumerate() {
            if index > 0 && one.fresh.is_some() {
                self.stream.synchronize(self.timeout)?;
            }
            // SAFETY: the work of the layer before is done, this value owns all memory but the arrays of
            // `on_device`, which are kept (`# Safety`), and its drop waits.
            unsafe {
                let stream = self.stream.raw();
                let format = self.resources.pool.format();
                let fresh = self.staging.upload_fresh(format, one.fresh, call.tokens, stream)?;
                let launch = DeviceCall { layers: one.layers, fresh: Some(&fresh), ..on_device };
                self.launcher.run((&launch, out), one_launch, stream)?;
            }
        }
        Ok(())
    }
}

impl Device for Ascend {
    fn check(&self, call: &HostCall<'_>) -> Result<()> {
        if matches!(call.work, Work::Transfer | Work::Append) {
            return Ok(());
        }
        let (config, pool) = (&self.resources.config, &self.resources.pool.geometry);
        launch::check_batch(config, pool, &staging::sizes(&self.resources, call))
    }

    fn prepare(&self, plan: &mut Plan) -> Result<()> {
        // Between calls the engine's stream is idle unless the device needs a reset.
        let source = source(&self.options, &self.resources);
        self.plans.prepare(source, plan, self.health == Health::Good)
    }

    fn run(&mut self, call: &HostCall<'_>, plan: &mut Plan) -> Result<Option<Duration>> {
        let arrays = self.plans.arrays(plan)?;
        let batch = &call.batch;
        self.reset_if_needed()?;
        // No work uses the staging memory: the last call that did has synchronized the stream.
        self.staging.reserve(source(&self.options, &self.resources), &self.resources, call)?;
        plan.begin(batch);
        let done = self.run_calls(true, |this, stream| {
            // SAFETY: `stream` is that of this value, and `run_calls` has bound its context. `arrays` and `plans`
            // keep the arrays until this work is synchronized.
            unsafe {
                let table = this.staging.upload_table(&this.resources, batch, stream)?;
                let on_device = arrays.upload(call, table, stream)?;
                this.launch(call, (on_device, arrays.outputs()))?;
                arrays.download(plan, stream)
            }
        });
        done.inspect_err(|_| plan.clear(None))?;
        // SAFETY: `run_calls` has synchronized the stream, and no call failed.
        unsafe { arrays.copy_to_plan(plan) };
        if let Err(wrong) = readback::check(plan, &self.resources) {
            plan.clear(None);
            // A device that writes wrong words here may have written wrong tables.
            self.health = Health::NeedsReset;
            return Err(wrong);
        }
        plan.epoch = self.epoch;
        plan.finish();
        Ok(None)
    }

    unsafe fn begin(&mut self, _: usize, call: &HostCall<'_>, plan: &mut Plan) -> Result<()> {
        let arrays = self.plans.arrays(plan)?;
        self.check_epoch(plan)?;
        self.staging.reserve(source(&self.options, &self.resources), &self.resources, call)?;
        // The staging memory of fresh rows is free after the call.
        self.run_calls(call.fresh.is_some(), |this, _| {
            // SAFETY: `run_calls` has bound the context. `plans` keeps the arrays as long as the plan, which is
            // kept until the stream was synchronized (`# Safety`).
            unsafe { this.launch(call, (arrays.transfer(plan), arrays.outputs())) }
        })
    }

    /// The runtime is not asked.
    fn is_done(&mut self, _: usize) -> bool {
        true
    }

    fn wait(&mut self, _: usize, _: &[usize], plan: &mut Plan) -> Result<()> {
        self.check_epoch(plan)?;
        self.run_calls(true, |_, _| Ok(()))
    }

    /// The rows are in host memory and go there, so that the device takes no part.
    fn append(&mut self, call: &HostCall<'_>) -> Result<()> {
        self.resources.write_rows(call)
    }

    unsafe fn enqueue(
        &mut self,
        call: &DeviceCall<'_>,
        out: DevicePlan,
        stream: RawStream,
    ) -> Result<()> {
        self.health.check()?;
        let context = Arc::clone(&self.options.context);
        // SAFETY: the stream is alive and of this device (`# Safety`).
        let capturing = || unsafe { context.is_capturing(stream) };
        // After a failure the tables are emptied in a caller's stream, too, but not in a capture:
        // the reset would run at every replay, or never if the graph is destroyed.
        if matches!(call.work, Work::Plan | Work::Step) && self.health == Health::NeedsReset {
            ensure!(!capturing()?, "device state" is "not reset", but
                "tables are reset after a failure, which a capture must not record";
                "plan once outside of a capture, then capture again");
            // SAFETY: stream and engine live until the work is done, and no other stream works (`# Safety`).
            unsafe { self.launcher.reset(stream)? };
            self.epoch += 1;
            self.health = Health::Good;
        }
        let one_launch = self.options.one_launch.unwrap_or(false);
        let done = context.bind().and_then(|_current| {
            // SAFETY: the stream is alive and of this device, and arrays, plan and engine stay valid until
            // the work is done (`# Safety`). The context is bound.
            unsafe { self.launcher.run((call, out), one_launch, stream) }
        });
        // A batch that kernels cannot count is refused before a launch. Captured work has not run, and
        // a capture with a failed call yields no graph.
        let refused = matches!(done, Err(Error::Invalid { .. }));
        if done.is_err() && !refused && !capturing().unwrap_or(false) {
            self.health = Health::NeedsReset;
        }
        done
    }

    fn read_table(&mut self, table: usize) -> Result<&[i32]> {
        let bytes = self.table.bytes_mut();
        // SAFETY: earlier calls waited for their work, or their caller did (`Engine::enqueue_plan`).
        unsafe { self.launcher.tables.read(table * bytes.len(), bytes)? };
        Ok(&self.table)
    }

    fn wait_for_tables(&mut self) -> Result<bool> {
        self.health.check()?;
        if self.health == Health::NeedsReset {
            return Ok(false);
        }
        let waited = self.options.context.synchronize(self.timeout).map(|()| true);
        waited.inspect_err(|error| {
            // Work that failed may have left a table with rows that were never copied.
            if !is_refused_in_capture(error) {
                self.health = Health::NeedsReset;
            }
        })
    }

    fn edit_table(&mut self, table: usize, edit: &mut dyn FnMut(&mut [i32]) -> bool) -> Result<()> {
        let mut edited = self.read_table(table).map(drop);
        if edited.is_ok() && edit(&mut self.table) {
            let bytes = self.table.bytes();
            // SAFETY: `wait_for_tables` has waited for every stream.
            edited = unsafe { self.launcher.tables.write(table * bytes.len(), bytes) };
        }
        // An earlier edit of the same call may have changed another table.
        edited.inspect_err(|_| self.health = Health::NeedsReset)
    }

    fn copy_slots(&mut self, copy: &SlotCopy<'_>) -> Result<()> {
        let copied = slots::copy(&self.options.context, &self.resources.buffer, copy);
        copied.inspect_err(|_| self.health = Health::NeedsReset)
    }

    fn epoch(&self) -> u64 {
        // The next plan resets the tables first, which raises the epoch.
        self.epoch + u64::from(self.health != Health::Good)
    }

    fn name(&self) -> &'static str {
        if self.options.context.acl().simulated() { "ascend-sim" } else { "ascend" }
    }

    fn close(self: Box<Self>) -> Result<()> {
        let context = Arc::clone(&self.options.context);
        drop(self);
        Context::finish(context)
    }
}

/// Returns where the memory of an engine comes from.
fn source<'a>(options: &'a AscendOptions, resources: &'a Resources) -> MemorySource<'a> {
    MemorySource { context: &options.context, allocator: resources.config.allocator.as_ref() }
}

impl Drop for Ascend {
    fn drop(&mut self) {
        // Work in callers' streams and replays may still use tables, slots and the pool.
        if let Err(error) = self.options.context.synchronize(self.timeout) {
            self.options.context.record(error);
            // The pool waits again, after the engine's stream was destroyed by force.
            self.pool_use.second_wait = Some(self.timeout);
        }
    }
}
