//! The interface of a device to an engine. The engine checks all arguments first.

use std::time::Duration;

use crate::call::HostCall;
use crate::copy::Copier;
use crate::device_arrays::{DeviceCall, DevicePlan, RawStream};
use crate::plan::Plan;
use crate::{Result, invalid};

/// How an engine's calls run on a CPU.
#[derive(Clone, Copy, Debug)]
pub struct CpuChoices {
    /// The name of the vector machine.
    pub machine: &'static str,
    /// The number of threads that run a launch, the caller's included.
    pub threads: usize,
    /// How rows are copied.
    pub copier: Copier,
}

/// Slots that are copied from one state to the same slots of others, in each of some layers.
#[derive(Clone, Copy)]
pub(crate) struct SlotCopy<'a> {
    pub layers: &'a [usize],
    pub from: usize,
    /// Distinct states, without `from`.
    pub to: &'a [i32],
    pub slots: &'a [u32],
}

/// A device that carries out the calls of one engine, whose resources it shares.
pub(crate) trait Device: Send + Sync {
    /// Returns an error if the kernels cannot take the batch of a call.
    fn check(&self, _: &HostCall<'_>) -> Result<()> {
        Ok(())
    }

    /// Runs a plan or a step, writes the results into `plan`, and waits. Returns how long Stage One took if the call has both stages and the device can tell them apart.
    fn run(&mut self, call: &HostCall<'_>, plan: &mut Plan) -> Result<Option<Duration>>;

    /// Starts a transfer at a place below [`Config::transfers`](crate::resources::Config::transfers) at which none is
    /// under way. Its fresh rows are not used afterwards. After an error it is not under way.
    ///
    /// # Safety
    /// The plan's arrays and the list of layers stay where they are, and are not written, until
    /// [`Self::wait`] was called for this place or the device was dropped.
    unsafe fn begin(&mut self, place: usize, call: &HostCall<'_>, plan: &mut Plan) -> Result<()>;

    /// Returns whether [`Self::wait`] has nothing to wait for that [`Self::begin`] has started.
    fn is_done(&mut self, place: usize) -> bool;

    /// Ends the transfer at a place, which was begun with this plan and these layers.
    fn wait(&mut self, place: usize, layers: &[usize], plan: &mut Plan) -> Result<()>;

    /// Writes the fresh rows of some layers to the host pool, where every one has a row, and waits.
    fn append(&mut self, call: &HostCall<'_>) -> Result<()>;

    /// Puts a call for at most one layer, whose arrays and outputs are in device memory, into a caller's stream.
    ///
    /// # Safety
    /// As for [`crate::engine::Engine::enqueue_plan`].
    unsafe fn enqueue(&mut self, _: &DeviceCall<'_>, _: DevicePlan, _: RawStream) -> Result<()> {
        Err(invalid!("device" is self.name(), but "it has host arrays and no streams";
            "call plan, transfer, step, append"))
    }

    /// Allocates the device memory of a new plan.
    fn prepare(&self, plan: &mut Plan) -> Result<()>;

    /// Returns the words of a table, whose number is that of [`Config::table`](crate::resources::Config).
    fn read_table(&mut self, table: usize) -> Result<&[i32]>;

    /// Waits for all work, which callers' streams may do, too. Returns false if the next plan is
    /// going to empty every table; then there is nothing to edit.
    fn wait_for_tables(&mut self) -> Result<bool>;

    /// Calls `edit` with the words of a table, after [`Self::wait_for_tables`] returned true. If
    /// `edit` returns true, the words are those of the table from then on. After an error the next
    /// plan empties every table.
    fn edit_table(&mut self, table: usize, edit: &mut dyn FnMut(&mut [i32]) -> bool) -> Result<()>;

    /// Copies slots from one state to others, and waits. After an error the next plan empties every
    /// table.
    fn copy_slots(&mut self, copy: &SlotCopy<'_>) -> Result<()>;

    /// Returns the epoch of the next plan, which a failure that leaves every table cold raises.
    fn epoch(&self) -> u64 {
        0
    }

    /// Returns how long the transfers since the last call of this method waited for reads of a file.
    fn take_read_wait(&mut self) -> Duration {
        Duration::ZERO
    }

    /// Returns "cpu", "ascend" or "ascend-sim".
    fn name(&self) -> &'static str;

    /// Returns how a CPU runs and copies; `None` on a device that does both itself.
    fn cpu(&self) -> Option<CpuChoices> {
        None
    }

    /// Drops the device and its engine's resources, and returns the oldest error of the releases.
    fn close(self: Box<Self>) -> Result<()> {
        drop(self);
        Ok(())
    }
}
