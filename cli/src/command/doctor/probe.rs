//! Launches of single kernels that are timed by events.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use avsg::ascend::acl::{Args, Binary, Context, DeviceMemory, Event, Stream};

use super::watch::progress;

/// The probe kernels, and a stream with two events for timing.
pub struct Probe {
    pub context: Arc<Context>,
    pub stream: Stream,
    binary: Arc<Binary>,
    start: Event,
    end: Event,
    /// Milliseconds that a wait for the stream takes at most.
    pub timeout: i32,
}

impl Probe {
    /// Loads the compiled probe kernels of the file `kernels`.
    pub fn new(context: &Arc<Context>, kernels: &Path, timeout: u32) -> Result<Self> {
        Ok(Self {
            context: Arc::clone(context),
            stream: Stream::new(context)?,
            binary: Binary::load(context, kernels)?,
            start: Event::timing(context)?,
            end: Event::timing(context)?,
            timeout: i32::try_from(timeout).unwrap_or(i32::MAX),
        })
    }

    /// Runs a probe kernel on `blocks` blocks and returns the microseconds that it took. `setting` is
    /// the four words that `probes.cpp` describes.
    pub fn run(
        &self,
        name: &std::ffi::CStr,
        from: u64,
        to: &DeviceMemory,
        setting: [i32; 4],
        blocks: usize,
    ) -> Result<f64> {
        let batch = name == c"avsg_probe_sync";
        progress(&name.to_string_lossy());
        let mut args = Args::new(Arc::clone(&self.binary), name, 2, 16)?;
        let mut words = [0; 16];
        for (bytes, word) in words.as_chunks_mut::<4>().0.iter_mut().zip(setting) {
            *bytes = word.to_ne_bytes();
        }
        let addresses = [from, to.address()];
        let current = self.context.bind()?;
        self.start.record(self.stream.raw())?;
        // SAFETY: the probes write at most 256 bytes of `to`, they read only rows of `from` that the
        // caller has registered, and the call waits for the stream below.
        unsafe { args.launch(&addresses, &words, blocks, batch, self.stream.raw())? };
        self.end.record(self.stream.raw())?;
        drop(current);
        self.stream.synchronize(self.timeout)?;
        Ok(f64::from(self.end.since(&self.start)?) * 1e3)
    }

    /// Returns the least result of five runs.
    pub fn best(&self, mut run: impl FnMut(&Self) -> Result<f64>) -> Result<f64> {
        (0..5).try_fold(f64::MAX, |best, _| Ok(run(self)?.min(best)))
    }

    /// Runs `work`, which queues kernels in the stream, and returns the microseconds that they took.
    pub fn time(&self, work: impl FnOnce() -> Result<()>) -> Result<f64> {
        self.start.record(self.stream.raw())?;
        work()?;
        self.end.record(self.stream.raw())?;
        self.stream.synchronize(self.timeout)?;
        Ok(f64::from(self.end.since(&self.start)?) * 1e3)
    }
}
