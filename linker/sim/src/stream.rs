//! The state of streams and events.

use std::collections::VecDeque;
use std::thread::ThreadId;

use crate::fault::CallFailure;
use crate::task::Task;

/// A stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub context: u64,
    pub queue: VecDeque<Task>,
    /// The first failure of the work; every wait reports it.
    pub failed: Option<CallFailure>,
    /// Whether the first task never ends.
    pub hung: bool,
    pub capture: Option<Capture>,
    /// Limit of the vector cores for its kernels, if one was set.
    pub cores: Option<u32>,
}

/// A capture in progress.
#[derive(Debug)]
pub(crate) struct Capture {
    pub thread: ThreadId,
    pub mode: i32,
    pub tasks: Vec<Task>,
}

/// An event.
#[derive(Debug, Default)]
pub(crate) struct Event {
    /// Number of records enqueued.
    pub recorded: u64,
    /// Number of the latest record that is done.
    pub done: u64,
    /// Stream of the latest record.
    pub stream: u64,
    /// The tasks that had begun at the latest record.
    pub at: u32,
}
