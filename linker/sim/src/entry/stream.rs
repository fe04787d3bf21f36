//! The functions for streams and captured graphs.
#![expect(non_snake_case, reason = "the runtime's own names")]

use std::thread;

use super::argument::{Handle, Out};
use crate::capture::{enqueue, refuse_blocking};
use crate::fault::{Outcome, fail, invalid};
use crate::machine::Runtime;
use crate::schedule::{WaitGoal, run_until};
use crate::stream::{Capture, Stream};
use crate::sys;
use crate::task::Task;

pub(super) fn aclrtCreateStream(machine: &mut Runtime, stream: Out<Handle>) -> Outcome {
    stream.check()?;
    let context = machine.current()?;
    // One chip has 1984 streams.
    if machine.streams.iter().count() >= 1984 {
        return fail(
            sys::ACL_ERROR_RT_MEMORY_ALLOCATION,
            "all 1984 streams are in use; destroy one",
        );
    }
    stream.handle(machine.streams.add(Stream { context, ..Stream::default() }))
}

pub(super) fn aclrtDestroyStream(machine: &mut Runtime, stream: u64) -> Outcome {
    if machine.own_stream(stream)?.capture.is_some() {
        return fail(sys::ACL_ERROR_RT_STREAM_CAPTURED, "the stream is being captured");
    }
    // The call waits for the work of the stream and does not report its failure.
    let waited = run_until(machine, WaitGoal::Stream(stream), -1);
    if machine.streams.get(stream)?.queue.is_empty() {
        return machine.streams.remove(stream).map(drop);
    }
    waited
}

pub(super) fn aclrtDestroyStreamForce(machine: &mut Runtime, stream: u64) -> Outcome {
    machine.own_stream(stream)?;
    machine.streams.remove(stream).map(drop)
}

pub(super) fn aclrtSynchronizeStream(machine: &mut Runtime, stream: u64) -> Outcome {
    aclrtSynchronizeStreamWithTimeout(machine, stream, -1)
}

pub(super) fn aclrtSynchronizeStreamWithTimeout(
    machine: &mut Runtime,
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
    run_until(machine, WaitGoal::Stream(stream), timeout)
}

/// Refuses all resources except vector cores.
fn vector_cores(kind: i32) -> Outcome {
    if kind == sys::ACL_RT_DEV_RES_VECTOR_CORE {
        return Ok(());
    }
    invalid(format!("resource {kind} is not supported; only vector cores have a limit"))
}

pub(super) fn aclrtGetStreamResLimit(
    machine: &mut Runtime,
    stream: u64,
    kind: i32,
    value: Out<u32>,
) -> Outcome {
    vector_cores(kind)?;
    let limit = machine.own_stream(stream)?.cores;
    value.write(limit.unwrap_or(machine.options.cores))
}

pub(super) fn aclrtSetStreamResLimit(
    machine: &mut Runtime,
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

pub(super) fn aclmdlRICaptureBegin(machine: &mut Runtime, stream: u64, mode: i32) -> Outcome {
    if !(0..=2).contains(&mode) {
        return invalid(format!("capture mode {mode} is not 0, 1 or 2"));
    }
    let stream = machine.own_stream(stream)?;
    if stream.capture.is_some() {
        return fail(sys::ACL_ERROR_RT_STREAM_CAPTURED, "the stream is being captured already");
    }
    stream.capture = Some(Capture { thread: thread::current().id(), mode, tasks: Vec::new() });
    Ok(())
}

pub(super) fn aclmdlRICaptureEnd(
    machine: &mut Runtime,
    stream: u64,
    graph: Out<Handle>,
) -> Outcome {
    graph.check()?;
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
    graph.handle(machine.graphs.add(capture.tasks))
}

pub(super) fn aclmdlRICaptureGetInfo(
    machine: &mut Runtime,
    stream: u64,
    status: Out<i32>,
    _graph: Out<Handle>,
) -> Outcome {
    let captured = machine.own_stream(stream)?.capture.is_some();
    let (active, none) =
        (sys::ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE, sys::ACL_MODEL_RI_CAPTURE_STATUS_NONE);
    status.write(if captured { active } else { none })
}

/// Enqueues the tasks of a captured graph. Its event records count as new records.
pub(super) fn aclmdlRIExecuteAsync(machine: &mut Runtime, graph: u64, stream: u64) -> Outcome {
    machine.own_stream(stream)?;
    for mut task in machine.graphs.get(graph)?.clone() {
        if let Task::Record { event, nth } = &mut task {
            let event = machine.events.get_mut(*event)?;
            event.recorded += 1;
            *nth = event.recorded;
        }
        enqueue(machine, stream, task)?;
    }
    Ok(())
}

pub(super) fn aclmdlRIDestroy(machine: &mut Runtime, graph: u64) -> Outcome {
    machine.graphs.remove(graph).map(drop)
}
