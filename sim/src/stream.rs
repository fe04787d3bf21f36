//! Streams, events and contexts as records.

use std::collections::VecDeque;
use std::thread::ThreadId;

use crate::fault::Fail;
use crate::task::Task;

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    pub device: u32,
    /// Whether it is the device's shared one.
    pub shared: bool,
    /// The failure that stopped it, where streams stop on failure.
    pub stopped: Option<Fail>,
}

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub context: u64,
    pub queue: VecDeque<Task>,
    /// The first failure of its work; every wait reports it.
    pub failed: Option<Fail>,
    /// Its first task never ends.
    pub hung: bool,
    /// Whether a failure stops the whole context.
    pub stops: bool,
    pub capture: Option<Capture>,
    /// Vector cores that its kernels may have, if that was limited.
    pub cores: Option<u32>,
}

/// A recording under way.
#[derive(Debug)]
pub(crate) struct Capture {
    pub thread: ThreadId,
    pub mode: i32,
    pub tasks: Vec<Task>,
}

/// An event.
#[derive(Debug, Default)]
pub(crate) struct Event {
    pub flags: u32,
    /// How often it was recorded, and how far streams have come with that.
    pub recorded: u64,
    pub done: u64,
    /// The stream of the latest record, and when it happened, in simulated nanoseconds.
    pub stream: u64,
    pub at: u64,
    /// Whether a wait has seen the latest record.
    pub synced: bool,
}
