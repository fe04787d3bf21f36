//! The tasks of a stream.

use crate::binary::Code;

/// A task of a stream.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// Copies bytes. Both addresses are checked when the task is enqueued and when it runs.
    Copy { to: u64, from: u64, bytes: usize },
    /// Runs a kernel.
    Launch(QueuedLaunch),
    /// Marks an event's n-th record as done.
    Record { event: u64, nth: u64 },
}

impl Task {
    /// Returns whether the task uses a byte of `at..at + len`. For a kernel only the targets of its
    /// arguments are tested; it may access any registered host memory besides.
    pub fn touches(&self, at: u64, len: usize) -> bool {
        let overlap = |from: u64, n: usize| from < at + len as u64 && at < from + n as u64;
        match self {
            Self::Copy { to, from, bytes } => overlap(*to, *bytes) || overlap(*from, *bytes),
            Self::Launch(launch) => launch.args.iter().any(|&arg| overlap(arg, 1)),
            Self::Record { .. } => false,
        }
    }

    /// Returns whether the task runs a kernel of a binary.
    pub fn runs(&self, binary: u64) -> bool {
        matches!(self, Self::Launch(launch) if launch.binary == binary)
    }
}

/// A queued kernel with the arguments that were copied when it was enqueued.
#[derive(Clone, Debug)]
pub(crate) struct QueuedLaunch {
    pub binary: u64,
    pub name: String,
    pub code: Code,
    pub device: u32,
    pub args: Vec<u64>,
    /// Placeholder buffers, each with the index of the argument that points to it.
    pub buffers: Vec<(usize, Vec<u8>)>,
    pub blocks: u32,
    /// Whether the kernel starts only when all of its cores are idle.
    pub batch_mode: bool,
}
