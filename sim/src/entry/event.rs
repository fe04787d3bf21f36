//! The functions for events.
#![expect(non_snake_case, reason = "the runtime's own names")]

use std::ffi::c_void;

use super::{not_null, write_result};
use crate::capture::{enqueue, refuse_blocking};
use crate::fault::{Outcome, fail, invalid};
use crate::machine::Machine;
use crate::registry::handle_value;
use crate::schedule::{WaitGoal, run_until};
use crate::stream::Event;
use crate::sys;
use crate::task::Task;

const KNOWN_FLAGS: u32 = (sys::ACL_EVENT_SYNC | sys::ACL_EVENT_TIME_LINE).unsigned_abs();

pub(super) unsafe fn aclrtCreateEventExWithFlag(
    machine: &mut Machine,
    event: *mut *mut c_void,
    flag: u32,
) -> Outcome {
    not_null(event)?;
    machine.current()?;
    if flag == 0 || flag & !KNOWN_FLAGS != 0 {
        return invalid(format!("event flag {flag:#x} is 0 or has unknown bits"));
    }
    let handle = machine.events.add(Event { flags: flag, ..Event::default() });
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(event, handle as *mut c_void) }
}

pub(super) unsafe fn aclrtDestroyEvent(machine: &mut Machine, event: *mut c_void) -> Outcome {
    machine.events.remove(handle_value(event)).map(drop)
}

pub(super) unsafe fn aclrtRecordEvent(
    machine: &mut Machine,
    event: *mut c_void,
    stream: *mut c_void,
) -> Outcome {
    let captured = machine.own_stream(handle_value(stream))?.capture.is_some();
    let entry = machine.events.get_mut(handle_value(event))?;
    // A captured record counts when the graph is executed.
    let nth = entry.recorded + 1;
    if !captured {
        entry.recorded = nth;
    }
    enqueue(machine, handle_value(stream), Task::Record { event: handle_value(event), nth })
}

pub(super) unsafe fn aclrtSynchronizeEvent(machine: &mut Machine, event: *mut c_void) -> Outcome {
    refuse_blocking(machine, None)?;
    let nth = machine.events.get(handle_value(event))?.recorded;
    let goal = WaitGoal::Event(handle_value(event), nth);
    run_until(machine, goal, -1, sys::ACL_ERROR_RT_EVENT_SYNC_TIMEOUT)?;
    let recorded = machine.events.get(handle_value(event))?;
    // The call reports a failure of the work before the event.
    let stream = recorded.stream;
    match machine.streams.get(stream).ok().and_then(|s| s.failed.clone()) {
        Some(failed) => Err(failed),
        None => Ok(()),
    }
}

pub(super) unsafe fn aclrtEventElapsedTime(
    machine: &mut Machine,
    ms: *mut f32,
    start: *mut c_void,
    end: *mut c_void,
) -> Outcome {
    let (start, end) =
        (machine.events.get(handle_value(start))?, machine.events.get(handle_value(end))?);
    let has_timeline = |e: &Event| e.flags & sys::ACL_EVENT_TIME_LINE.unsigned_abs() != 0;
    let is_complete = |e: &Event| e.recorded > 0 && e.done >= e.recorded;
    if !has_timeline(start) || !has_timeline(end) || !is_complete(start) || !is_complete(end) {
        let text = "both events must have the flag ACL_EVENT_TIME_LINE and be complete";
        return fail(sys::ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, text);
    }
    if start.stream != end.stream {
        let text = "both events must be recorded on the same stream";
        return fail(sys::ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, text);
    }
    let elapsed = end.at.saturating_sub(start.at) as f32 / 1e6;
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(ms, elapsed) }
}
