//! Work that is recorded instead of run.

use std::thread;

use crate::fault::{Outcome, fail};
use crate::stream::Capture;
use crate::sys;
use crate::task::Task;
use crate::world::World;

/// Puts a task into a stream, or into the recording that it makes.
pub(crate) fn enqueue(world: &mut World, stream: u64, task: Task) -> Outcome {
    let context = world.streams.get(stream)?.context;
    if let Some(stopped) = &world.contexts.get(context)?.stopped {
        return Err(stopped.clone());
    }
    let stream = world.streams.get_mut(stream)?;
    match &mut stream.capture {
        Some(capture) => capture.tasks.push(task),
        None => stream.queue.push_back(task),
    }
    Ok(())
}

/// Refuses a call that waits, on a thread that records. `stream` is the stream that it concerns.
pub(crate) fn refuse_waiting(world: &World, stream: Option<u64>) -> Outcome {
    let me = thread::current().id();
    let hit = world.streams.iter().any(|(handle, s)| {
        s.capture.as_ref().is_some_and(|capture| {
            let relaxed = capture.mode == sys::ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
            let global = capture.mode == sys::ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
            stream == Some(handle) || (!relaxed && (global || capture.thread == me))
        })
    });
    if hit {
        let text = "a call that waits is not permitted while a stream is captured";
        return fail(sys::ACL_ERROR_RT_STREAM_CAPTURE_MODE_NOT_SUPPORT, text);
    }
    Ok(())
}

pub(crate) fn begin(world: &mut World, stream: u64, mode: i32) -> Outcome {
    if !(0..=2).contains(&mode) {
        return fail(sys::ACL_ERROR_RT_PARAM_INVALID, format!("capture mode {mode}"));
    }
    let stream = world.own_stream(stream)?;
    if stream.capture.is_some() {
        return fail(sys::ACL_ERROR_RT_STREAM_CAPTURED, "the stream is captured already");
    }
    let thread = thread::current().id();
    stream.capture = Some(Capture { thread, mode, tasks: Vec::new() });
    Ok(())
}

pub(crate) fn end(world: &mut World, stream: u64) -> Outcome<u64> {
    let stream = world.own_stream(stream)?;
    let Some(capture) = stream.capture.take() else {
        return fail(sys::ACL_ERROR_RT_STREAM_NOT_CAPTURED, "the stream is not captured");
    };
    let relaxed = capture.mode == sys::ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
    if !relaxed && capture.thread != thread::current().id() {
        stream.capture = Some(capture);
        let text = "the capture began on another thread";
        return fail(sys::ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD, text);
    }
    Ok(world.graphs.add(capture.tasks))
}

/// Queues recorded work. Its events are recorded anew.
pub(crate) fn replay(world: &mut World, graph: u64, stream: u64) -> Outcome {
    world.own_stream(stream)?;
    let tasks = world.graphs.get(graph)?.clone();
    for mut task in tasks {
        match &mut task {
            Task::Record { event, nth } => {
                let event = world.events.get_mut(*event)?;
                event.recorded += 1;
                *nth = event.recorded;
            }
            Task::Wait { event, nth } => *nth = world.events.get(*event)?.recorded,
            _ => {}
        }
        enqueue(world, stream, task)?;
    }
    Ok(())
}
