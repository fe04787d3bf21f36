//! The scheduler: chooses the next stream and runs its task.

use crate::fault::{Outcome, fail};
use crate::launch::{self, End};
use crate::machine::Runtime;
use crate::stream::Stream;
use crate::sys;
use crate::task::Task;

/// The streams whose queues a call waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WaitGoal {
    Stream(u64),
    /// All streams of this device.
    Device(u32),
}

impl WaitGoal {
    fn streams(self, machine: &Runtime) -> impl Iterator<Item = &Stream> {
        let own = move |&(handle, s): &(u64, &Stream)| match self {
            Self::Stream(stream) => handle == stream,
            Self::Device(device) => machine.contexts.get(s.context).is_ok_and(|&of| of == device),
        };
        machine.streams.iter().filter(own).map(|(_, s)| s)
    }
}

/// Runs tasks of randomly chosen streams until the queues of `goal` are empty, and returns the failure of
/// that work, if there is one. If no stream can continue, a wait with a time limit fails, and a wait
/// without one fails with the code of the device's watchdog.
pub(crate) fn run_until(machine: &mut Runtime, goal: WaitGoal, timeout_ms: i32) -> Outcome {
    while goal.streams(machine).any(|s| !s.queue.is_empty()) {
        if !run_one(machine) {
            if timeout_ms >= 0 {
                let text = format!("the work is not complete after {timeout_ms} ms");
                return fail(sys::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, text);
            }
            let text = "the watchdog stopped a kernel that hangs";
            return fail(sys::ACL_ERROR_RT_VECTOR_CORE_TIMEOUT, text);
        }
    }
    goal.streams(machine).find_map(|s| s.failed.clone()).map_or(Ok(()), Err)
}

/// Runs up to three tasks, without a call that waits for them.
pub(crate) fn run_some(machine: &mut Runtime) {
    for _ in 0..1 + machine.draw() % 3 {
        if !run_one(machine) {
            return;
        }
    }
}

/// Runs one task of a randomly chosen stream. Returns false if no stream can continue.
fn run_one(machine: &mut Runtime) -> bool {
    let ready: Vec<u64> = machine
        .streams
        .iter()
        .filter(|(_, s)| !s.hung && !s.queue.is_empty())
        .map(|(handle, _)| handle)
        .collect();
    if ready.is_empty() {
        return false;
    }
    let stream = ready[(machine.draw() % ready.len() as u64) as usize];
    if deadlocks(machine, &ready, stream) {
        for stream in ready {
            if sync_all_blocks(machine, stream).is_some()
                && let Ok(s) = machine.streams.get_mut(stream)
            {
                s.hung = true;
            }
        }
        return true;
    }
    let Ok(Some(task)) = machine.streams.get_mut(stream).map(|s| s.queue.pop_front()) else {
        return false;
    };
    let done = run(machine, stream, &task);
    if let Ok(s) = machine.streams.get_mut(stream) {
        match done {
            Ok(true) => {}
            Ok(false) => {
                s.queue.push_front(task);
                s.hung = true;
            }
            // The later work of the stream still runs, which is the worse case for code that reads
            // its results.
            Err(failure) => drop(s.failed.get_or_insert(failure)),
        }
    }
    true
}

/// Returns the number of blocks of a stream's next kernel if its blocks wait for each other and it
/// is not in batch mode.
fn sync_all_blocks(machine: &Runtime, stream: u64) -> Option<u32> {
    match machine.streams.get(stream).ok()?.queue.front()? {
        Task::Launch(l) if l.code.sync_all() && !l.batch_mode => Some(l.blocks),
        _ => None,
    }
}

/// Returns whether kernels with SyncAll on several streams need more cores than there are. Each
/// would get some of the cores and wait forever for the others, unless it is launched in batch
/// mode.
fn deadlocks(machine: &Runtime, ready: &[u64], stream: u64) -> bool {
    let blocks: Vec<u32> = ready.iter().filter_map(|&s| sync_all_blocks(machine, s)).collect();
    sync_all_blocks(machine, stream).is_some()
        && blocks.len() > 1
        && blocks.iter().sum::<u32>() > machine.options.cores
}

/// Runs a task. Returns false if it never ends.
fn run(machine: &mut Runtime, stream: u64, task: &Task) -> Outcome<bool> {
    machine.tasks += 1;
    match task {
        Task::Copy { to, from, bytes } => copy(machine, *to, *from, *bytes)?,
        Task::Launch(launch) => match launch::run(machine, launch) {
            End::Done => {}
            End::Failed(failure) => return Err(failure),
            End::Hung => return Ok(false),
        },
        Task::Record { event, nth } => {
            let at = machine.tasks;
            // The record of a destroyed event has no effect.
            if let Ok(event) = machine.events.get_mut(*event) {
                event.done = event.done.max(*nth);
                (event.stream, event.at) = (stream, at);
            }
        }
    }
    Ok(true)
}

/// Copies between device and host, or within device memory.
pub(crate) fn copy(machine: &Runtime, to: u64, from: u64, bytes: usize) -> Outcome {
    let memory = &machine.memory;
    let copy_bytes = || {
        // SAFETY: `with_open` checks that device ranges are allocated and makes them accessible.
        // Host ranges are valid by the contract of the copy functions.
        unsafe { core::ptr::copy(from as *const u8, to as *mut u8, bytes) };
    };
    match (memory.is_device(to), memory.is_device(from)) {
        (true, true) => {
            // The ranges may share pages, which must stay accessible during the whole copy.
            let (low, high) = (to.min(from), to.max(from) + bytes as u64);
            if memory.device_range(to, bytes)?.at == memory.device_range(from, bytes)?.at {
                return memory.with_open(low, (high - low) as usize, copy_bytes);
            }
            memory.with_open(to, bytes, || memory.with_open(from, bytes, copy_bytes))?
        }
        (true, false) => memory.with_open(to, bytes, copy_bytes),
        (false, true) => memory.with_open(from, bytes, copy_bytes),
        (false, false) => fail(
            sys::ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
            "copies from host to host are not supported",
        ),
    }
}

/// Sets bytes of device memory.
pub(crate) fn set(machine: &Runtime, at: u64, value: u8, bytes: usize) -> Outcome {
    // SAFETY: `with_open` runs the closure only if `bytes` bytes at `at` are allocated, and makes
    // them accessible.
    machine.memory.with_open(at, bytes, || unsafe {
        core::ptr::write_bytes(at as *mut u8, value, bytes);
    })
}
