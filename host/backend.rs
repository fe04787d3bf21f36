//! What a device does for an engine. The engine has checked what it is given.

use crate::batch::{Batch, Layer, Step};
use crate::copy::Copier;
use crate::plan::Plan;
use crate::queued::{QueuedStep, RawStream};
use crate::resources::Resources;
use crate::{Error, Result};

/// A device that plays an engine's calls.
pub(crate) trait Device: Send + Sync {
    /// Runs a step's stages into a plan, and waits.
    fn run(&mut self, resources: &Resources, step: &Step<'_>, plan: &mut Plan) -> Result<()>;

    /// Fresh rows to the host pool. Every one has a place there.
    fn append(&mut self, resources: &Resources, batch: &Batch<'_>, layer: Layer<'_>) -> Result<()>;

    /// Puts a step whose arrays are in device memory into a caller's stream.
    ///
    /// # Safety
    /// As for [`crate::engine::Engine::enqueue_plan`].
    unsafe fn enqueue(&mut self, _: &Resources, _: &QueuedStep, _: RawStream) -> Result<()> {
        let limit = "its arrays are host memory and nothing is queued";
        Err(Error::invalid("device", self.name(), limit, "call plan, transfer, step, append"))
    }

    /// What a new plan needs of the device.
    fn prepare(&self, _plan: &mut Plan) -> Result<()> {
        Ok(())
    }

    /// One table's words.
    fn read_table(&mut self, resources: &Resources, state: usize) -> Result<&[i32]>;

    /// A number that is another one for the next plan if a failure has left every table cold.
    fn epoch(&self) -> u64 {
        0
    }

    /// "cpu", "ascend" or "ascend-sim".
    fn name(&self) -> &'static str;

    /// The vector machine, where a CPU plays the cores.
    fn machine(&self) -> Option<&'static str> {
        None
    }

    /// How rows are copied, where a CPU does it.
    fn copier(&self) -> Option<Copier> {
        None
    }

    /// Ends it and its engine's resources, in this order, and reports what went wrong on the way.
    fn close(self: Box<Self>, resources: Resources) -> Result<()> {
        drop((self, resources));
        Ok(())
    }
}
