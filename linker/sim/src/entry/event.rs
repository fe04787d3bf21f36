//! The functions for events.
#![expect(non_snake_case, reason = "the runtime's own names")]

use super::argument::{Handle, Out};
use crate::capture::enqueue;
use crate::fault::{Outcome, fail, invalid};
use crate::machine::Runtime;
use crate::stream::Event;
use crate::sys;
use crate::task::Task;

pub(super) fn aclrtCreateEventExWithFlag(
    machine: &mut Runtime,
    event: Out<Handle>,
    flag: u32,
) -> Outcome {
    event.check()?;
    machine.current()?;
    if flag != sys::ACL_EVENT_TIME_LINE.unsigned_abs() {
        return invalid(format!("event flag {flag:#x} is not ACL_EVENT_TIME_LINE"));
    }
    let handle = machine.events.add(Event::default());
    event.handle(handle)
}

pub(super) fn aclrtDestroyEvent(machine: &mut Runtime, event: u64) -> Outcome {
    machine.events.remove(event).map(drop)
}

pub(super) fn aclrtRecordEvent(machine: &mut Runtime, event: u64, stream: u64) -> Outcome {
    let captured = machine.own_stream(stream)?.capture.is_some();
    let entry = machine.events.get_mut(event)?;
    // A captured record counts when the graph is executed.
    let nth = entry.recorded + 1;
    if !captured {
        entry.recorded = nth;
    }
    enqueue(machine, stream, Task::Record { event, nth })
}

pub(super) fn aclrtEventElapsedTime(
    machine: &mut Runtime,
    ms: Out<f32>,
    start: u64,
    end: u64,
) -> Outcome {
    let (start, end) = (machine.events.get(start)?, machine.events.get(end)?);
    let is_complete = |e: &Event| e.recorded > 0 && e.done >= e.recorded;
    if !is_complete(start) || !is_complete(end) {
        let text = "both events must be complete";
        return fail(sys::ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, text);
    }
    if start.stream != end.stream {
        let text = "both events must be recorded on the same stream";
        return fail(sys::ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, text);
    }
    let elapsed = end.at.saturating_sub(start.at) as f32 / 1e3;
    ms.write(elapsed)
}
