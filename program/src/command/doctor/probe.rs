//! Launches of single kernels that are timed by events.

use std::ffi::CStr;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;

use anyhow::Result;
use avsg::ascend::acl::{Acl, Args, Binary, Context, DeviceMemory, Graph, Owned, Stream, sys};

use super::watch::progress;

/// Bytes of the memory that a probe may write.
const OUTPUT: usize = 64 << 10;

/// The probe kernels, memory for their results, and a stream with two events for timing.
pub struct Probe {
    pub context: Arc<Context>,
    pub stream: Stream,
    /// The words that a probe writes.
    pub to: DeviceMemory,
    binary: Arc<Binary>,
    /// Events, which measure the time at which the stream records them.
    start: Owned,
    end: Owned,
    /// Milliseconds that a wait for the stream takes at most.
    pub timeout: i32,
}

/// A launch of a probe kernel.
#[derive(Clone, Copy, Debug)]
pub struct ProbeLaunch<'a> {
    pub name: &'a CStr,
    /// The address of the memory that the kernel reads, 0 if it reads none.
    pub from: u64,
    /// The four words that `probes/common.h` describes: n, depth, bytes and rows.
    pub setting: [i32; 4],
    pub blocks: usize,
}

/// Captured launches of a probe, and their arguments, which are dropped after the graph.
pub type Captured = (Graph, Args);

impl Probe {
    /// Loads the compiled probe kernels of the file `kernels`.
    pub fn new(context: &Arc<Context>, kernels: &Path, timeout: u32) -> Result<Self> {
        Ok(Self {
            context: Arc::clone(context),
            stream: Stream::new(context)?,
            to: DeviceMemory::zeroed(context, OUTPUT)?,
            binary: Binary::load(context, kernels)?,
            start: event(context)?,
            end: event(context)?,
            timeout: i32::try_from(timeout).unwrap_or(i32::MAX),
        })
    }

    /// Runs a probe and returns the microseconds that it took.
    pub fn run(&self, launch: &ProbeLaunch<'_>) -> Result<f64> {
        let mut args = self.args(launch)?;
        self.time(|| self.queue(launch, &mut args))
    }

    /// Captures a number of launches.
    pub fn capture(&self, launch: &ProbeLaunch<'_>, times: usize) -> Result<Captured> {
        let mut args = self.args(launch)?;
        let all = || (0..times).try_for_each(|_| self.queue(launch, &mut args));
        let graph = self.stream.capture(all)?;
        Ok((graph, args))
    }

    /// Replays captured launches and returns the microseconds that they took.
    pub fn replay(&self, (graph, _): &Captured) -> Result<f64> {
        self.time(|| self.stream.replay(graph))
    }

    /// Returns the first `count` words that a probe wrote.
    pub fn words(&self, count: usize) -> Result<Vec<i32>> {
        let mut bytes = vec![0; 4 * count];
        // SAFETY: whoever queued a probe has waited for the stream (`time`).
        unsafe { self.to.read(0, &mut bytes)? };
        Ok(words(&bytes))
    }

    fn args(&self, launch: &ProbeLaunch<'_>) -> Result<Args> {
        progress(&launch.name.to_string_lossy());
        Ok(Args::new(Arc::clone(&self.binary), launch.name, 2, 16)?)
    }

    fn queue(&self, launch: &ProbeLaunch<'_>, args: &mut Args) -> avsg::Result<()> {
        let mut words = [0; 16];
        for (bytes, word) in words.as_chunks_mut::<4>().0.iter_mut().zip(launch.setting) {
            *bytes = word.to_ne_bytes();
        }
        let addresses = [launch.from, self.to.address()];
        let (blocks, stream) = (launch.blocks, self.stream.raw());
        let _current = self.context.bind()?;
        // SAFETY: the probes write at most `OUTPUT` bytes of `to`, and read only rows of `from`, which the
        // caller has allocated or registered. Whoever queues a probe waits for the stream before it drops
        // the arguments or that memory. Several cores may synchronise, so they start together.
        unsafe { args.launch(&addresses, &words, blocks, blocks > 1, stream) }
    }

    /// Runs `work`, which queues kernels in the stream, and returns the microseconds that they took.
    pub fn time(&self, work: impl FnOnce() -> avsg::Result<()>) -> Result<f64> {
        self.record(&self.start)?;
        work()?;
        self.record(&self.end)?;
        self.stream.synchronize(self.timeout)?;
        let (_current, acl, mut ms) = (self.context.bind()?, self.context.acl(), 0f32);
        // SAFETY: the probe owns both events, and the function writes a number to `ms`.
        unsafe { acl.aclrtEventElapsedTime(&mut ms, self.start.at(), self.end.at())? };
        Ok(f64::from(ms) * 1e3)
    }

    /// Records an event after the stream's work so far.
    fn record(&self, event: &Owned) -> avsg::Result<()> {
        let (_current, acl) = (self.context.bind()?, self.context.acl());
        // SAFETY: event and stream are owned by their values.
        unsafe { acl.aclrtRecordEvent(event.at(), self.stream.raw().handle()) }
    }
}

/// Returns bytes as words.
pub fn words(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks().0.iter().map(|word| i32::from_ne_bytes(*word)).collect()
}

fn event(context: &Arc<Context>) -> Result<Owned> {
    let _current = context.bind()?;
    let (mut handle, uses) = (null_mut(), sys::ACL_EVENT_TIME_LINE.unsigned_abs());
    // SAFETY: the function writes a handle to `handle`.
    unsafe { context.acl().aclrtCreateEventExWithFlag(&mut handle, uses)? };
    // SAFETY: the event was created above, and only `Owned` destroys it.
    Ok(unsafe { Owned::new(context, handle, &[Acl::aclrtDestroyEvent; 2]) })
}
