//! The functions for the process and its devices.
#![expect(non_snake_case, reason = "the runtime's own names")]

use super::argument::{Out, Text};
use crate::capture::refuse_blocking;
use crate::fault::{Outcome, fail, invalid};
use crate::machine::Runtime;
use crate::schedule::{WaitGoal, run_until};
use crate::sys;

pub(super) fn aclInit(machine: &mut Runtime, _config: Text) -> Outcome {
    if let Some(pair) = machine.unknown_options.first() {
        return invalid(format!(
            "AVSG_SIM contains {pair}, which is no fault of a kernel; see avsg_sim::Options"
        ));
    }
    if machine.initialised {
        return fail(sys::ACL_ERROR_REPEAT_INITIALIZE, "aclInit was called before");
    }
    machine.initialised = true;
    Ok(())
}

pub(super) fn aclrtGetDeviceCount(machine: &mut Runtime, count: Out<u32>) -> Outcome {
    count.write(machine.options.devices)
}

/// Returns the number of a device that exists.
fn existing_device(machine: &Runtime, device: i32) -> Outcome<u32> {
    match u32::try_from(device) {
        Ok(device) if device < machine.options.devices => Ok(device),
        _ => {
            let devices = machine.options.devices;
            let text = format!("device {device} does not exist; there are {devices} devices");
            fail(sys::ACL_ERROR_RT_INVALID_DEVICEID, text)
        }
    }
}

pub(super) fn aclrtSetDevice(machine: &mut Runtime, device: i32) -> Outcome {
    let device = existing_device(machine, device)?;
    if !machine.initialised {
        return invalid("call aclInit first");
    }
    let (count, context) = match machine.set.get(&device) {
        Some(&(count, context)) => (count, context),
        None => (0, machine.contexts.add(device)),
    };
    machine.set.insert(device, (count + 1, context));
    machine.set_current(context);
    Ok(())
}

pub(super) fn aclrtResetDevice(machine: &mut Runtime, device: i32) -> Outcome {
    let device = existing_device(machine, device)?;
    let Some(&(count, context)) = machine.set.get(&device) else {
        return invalid(format!("device {device} is not set; call aclrtSetDevice first"));
    };
    if count > 1 {
        machine.set.insert(device, (count - 1, context));
        return Ok(());
    }
    release(machine, device);
    Ok(())
}

/// Releases everything that the process has on a device. Each object that the program should have
/// released is recorded as a leak, unless the device is lost, after which a program cannot release
/// it.
fn release(machine: &mut Runtime, device: u32) {
    machine.set.remove(&device);
    let contexts: Vec<u64> =
        machine.contexts.drain(|&of| of == device).iter().map(|c| c.0).collect();
    let mut lines = Vec::new();
    for (handle, _) in machine.streams.drain(|s| contexts.contains(&s.context)) {
        lines.push(format!("stream {handle:#x} at the reset of its device"));
    }
    for (handle, _) in machine.binaries.drain(|(context, _)| contexts.contains(context)) {
        lines.push(format!("binary {handle:#x} at the reset of its device"));
    }
    lines.extend(machine.memory.release(device));
    if machine.options.devices == 1 {
        lines.extend(machine.events.drain(|_| true).iter().map(|(h, _)| format!("event {h:#x}")));
        lines.extend(machine.graphs.drain(|_| true).iter().map(|(h, _)| format!("graph {h:#x}")));
        if machine.faults.lost {
            lines.extend(machine.memory.release_pinned());
        }
    }
    if !machine.faults.lost {
        machine.leaked.append(&mut lines);
    }
}

pub(super) fn aclGetDeviceCapability(
    machine: &mut Runtime,
    device: u32,
    info: i32,
    value: Out<i64>,
) -> Outcome {
    existing_device(machine, device as i32)?;
    let result = match info {
        // The cores with a cube unit; each has two vector cores.
        sys::ACL_DEVICE_INFO_AI_CORE_NUM => i64::from(machine.options.cores / 2),
        sys::ACL_DEVICE_INFO_VECTOR_CORE_NUM => i64::from(machine.options.cores),
        _ => return invalid(format!("device capability {info} is not supported")),
    };
    value.write(result)
}

pub(super) fn aclrtGetMemInfo(
    machine: &mut Runtime,
    _attr: i32,
    free: Out<usize>,
    total: Out<usize>,
) -> Outcome {
    machine.current()?;
    total.check()?;
    let left = machine.options.device_bytes.saturating_sub(machine.memory.used());
    free.write(left)?;
    total.write(machine.options.device_bytes)
}

pub(super) fn aclrtSynchronizeDevice(machine: &mut Runtime) -> Outcome {
    aclrtSynchronizeDeviceWithTimeout(machine, -1)
}

pub(super) fn aclrtSynchronizeDeviceWithTimeout(machine: &mut Runtime, timeout: i32) -> Outcome {
    refuse_blocking(machine, None)?;
    let device = machine.device()?;
    run_until(machine, WaitGoal::Device(device), timeout)
}
