//! Events.
#![expect(non_snake_case, reason = "the runtime's own names")]

use std::ffi::c_void;

use super::{give, not_null};
use crate::capture::{enqueue, refuse_waiting};
use crate::fault::{Outcome, fail, invalid};
use crate::registry::number;
use crate::schedule::{Goal, reach};
use crate::stream::Event;
use crate::sys;
use crate::task::Task;
use crate::world::World;

const KNOWN: u32 = (sys::ACL_EVENT_SYNC | sys::ACL_EVENT_TIME_LINE).unsigned_abs();

pub(super) unsafe fn aclrtCreateEvent(w: &mut World, event: *mut *mut c_void) -> Outcome {
    // SAFETY: the caller's contract.
    unsafe { aclrtCreateEventExWithFlag(w, event, KNOWN) }
}

pub(super) unsafe fn aclrtCreateEventExWithFlag(
    w: &mut World,
    event: *mut *mut c_void,
    flag: u32,
) -> Outcome {
    not_null(event)?;
    w.current()?;
    if flag == 0 || flag & !KNOWN != 0 {
        return invalid(format!("event flag {flag:#x}"));
    }
    let made = w.events.add(Event { flags: flag, ..Event::default() });
    // SAFETY: the caller's contract.
    unsafe { give(event, made as *mut c_void) }
}

pub(super) unsafe fn aclrtDestroyEvent(w: &mut World, event: *mut c_void) -> Outcome {
    w.events.remove(number(event)).map(drop)
}

pub(super) unsafe fn aclrtRecordEvent(
    w: &mut World,
    event: *mut c_void,
    stream: *mut c_void,
) -> Outcome {
    let captured = w.own_stream(number(stream))?.capture.is_some();
    let found = w.events.get_mut(number(event))?;
    // A recorded one counts from its replay on.
    let nth = found.recorded + 1;
    if !captured {
        found.recorded = nth;
        found.synced = false;
    }
    enqueue(w, number(stream), Task::Record { event: number(event), nth })
}

pub(super) unsafe fn aclrtSynchronizeEvent(w: &mut World, event: *mut c_void) -> Outcome {
    refuse_waiting(w, None)?;
    let nth = w.events.get(number(event))?.recorded;
    let goal = Goal::Event(number(event), nth);
    reach(w, goal, -1, sys::ACL_ERROR_RT_EVENT_SYNC_TIMEOUT)?;
    let found = w.events.get_mut(number(event))?;
    found.synced = true;
    // The work before it may have failed.
    let stream = found.stream;
    match w.streams.get(stream).ok().and_then(|s| s.failed.clone()) {
        Some(failed) => Err(failed),
        None => Ok(()),
    }
}

pub(super) unsafe fn aclrtEventElapsedTime(
    w: &mut World,
    ms: *mut f32,
    start: *mut c_void,
    end: *mut c_void,
) -> Outcome {
    let (start, end) = (w.events.get(number(start))?, w.events.get(number(end))?);
    let times = |e: &Event| e.flags & sys::ACL_EVENT_TIME_LINE.unsigned_abs() != 0;
    let happened = |e: &Event| e.recorded > 0 && e.done >= e.recorded;
    if !times(start) || !times(end) || !happened(start) || !happened(end) {
        let text = "both events tell times (ACL_EVENT_TIME_LINE) and have happened";
        return fail(sys::ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, text);
    }
    if start.stream != end.stream {
        let text = "both events were recorded on one stream";
        return fail(sys::ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, text);
    }
    let elapsed = end.at.saturating_sub(start.at) as f32 / 1e6;
    // SAFETY: the caller's contract.
    unsafe { give(ms, elapsed) }
}
