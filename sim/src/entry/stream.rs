//! The functions for streams and captured graphs.
#![expect(non_snake_case, reason = "the runtime's own names")]

use std::collections::VecDeque;

use super::argument::{Handle, Out};
use crate::capture::{self, enqueue, refuse_blocking};
use crate::fault::{Outcome, fail, invalid};
use crate::machine::Machine;
use crate::schedule::{WaitGoal, run_until};
use crate::stream::Stream;
use crate::sys;
use crate::task::Task;

pub(super) fn aclrtCreateStream(machine: &mut Machine, stream: Out<Handle>) -> Outcome {
    stream.check()?;
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
    stream.handle(handle)
}

pub(super) fn aclrtDestroyStream(machine: &mut Machine, stream: u64) -> Outcome {
    if machine.own_stream(stream)?.capture.is_some() {
        return fail(sys::ACL_ERROR_RT_STREAM_CAPTURED, "the stream is being captured");
    }
    // The call waits for the work of the stream and does not report its failure.
    let waited =
        run_until(machine, WaitGoal::Stream(stream), -1, sys::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    if machine.streams.get(stream)?.queue.is_empty() {
        return machine.streams.remove(stream).map(drop);
    }
    waited
}

pub(super) fn aclrtDestroyStreamForce(machine: &mut Machine, stream: u64) -> Outcome {
    machine.own_stream(stream)?;
    machine.streams.remove(stream).map(drop)
}

pub(super) fn aclrtSynchronizeStream(machine: &mut Machine, stream: u64) -> Outcome {
    aclrtSynchronizeStreamWithTimeout(machine, stream, -1)
}

pub(super) fn aclrtSynchronizeStreamWithTimeout(
    machine: &mut Machine,
    stream: u64,
    timeout: i32,
) -> Outcome {
    // This is the only call that takes a stream of another context.
    machine.current()?;
    machine.streams.get(stream)?;
    if timeout == 0 || timeout < -1 {
        return invalid(format!("a timeout of {timeout} ms; pass -1 or at least 1"));
    }
    refuse_blocking(machine, Some(stream))?;
    run_until(machine, WaitGoal::Stream(stream), timeout, sys::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)
}

pub(super) fn aclrtStreamWaitEvent(machine: &mut Machine, stream: u64, event: u64) -> Outcome {
    machine.own_stream(stream)?;
    let entry = machine.events.get(event)?;
    if entry.flags & sys::ACL_EVENT_SYNC.unsigned_abs() == 0 {
        return invalid("a stream can wait only for an event with the flag ACL_EVENT_SYNC");
    }
    // An event without a record counts as complete.
    let task = Task::Wait { event, nth: entry.recorded };
    enqueue(machine, stream, task)
}

/// Refuses all resources except vector cores.
fn vector_cores(kind: i32) -> Outcome {
    if kind == sys::ACL_RT_DEV_RES_VECTOR_CORE {
        return Ok(());
    }
    invalid(format!("resource {kind} is not supported; only vector cores have a limit"))
}

pub(super) fn aclrtGetStreamResLimit(
    machine: &mut Machine,
    stream: u64,
    kind: i32,
    value: Out<u32>,
) -> Outcome {
    vector_cores(kind)?;
    let limit = machine.own_stream(stream)?.cores;
    value.write(limit.unwrap_or(machine.options.cores))
}

pub(super) fn aclrtSetStreamResLimit(
    machine: &mut Machine,
    stream: u64,
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
    machine.own_stream(stream)?.cores = Some(value);
    Ok(())
}

pub(super) fn aclmdlRICaptureBegin(machine: &mut Machine, stream: u64, mode: i32) -> Outcome {
    capture::begin(machine, stream, mode)
}

pub(super) fn aclmdlRICaptureEnd(
    machine: &mut Machine,
    stream: u64,
    graph: Out<Handle>,
) -> Outcome {
    graph.check()?;
    let graph_handle = capture::end(machine, stream)?;
    graph.handle(graph_handle)
}

pub(super) fn aclmdlRICaptureGetInfo(
    machine: &mut Machine,
    stream: u64,
    status: Out<i32>,
    _graph: Out<Handle>,
) -> Outcome {
    let captured = machine.own_stream(stream)?.capture.is_some();
    let (active, none) =
        (sys::ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE, sys::ACL_MODEL_RI_CAPTURE_STATUS_NONE);
    status.write(if captured { active } else { none })
}

pub(super) fn aclmdlRIExecuteAsync(machine: &mut Machine, graph: u64, stream: u64) -> Outcome {
    capture::replay(machine, graph, stream)
}

pub(super) fn aclmdlRIDestroy(machine: &mut Machine, graph: u64) -> Outcome {
    machine.graphs.remove(graph).map(drop)
}
