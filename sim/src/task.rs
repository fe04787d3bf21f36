//! What a stream does, one thing after the other.

use crate::binary::Code;

/// One thing.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// Copies bytes; both addresses were checked when it was queued, and are again when it runs.
    Copy { to: u64, from: u64, bytes: usize },
    /// Sets bytes of device memory.
    Set { at: u64, value: u8, bytes: usize },
    /// Runs a kernel.
    Launch(Launch),
    /// Marks an event's n-th record as done.
    Record { event: u64, nth: u64 },
    /// Waits for an event's n-th record.
    Wait { event: u64, nth: u64 },
}

impl Task {
    /// Whether it uses a byte of `at..at + len`. A kernel uses what its arguments point to; what it
    /// reaches beyond them, only registered host memory, is asked for by [`Self::is_launch`].
    pub fn touches(&self, at: u64, len: usize) -> bool {
        let overlap = |from: u64, n: usize| from < at + len as u64 && at < from + n as u64;
        match self {
            Self::Copy { to, from, bytes } => overlap(*to, *bytes) || overlap(*from, *bytes),
            Self::Set { at, bytes, .. } => overlap(*at, *bytes),
            Self::Launch(launch) => launch.args.iter().any(|&arg| overlap(arg, 1)),
            Self::Record { .. } | Self::Wait { .. } => false,
        }
    }

    pub fn is_launch(&self) -> bool {
        matches!(self, Self::Launch(_))
    }
}

/// A launch is a queued kernel with its arguments, which were copied when it was queued.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub name: String,
    pub code: Code,
    pub device: u32,
    pub args: Vec<u64>,
    /// These small buffers travel with the arguments, each with the index of the one that points to it.
    pub carried: Vec<(usize, Vec<u8>)>,
    pub blocks: u32,
    /// The flag says whether the launch waits until all its cores are idle.
    pub batch: bool,
}
