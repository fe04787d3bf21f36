//! The process and its devices.
#![expect(non_snake_case, reason = "the runtime's own names")]

use std::ffi::c_char;

use super::{give, not_null};
use crate::capture::refuse_waiting;
use crate::fault::{Outcome, fail, invalid};
use crate::schedule::{Goal, reach};
use crate::stream::Context;
use crate::sys;
use crate::world::World;

pub(super) unsafe fn aclInit(w: &mut World, _config: *const c_char) -> Outcome {
    if let Some(pair) = w.unknown_options.first() {
        return invalid(format!("AVSG_SIM has {pair}, which is no option of the simulator"));
    }
    if w.initialised {
        return fail(sys::ACL_ERROR_REPEAT_INITIALIZE, "initialised before");
    }
    w.initialised = true;
    Ok(())
}

pub(super) unsafe fn aclrtGetDeviceCount(w: &mut World, count: *mut u32) -> Outcome {
    // SAFETY: the caller's contract.
    unsafe { give(count, w.options.devices) }
}

fn known(w: &World, device: i32) -> Outcome<u32> {
    match u32::try_from(device) {
        Ok(device) if device < w.options.devices => Ok(device),
        _ => {
            let text = format!("device {device} of {}", w.options.devices);
            fail(sys::ACL_ERROR_RT_INVALID_DEVICEID, text)
        }
    }
}

pub(super) unsafe fn aclrtSetDevice(w: &mut World, device: i32) -> Outcome {
    let device = known(w, device)?;
    if !w.initialised {
        return invalid("aclInit comes first");
    }
    let (count, context) = match w.set.get(&device) {
        Some(&(count, context)) => (count, context),
        None => (0, w.contexts.add(Context { device, shared: true, stopped: None })),
    };
    w.set.insert(device, (count + 1, context));
    w.set_current(context);
    Ok(())
}

pub(super) unsafe fn aclrtResetDevice(w: &mut World, device: i32) -> Outcome {
    let device = known(w, device)?;
    let Some(&(count, context)) = w.set.get(&device) else {
        return invalid(format!("device {device} is not set"));
    };
    if count > 1 {
        w.set.insert(device, (count - 1, context));
        return Ok(());
    }
    release(w, device);
    Ok(())
}

pub(super) unsafe fn aclrtResetDeviceForce(w: &mut World, device: i32) -> Outcome {
    let device = known(w, device)?;
    release(w, device);
    Ok(())
}

/// Releases all that the process holds of a device. What should have been released before is noted,
/// unless the device is lost and took the means with it.
fn release(w: &mut World, device: u32) {
    w.set.remove(&device);
    let gone: Vec<u64> = w.contexts.drain(|c| c.device == device).iter().map(|c| c.0).collect();
    let mut lines = Vec::new();
    for (handle, _) in w.streams.drain(|s| gone.contains(&s.context)) {
        lines.push(format!("stream {handle:#x} at the reset of its device"));
    }
    for (handle, _) in w.binaries.drain(|(context, _)| gone.contains(context)) {
        lines.push(format!("binary {handle:#x} at the reset of its device"));
    }
    lines.extend(w.memory.release(device));
    if w.options.devices == 1 {
        lines.extend(w.events.drain(|_| true).iter().map(|(h, _)| format!("event {h:#x}")));
        lines.extend(w.graphs.drain(|_| true).iter().map(|(h, _)| format!("graph {h:#x}")));
        if w.faults.lost {
            lines.extend(w.memory.release_pinned());
        }
    }
    if !w.faults.lost {
        w.leaked.append(&mut lines);
    }
}

pub(super) unsafe fn aclrtGetDeviceInfo(
    w: &mut World,
    device: u32,
    attr: i32,
    value: *mut i64,
) -> Outcome {
    known(w, device as i32)?;
    let found = match attr {
        sys::ACL_DEV_ATTR_VECTOR_CORE_NUM => i64::from(w.options.cores),
        sys::ACL_DEV_ATTR_NPU_ARCH => 2201,
        _ => return invalid(format!("device attribute {attr}")),
    };
    // SAFETY: the caller's contract.
    unsafe { give(value, found) }
}

pub(super) unsafe fn aclGetDeviceCapability(
    w: &mut World,
    device: u32,
    info: i32,
    value: *mut i64,
) -> Outcome {
    known(w, device as i32)?;
    let found = match info {
        // Cubes; each has two vector cores.
        sys::ACL_DEVICE_INFO_AI_CORE_NUM => i64::from(w.options.cores / 2),
        sys::ACL_DEVICE_INFO_VECTOR_CORE_NUM => i64::from(w.options.cores),
        _ => return invalid(format!("device capability {info}")),
    };
    // SAFETY: the caller's contract.
    unsafe { give(value, found) }
}

pub(super) unsafe fn aclrtGetMemInfo(
    w: &mut World,
    _attr: i32,
    free: *mut usize,
    total: *mut usize,
) -> Outcome {
    w.current()?;
    not_null(total)?;
    // SAFETY: the caller's contract, here and below.
    unsafe { give(free, w.options.device_bytes.saturating_sub(w.memory.used()))? };
    // SAFETY: as above.
    unsafe { give(total, w.options.device_bytes) }
}

pub(super) unsafe fn aclrtSynchronizeDevice(w: &mut World) -> Outcome {
    // SAFETY: nothing is passed.
    unsafe { aclrtSynchronizeDeviceWithTimeout(w, -1) }
}

pub(super) unsafe fn aclrtSynchronizeDeviceWithTimeout(w: &mut World, timeout: i32) -> Outcome {
    refuse_waiting(w, None)?;
    let device = w.device()?;
    reach(w, Goal::Device(device), timeout, sys::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)
}
