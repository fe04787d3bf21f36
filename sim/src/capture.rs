//! Capture of streams: tasks are recorded in a graph instead of run.

use std::thread;

use crate::fault::{Outcome, fail};
use crate::machine::Machine;
use crate::stream::Capture;
use crate::sys;
use crate::task::Task;

/// Appends a task to a stream, or to its capture if it is being captured.
pub(crate) fn enqueue(machine: &mut Machine, stream: u64, task: Task) -> Outcome {
    let stream = machine.streams.get_mut(stream)?;
    match &mut stream.capture {
        Some(capture) => capture.tasks.push(task),
        None => stream.queue.push_back(task),
    }
    Ok(())
}

/// Refuses a call that waits while a capture forbids it. `stream` is the stream of the call, if it
/// has one.
pub(crate) fn refuse_blocking(machine: &Machine, stream: Option<u64>) -> Outcome {
    let me = thread::current().id();
    let hit = machine.streams.iter().any(|(handle, s)| {
        s.capture.as_ref().is_some_and(|capture| {
            let relaxed = capture.mode == sys::ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
            let global = capture.mode == sys::ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
            stream == Some(handle) || (!relaxed && (global || capture.thread == me))
        })
    });
    if hit {
        let text =
            "a call that waits is not permitted while a stream is captured; end the capture first";
        return fail(sys::ACL_ERROR_RT_STREAM_CAPTURE_MODE_NOT_SUPPORT, text);
    }
    Ok(())
}

pub(crate) fn begin(machine: &mut Machine, stream: u64, mode: i32) -> Outcome {
    if !(0..=2).contains(&mode) {
        return fail(
            sys::ACL_ERROR_RT_PARAM_INVALID,
            format!("capture mode {mode} is not 0, 1 or 2"),
        );
    }
    let stream = machine.own_stream(stream)?;
    if stream.capture.is_some() {
        return fail(sys::ACL_ERROR_RT_STREAM_CAPTURED, "the stream is being captured already");
    }
    let thread = thread::current().id();
    stream.capture = Some(Capture { thread, mode, tasks: Vec::new() });
    Ok(())
}

pub(crate) fn end(machine: &mut Machine, stream: u64) -> Outcome<u64> {
    let stream = machine.own_stream(stream)?;
    let Some(capture) = stream.capture.take() else {
        return fail(sys::ACL_ERROR_RT_STREAM_NOT_CAPTURED, "the stream is not captured");
    };
    let relaxed = capture.mode == sys::ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
    if !relaxed && capture.thread != thread::current().id() {
        stream.capture = Some(capture);
        let text = "the capture began on another thread";
        return fail(sys::ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD, text);
    }
    Ok(machine.graphs.add(capture.tasks))
}

/// Enqueues the tasks of a captured graph. Its event records count as new records.
pub(crate) fn replay(machine: &mut Machine, graph: u64, stream: u64) -> Outcome {
    machine.own_stream(stream)?;
    let tasks = machine.graphs.get(graph)?.clone();
    for mut task in tasks {
        match &mut task {
            Task::Record { event, nth } => {
                let event = machine.events.get_mut(*event)?;
                event.recorded += 1;
                *nth = event.recorded;
            }
            Task::Wait { event, nth } => *nth = machine.events.get(*event)?.recorded,
            _ => {}
        }
        enqueue(machine, stream, task)?;
    }
    Ok(())
}
