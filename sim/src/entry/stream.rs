//! Streams, and what is captured from them.
#![expect(non_snake_case, reason = "the runtime's own names")]

use std::collections::VecDeque;
use std::ffi::c_void;

use super::{give, not_null};
use crate::capture::{self, enqueue, refuse_waiting};
use crate::fault::{Outcome, fail, invalid};
use crate::registry::number;
use crate::schedule::{Goal, reach};
use crate::stream::Stream;
use crate::sys;
use crate::task::Task;
use crate::world::World;

pub(super) unsafe fn aclrtCreateStream(w: &mut World, stream: *mut *mut c_void) -> Outcome {
    not_null(stream)?;
    let context = w.current()?;
    // What one chip has.
    if w.streams.iter().count() >= 1984 {
        return fail(sys::ACL_ERROR_RT_MEMORY_ALLOCATION, "1984 streams are alive");
    }
    let made = w.streams.add(Stream {
        context,
        queue: VecDeque::new(),
        failed: None,
        hung: false,
        stops: false,
        capture: None,
        cores: None,
    });
    // SAFETY: the caller's contract.
    unsafe { give(stream, made as *mut c_void) }
}

pub(super) unsafe fn aclrtCreateStreamWithConfig(
    w: &mut World,
    stream: *mut *mut c_void,
    _priority: u32,
    flag: u32,
) -> Outcome {
    let known = sys::ACL_STREAM_FAST_LAUNCH | sys::ACL_STREAM_FAST_SYNC;
    if flag & !known.unsigned_abs() != 0 {
        return invalid(format!("stream flag {flag:#x}"));
    }
    // SAFETY: the caller's contract.
    unsafe { aclrtCreateStream(w, stream) }
}

pub(super) unsafe fn aclrtDestroyStream(w: &mut World, stream: *mut c_void) -> Outcome {
    let handle = number(stream);
    if w.own_stream(handle)?.capture.is_some() {
        return fail(sys::ACL_ERROR_RT_STREAM_CAPTURED, "the stream is being captured");
    }
    // It waits for its work; how that ended, it does not say.
    let waited = reach(w, Goal::Stream(handle), -1, sys::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    if w.streams.get(handle)?.queue.is_empty() {
        return w.streams.remove(handle).map(drop);
    }
    waited
}

pub(super) unsafe fn aclrtDestroyStreamForce(w: &mut World, stream: *mut c_void) -> Outcome {
    w.own_stream(number(stream))?;
    w.streams.remove(number(stream)).map(drop)
}

pub(super) unsafe fn aclrtSynchronizeStream(w: &mut World, stream: *mut c_void) -> Outcome {
    // SAFETY: the caller's contract.
    unsafe { aclrtSynchronizeStreamWithTimeout(w, stream, -1) }
}

pub(super) unsafe fn aclrtSynchronizeStreamWithTimeout(
    w: &mut World,
    stream: *mut c_void,
    timeout: i32,
) -> Outcome {
    // The one call that takes a stream of any context.
    let handle = number(stream);
    w.current()?;
    w.streams.get(handle)?;
    if timeout == 0 || timeout < -1 {
        return invalid(format!("a timeout of {timeout} ms"));
    }
    refuse_waiting(w, Some(handle))?;
    reach(w, Goal::Stream(handle), timeout, sys::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)
}

pub(super) unsafe fn aclrtStreamQuery(
    w: &mut World,
    stream: *mut c_void,
    status: *mut i32,
) -> Outcome {
    let stream = w.own_stream(number(stream))?;
    if let Some(failed) = &stream.failed {
        return Err(failed.clone());
    }
    let done = stream.queue.is_empty();
    let complete = sys::ACL_STREAM_STATUS_COMPLETE;
    let found = if done { complete } else { sys::ACL_STREAM_STATUS_NOT_READY };
    if !done {
        crate::schedule::some(w);
    }
    // SAFETY: the caller's contract.
    unsafe { give(status, found) }
}

pub(super) unsafe fn aclrtSetStreamFailureMode(
    w: &mut World,
    stream: *mut c_void,
    mode: u64,
) -> Outcome {
    let stream = w.own_stream(number(stream))?;
    match mode {
        0 | 1 if !stream.stops => stream.stops = mode == 1,
        0 | 1 => return invalid("the failure mode is set once"),
        _ => return invalid(format!("failure mode {mode}")),
    }
    Ok(())
}

pub(super) unsafe fn aclrtStreamWaitEvent(
    w: &mut World,
    stream: *mut c_void,
    event: *mut c_void,
) -> Outcome {
    w.own_stream(number(stream))?;
    let found = w.events.get(number(event))?;
    if found.flags & sys::ACL_EVENT_SYNC.unsigned_abs() == 0 {
        return invalid("streams wait only for events made with ACL_EVENT_SYNC");
    }
    // One that nobody has recorded counts as complete.
    let task = Task::Wait { event: number(event), nth: found.recorded };
    enqueue(w, number(stream), task)
}

/// Only the limit of vector cores is known here.
fn vector_cores(kind: i32) -> Outcome {
    if kind == sys::ACL_RT_DEV_RES_VECTOR_CORE {
        return Ok(());
    }
    invalid(format!("resource {kind}"))
}

pub(super) unsafe fn aclrtGetStreamResLimit(
    w: &mut World,
    stream: *mut c_void,
    kind: i32,
    value: *mut u32,
) -> Outcome {
    vector_cores(kind)?;
    let limit = w.own_stream(number(stream))?.cores;
    // SAFETY: the caller's contract.
    unsafe { give(value, limit.unwrap_or(w.options.cores)) }
}

pub(super) unsafe fn aclrtSetStreamResLimit(
    w: &mut World,
    stream: *mut c_void,
    kind: i32,
    value: u32,
) -> Outcome {
    vector_cores(kind)?;
    if value == 0 || value > w.options.cores {
        return invalid(format!("a limit of {value} vector cores"));
    }
    w.own_stream(number(stream))?.cores = Some(value);
    Ok(())
}

pub(super) unsafe fn aclmdlRICaptureBegin(
    w: &mut World,
    stream: *mut c_void,
    mode: i32,
) -> Outcome {
    capture::begin(w, number(stream), mode)
}

pub(super) unsafe fn aclmdlRICaptureEnd(
    w: &mut World,
    stream: *mut c_void,
    graph: *mut *mut c_void,
) -> Outcome {
    not_null(graph)?;
    let made = capture::end(w, number(stream))?;
    // SAFETY: the caller's contract.
    unsafe { give(graph, made as *mut c_void) }
}

pub(super) unsafe fn aclmdlRICaptureGetInfo(
    w: &mut World,
    stream: *mut c_void,
    status: *mut i32,
    _graph: *mut *mut c_void,
) -> Outcome {
    let captured = w.own_stream(number(stream))?.capture.is_some();
    let (active, none) =
        (sys::ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE, sys::ACL_MODEL_RI_CAPTURE_STATUS_NONE);
    // SAFETY: the caller's contract.
    unsafe { give(status, if captured { active } else { none }) }
}

pub(super) unsafe fn aclmdlRIExecuteAsync(
    w: &mut World,
    graph: *mut c_void,
    stream: *mut c_void,
) -> Outcome {
    capture::replay(w, number(graph), number(stream))
}

pub(super) unsafe fn aclmdlRIDestroy(w: &mut World, graph: *mut c_void) -> Outcome {
    w.graphs.remove(number(graph)).map(drop)
}
