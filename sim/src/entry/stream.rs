//! The functions for streams and captured graphs.
#![expect(non_snake_case, reason = "the runtime's own names")]

use std::collections::VecDeque;
use std::ffi::c_void;

use super::{not_null, write_result};
use crate::capture::{self, enqueue, refuse_blocking};
use crate::fault::{Outcome, fail, invalid};
use crate::machine::Machine;
use crate::registry::handle_value;
use crate::schedule::{WaitGoal, run_until};
use crate::stream::Stream;
use crate::sys;
use crate::task::Task;

pub(super) unsafe fn aclrtCreateStream(machine: &mut Machine, stream: *mut *mut c_void) -> Outcome {
    not_null(stream)?;
    let context = machine.current()?;
    // One chip has 1984 streams.
    if machine.streams.iter().count() >= 1984 {
        return fail(
            sys::ACL_ERROR_RT_MEMORY_ALLOCATION,
            "all 1984 streams are in use; destroy one",
        );
    }
    let handle = machine.streams.add(Stream {
        context,
        queue: VecDeque::new(),
        failed: None,
        hung: false,
        capture: None,
        cores: None,
    });
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(stream, handle as *mut c_void) }
}

pub(super) unsafe fn aclrtDestroyStream(machine: &mut Machine, stream: *mut c_void) -> Outcome {
    let handle = handle_value(stream);
    if machine.own_stream(handle)?.capture.is_some() {
        return fail(sys::ACL_ERROR_RT_STREAM_CAPTURED, "the stream is being captured");
    }
    // The call waits for the work of the stream and does not report its failure.
    let waited =
        run_until(machine, WaitGoal::Stream(handle), -1, sys::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    if machine.streams.get(handle)?.queue.is_empty() {
        return machine.streams.remove(handle).map(drop);
    }
    waited
}

pub(super) unsafe fn aclrtDestroyStreamForce(
    machine: &mut Machine,
    stream: *mut c_void,
) -> Outcome {
    machine.own_stream(handle_value(stream))?;
    machine.streams.remove(handle_value(stream)).map(drop)
}

pub(super) unsafe fn aclrtSynchronizeStream(machine: &mut Machine, stream: *mut c_void) -> Outcome {
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { aclrtSynchronizeStreamWithTimeout(machine, stream, -1) }
}

pub(super) unsafe fn aclrtSynchronizeStreamWithTimeout(
    machine: &mut Machine,
    stream: *mut c_void,
    timeout: i32,
) -> Outcome {
    // This is the only call that takes a stream of another context.
    let handle = handle_value(stream);
    machine.current()?;
    machine.streams.get(handle)?;
    if timeout == 0 || timeout < -1 {
        return invalid(format!("a timeout of {timeout} ms; pass -1 or at least 1"));
    }
    refuse_blocking(machine, Some(handle))?;
    run_until(machine, WaitGoal::Stream(handle), timeout, sys::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)
}

pub(super) unsafe fn aclrtStreamWaitEvent(
    machine: &mut Machine,
    stream: *mut c_void,
    event: *mut c_void,
) -> Outcome {
    machine.own_stream(handle_value(stream))?;
    let entry = machine.events.get(handle_value(event))?;
    if entry.flags & sys::ACL_EVENT_SYNC.unsigned_abs() == 0 {
        return invalid("a stream can wait only for an event with the flag ACL_EVENT_SYNC");
    }
    // An event without a record counts as complete.
    let task = Task::Wait { event: handle_value(event), nth: entry.recorded };
    enqueue(machine, handle_value(stream), task)
}

/// Refuses all resources except vector cores.
fn vector_cores(kind: i32) -> Outcome {
    if kind == sys::ACL_RT_DEV_RES_VECTOR_CORE {
        return Ok(());
    }
    invalid(format!("resource {kind} is not supported; only vector cores have a limit"))
}

pub(super) unsafe fn aclrtGetStreamResLimit(
    machine: &mut Machine,
    stream: *mut c_void,
    kind: i32,
    value: *mut u32,
) -> Outcome {
    vector_cores(kind)?;
    let limit = machine.own_stream(handle_value(stream))?.cores;
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(value, limit.unwrap_or(machine.options.cores)) }
}

pub(super) unsafe fn aclrtSetStreamResLimit(
    machine: &mut Machine,
    stream: *mut c_void,
    kind: i32,
    value: u32,
) -> Outcome {
    vector_cores(kind)?;
    if value == 0 || value > machine.options.cores {
        return invalid(format!(
            "a limit of {value} vector cores is not in 1..={}",
            machine.options.cores
        ));
    }
    machine.own_stream(handle_value(stream))?.cores = Some(value);
    Ok(())
}

pub(super) unsafe fn aclmdlRICaptureBegin(
    machine: &mut Machine,
    stream: *mut c_void,
    mode: i32,
) -> Outcome {
    capture::begin(machine, handle_value(stream), mode)
}

pub(super) unsafe fn aclmdlRICaptureEnd(
    machine: &mut Machine,
    stream: *mut c_void,
    graph: *mut *mut c_void,
) -> Outcome {
    not_null(graph)?;
    let graph_handle = capture::end(machine, handle_value(stream))?;
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(graph, graph_handle as *mut c_void) }
}

pub(super) unsafe fn aclmdlRICaptureGetInfo(
    machine: &mut Machine,
    stream: *mut c_void,
    status: *mut i32,
    _graph: *mut *mut c_void,
) -> Outcome {
    let captured = machine.own_stream(handle_value(stream))?.capture.is_some();
    let (active, none) =
        (sys::ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE, sys::ACL_MODEL_RI_CAPTURE_STATUS_NONE);
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(status, if captured { active } else { none }) }
}

pub(super) unsafe fn aclmdlRIExecuteAsync(
    machine: &mut Machine,
    graph: *mut c_void,
    stream: *mut c_void,
) -> Outcome {
    capture::replay(machine, handle_value(graph), handle_value(stream))
}

pub(super) unsafe fn aclmdlRIDestroy(machine: &mut Machine, graph: *mut c_void) -> Outcome {
    machine.graphs.remove(handle_value(graph)).map(drop)
}
