//! Capture of streams: tasks are recorded in a graph instead of run.

use std::thread;

use crate::fault::{Outcome, fail};
use crate::machine::Runtime;
use crate::sys;
use crate::task::Task;

/// Appends a task to a stream, or to its capture if it is being captured.
pub(crate) fn enqueue(machine: &mut Runtime, stream: u64, task: Task) -> Outcome {
    let stream = machine.streams.get_mut(stream)?;
    match &mut stream.capture {
        Some(capture) => capture.tasks.push(task),
        None => stream.queue.push_back(task),
    }
    Ok(())
}

/// Refuses a call that waits while a capture forbids it. `stream` is the stream of the call, if it
/// has one.
pub(crate) fn refuse_blocking(machine: &Runtime, stream: Option<u64>) -> Outcome {
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
