//! Which stream goes next, and what its task does.

use crate::fault::{Fail, Outcome, fail};
use crate::launch::{self, End};
use crate::sys;
use crate::task::Task;
use crate::world::World;

/// What somebody waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// A stream's queue is empty.
    Stream(u64),
    /// An event's n-th record is done.
    Event(u64, u64),
    /// All streams of a device are.
    Device(u32),
}

/// Runs tasks of drawn streams until the goal is reached. A wait with a time limit ends with
/// `on_time` when nothing can go on; one without, when the device's watchdog ends what hangs.
pub(crate) fn reach(world: &mut World, goal: Goal, timeout_ms: i32, on_time: i32) -> Outcome {
    while !reached(world, goal) {
        if !one(world) {
            if timeout_ms >= 0 {
                return fail(on_time, format!("not done after {timeout_ms} ms"));
            }
            let text = "the watchdog ended a kernel that does not end";
            return fail(sys::ACL_ERROR_RT_VECTOR_CORE_TIMEOUT, text);
        }
    }
    let failure = match goal {
        Goal::Stream(stream) => world.streams.get(stream)?.failed.clone(),
        Goal::Event(..) => None,
        Goal::Device(device) => {
            let own = |context| world.contexts.get(context).is_ok_and(|c| c.device == device);
            let mut failed = world.streams.iter().filter(|(_, s)| own(s.context));
            failed.find_map(|(_, s)| s.failed.clone())
        }
    };
    failure.map_or(Ok(()), Err)
}

fn reached(world: &World, goal: Goal) -> bool {
    let empty = |stream: u64| world.streams.get(stream).is_ok_and(|s| s.queue.is_empty());
    match goal {
        Goal::Stream(stream) => empty(stream),
        Goal::Event(event, nth) => world.events.get(event).is_ok_and(|e| e.done >= nth),
        Goal::Device(device) => {
            let own = |context| world.contexts.get(context).is_ok_and(|c| c.device == device);
            world.streams.iter().all(|(_, s)| s.queue.is_empty() || !own(s.context))
        }
    }
}

/// Lets a few tasks run that nobody waits for.
pub(crate) fn some(world: &mut World) {
    for _ in 0..1 + world.draw() % 3 {
        if !one(world) {
            return;
        }
    }
}

/// Runs one task of a drawn stream. False if no stream can go on.
fn one(world: &mut World) -> bool {
    let ready: Vec<u64> = world
        .streams
        .iter()
        .filter(|(_, s)| !s.hung)
        .filter(|(_, s)| match s.queue.front() {
            Some(Task::Wait { event, nth }) => {
                // A destroyed event waits for nobody.
                world.events.get(*event).map_or(true, |e| e.done >= *nth)
            }
            Some(_) => true,
            None => false,
        })
        .map(|(handle, _)| handle)
        .collect();
    if ready.is_empty() {
        return false;
    }
    let stream = ready[(world.draw() % ready.len() as u64) as usize];
    if deadlock(world, &ready, stream) {
        for stream in ready {
            if first_sync(world, stream).is_some()
                && let Ok(s) = world.streams.get_mut(stream)
            {
                s.hung = true;
            }
        }
        return true;
    }
    let Ok(Some(task)) = world.streams.get_mut(stream).map(|s| s.queue.pop_front()) else {
        return false;
    };
    let failed = match run(world, stream, &task) {
        Ok(true) => None,
        Ok(false) => {
            if let Ok(s) = world.streams.get_mut(stream) {
                s.queue.push_front(task);
                s.hung = true;
            }
            None
        }
        Err(failed) => Some(failed),
    };
    if let Some(failure) = failed {
        stop(world, stream, failure);
    }
    true
}

/// Blocks of a stream's next kernel, if it waits for its own blocks and starts core by core.
fn first_sync(world: &World, stream: u64) -> Option<u32> {
    match world.streams.get(stream).ok()?.queue.front()? {
        Task::Launch(l) if l.code.sync_all() && !l.batch => Some(l.blocks),
        _ => None,
    }
}

/// Two kernels with SyncAll on two streams that together want more cores than there are: each gets
/// some and waits for the rest for ever, unless they start in batch mode.
fn deadlock(world: &World, ready: &[u64], stream: u64) -> bool {
    let wants: Vec<u32> = ready.iter().filter_map(|&s| first_sync(world, s)).collect();
    first_sync(world, stream).is_some()
        && wants.len() > 1
        && wants.iter().sum::<u32>() > world.options.cores
}

/// Notes a failure. By default the stream's later work still runs; that is the harsher case for
/// whoever reads its results.
fn stop(world: &mut World, stream: u64, failure: Fail) {
    let Ok(failed) = world.streams.get_mut(stream) else { return };
    failed.failed.get_or_insert(failure.clone());
    if !failed.stops {
        return;
    }
    let context = failed.context;
    if let Ok(context) = world.contexts.get_mut(context) {
        context.stopped.get_or_insert(failure.clone());
    }
    for (_, s) in world.streams.iter_mut().filter(|(_, s)| s.context == context) {
        s.queue.clear();
        s.failed.get_or_insert(failure.clone());
    }
}

/// Does what a task says. False if it never ends.
fn run(world: &mut World, stream: u64, task: &Task) -> Outcome<bool> {
    world.clock += 1_000;
    match task {
        Task::Copy { to, from, bytes } => {
            world.clock += *bytes as u64 / 20;
            copy(world, *to, *from, *bytes)?;
        }
        Task::Set { at, value, bytes } => set(world, *at, *value, *bytes)?,
        Task::Launch(launch) => {
            world.clock += 4_000;
            match launch::run(world, launch) {
                End::Done => {}
                End::Failed(failure) => return Err(failure),
                End::Hung => return Ok(false),
            }
        }
        Task::Record { event, nth } => {
            let at = world.clock;
            // A destroyed event was recorded for nobody.
            if let Ok(event) = world.events.get_mut(*event) {
                event.done = event.done.max(*nth);
                (event.stream, event.at) = (stream, at);
            }
        }
        Task::Wait { .. } => {}
    }
    Ok(true)
}

/// Copies between device memory and the host, or within the device.
pub(crate) fn copy(world: &World, to: u64, from: u64, bytes: usize) -> Outcome {
    let memory = &world.memory;
    let raw = || {
        // SAFETY: `with_open` finds device ranges alive and opens them; host ranges are the caller's
        // promise, as they are the real runtime's.
        unsafe { core::ptr::copy(from as *const u8, to as *mut u8, bytes) };
    };
    match (memory.is_device(to), memory.is_device(from)) {
        (true, true) => {
            // The two may share pages, which must not be closed in between.
            let (low, high) = (to.min(from), to.max(from) + bytes as u64);
            if memory.device_range(to, bytes)?.at == memory.device_range(from, bytes)?.at {
                return memory.with_open(low, (high - low) as usize, raw);
            }
            memory.with_open(to, bytes, || memory.with_open(from, bytes, raw))?
        }
        (true, false) => memory.with_open(to, bytes, raw),
        (false, true) => memory.with_open(from, bytes, raw),
        (false, false) => fail(sys::ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "a copy from host to host"),
    }
}

/// Sets bytes of device memory.
pub(crate) fn set(world: &World, at: u64, value: u8, bytes: usize) -> Outcome {
    // SAFETY: `with_open` runs it only if so many bytes from `at` are alive, and opens them.
    world.memory.with_open(at, bytes, || unsafe {
        core::ptr::write_bytes(at as *mut u8, value, bytes);
    })
}
