//! The functions for memory, copies and the registration of host memory.
#![expect(non_snake_case, reason = "the runtime's own names")]

use super::argument::{Handle, Out};
use crate::capture::{enqueue, refuse_blocking};
use crate::fault::{Outcome, fail, invalid};
use crate::machine::Runtime;
use crate::schedule::{self, WaitGoal, run_until};
use crate::sys;
use crate::task::Task;

pub(super) fn aclrtMalloc(
    machine: &mut Runtime,
    at: Out<Handle>,
    bytes: usize,
    policy: i32,
) -> Outcome {
    at.check()?;
    let device = machine.device()?;
    if !(0..=7).contains(&policy) {
        return invalid(format!("allocation policy {policy} is not in 0..=7"));
    }
    let address = machine.memory.malloc(bytes, device, machine.options.device_bytes)?;
    at.handle(address)
}

pub(super) fn aclrtFree(machine: &mut Runtime, at: u64) -> Outcome {
    machine.current()?;
    let bytes = machine.memory.range_bytes(at).unwrap_or(0);
    machine.refuse_in_flight(at, bytes, false)?;
    machine.memory.free(at)
}

pub(super) fn aclrtMallocHost(machine: &mut Runtime, at: Out<Handle>, bytes: usize) -> Outcome {
    at.check()?;
    machine.current()?;
    let address = machine.memory.malloc_host(bytes)?;
    at.handle(address)
}

pub(super) fn aclrtFreeHost(machine: &mut Runtime, at: u64) -> Outcome {
    machine.current()?;
    let bytes = machine.memory.pinned_bytes(at).unwrap_or(0);
    machine.refuse_in_flight(at, bytes, false)?;
    machine.memory.free_host(at)
}

/// Checks the addresses, the size and the direction of a copy.
fn check_copy(
    machine: &Runtime,
    to: u64,
    max: usize,
    from: u64,
    bytes: usize,
    kind: Option<i32>,
) -> Outcome {
    if to == 0 || from == 0 {
        return fail(sys::ACL_ERROR_INVALID_PARAM, "a null pointer");
    }
    if bytes > max {
        return invalid(format!("{bytes} bytes do not fit the destination of {max} bytes"));
    }
    let (to_device, from_device) = (machine.memory.is_device(to), machine.memory.is_device(from));
    for (at, device) in [(to, to_device), (from, from_device)] {
        if device {
            machine.memory.device_range(at, bytes)?;
        }
    }
    let fits = match kind {
        Some(sys::ACL_MEMCPY_HOST_TO_HOST) => {
            return fail(
                sys::ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "copies from host to host are not supported",
            );
        }
        Some(sys::ACL_MEMCPY_HOST_TO_DEVICE) => to_device && !from_device,
        Some(sys::ACL_MEMCPY_DEVICE_TO_HOST) => !to_device && from_device,
        Some(sys::ACL_MEMCPY_DEVICE_TO_DEVICE) => to_device && from_device,
        Some(4) | None => to_device || from_device,
        Some(kind) => return invalid(format!("copy kind {kind} is unknown")),
    };
    if !fits {
        return invalid(format!(
            "copy kind {kind:?} does not match the addresses {from:#x} (source) and {to:#x}"
        ));
    }
    Ok(())
}

pub(super) fn aclrtMemcpy(
    machine: &mut Runtime,
    to: u64,
    max: usize,
    from: u64,
    bytes: usize,
    _kind: i32,
) -> Outcome {
    machine.current()?;
    if bytes == 0 {
        return Ok(());
    }
    // The runtime ignores the kind, as the addresses determine it. The call does not wait for
    // streams.
    check_copy(machine, to, max, from, bytes, None)?;
    refuse_blocking(machine, None)?;
    schedule::copy(machine, to, from, bytes)
}

pub(super) fn aclrtMemcpyAsync(
    machine: &mut Runtime,
    to: u64,
    max: usize,
    from: u64,
    bytes: usize,
    kind: i32,
    stream: u64,
) -> Outcome {
    machine.own_stream(stream)?;
    if bytes == 0 {
        return Ok(());
    }
    check_copy(machine, to, max, from, bytes, Some(kind))?;
    let pageable = |at: u64| !machine.memory.is_device(at) && !machine.memory.is_pinned(at, bytes);
    let waits = pageable(to) || pageable(from);
    if waits {
        refuse_blocking(machine, Some(stream))?;
    }
    enqueue(machine, stream, Task::Copy { to, from, bytes })?;
    if waits {
        // A copy of pageable memory returns after the copy is complete.
        run_until(machine, WaitGoal::Stream(stream), -1)?;
    }
    Ok(())
}

pub(super) fn aclrtMemset(
    machine: &mut Runtime,
    at: u64,
    max: usize,
    value: i32,
    bytes: usize,
) -> Outcome {
    machine.current()?;
    if bytes > max {
        return invalid(format!("{bytes} bytes exceed the destination of {max} bytes"));
    }
    refuse_blocking(machine, None)?;
    schedule::set(machine, at, value as u8, bytes)
}

pub(super) fn aclrtHostRegister(
    machine: &mut Runtime,
    at: u64,
    bytes: u64,
    kind: i32,
    device: Out<Handle>,
) -> Outcome {
    device.check()?;
    if kind != sys::ACL_HOST_REGISTER_MAPPED {
        return fail(
            sys::ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
            format!("registration type {kind} is not supported"),
        );
    }
    let (device_number, cap) = (machine.device()?, machine.options.registration_bytes);
    let mapped = machine.memory.register(at, bytes as usize, device_number, cap)?;
    device.handle(mapped)
}

pub(super) fn aclrtHostUnregister(machine: &mut Runtime, at: u64) -> Outcome {
    machine.current()?;
    let bytes = machine.memory.registered(at).map_or(0, |r| r.bytes);
    // Any queued kernel may access registered memory.
    machine.refuse_in_flight(at, bytes, bytes != 0)?;
    machine.memory.unregister(at)
}
