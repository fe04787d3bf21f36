//! The functions for memory, copies and the registration of host memory.
#![expect(non_snake_case, reason = "the runtime's own names")]

use std::ffi::c_void;

use super::{not_null, write_result};
use crate::capture::{enqueue, refuse_blocking};
use crate::fault::{Outcome, fail, invalid};
use crate::machine::Machine;
use crate::registry::handle_value;
use crate::schedule::{self, WaitGoal, run_until};
use crate::sys;
use crate::task::Task;

pub(super) unsafe fn aclrtMalloc(
    machine: &mut Machine,
    at: *mut *mut c_void,
    bytes: usize,
    policy: i32,
) -> Outcome {
    not_null(at)?;
    let device = machine.device()?;
    if !(0..=7).contains(&policy) {
        return invalid(format!("allocation policy {policy} is not in 0..=7"));
    }
    let address = machine.memory.malloc(bytes, device, machine.options.device_bytes)?;
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(at, address as *mut c_void) }
}

pub(super) unsafe fn aclrtFree(machine: &mut Machine, at: *mut c_void) -> Outcome {
    machine.current()?;
    let bytes = machine.memory.range_bytes(handle_value(at)).unwrap_or(0);
    machine.refuse_in_flight(handle_value(at), bytes, false)?;
    machine.memory.free(handle_value(at))
}

pub(super) unsafe fn aclrtMallocHost(
    machine: &mut Machine,
    at: *mut *mut c_void,
    bytes: usize,
) -> Outcome {
    not_null(at)?;
    machine.current()?;
    let address = machine.memory.malloc_host(bytes)?;
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(at, address as *mut c_void) }
}

pub(super) unsafe fn aclrtFreeHost(machine: &mut Machine, at: *mut c_void) -> Outcome {
    machine.current()?;
    let bytes = machine.memory.pinned_bytes(handle_value(at)).unwrap_or(0);
    machine.refuse_in_flight(handle_value(at), bytes, false)?;
    machine.memory.free_host(handle_value(at))
}

/// Checks the addresses, the size and the direction of a copy.
fn check_copy(
    machine: &Machine,
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

pub(super) unsafe fn aclrtMemcpy(
    machine: &mut Machine,
    to: *mut c_void,
    max: usize,
    from: *const c_void,
    bytes: usize,
    _kind: i32,
) -> Outcome {
    machine.current()?;
    if bytes == 0 {
        return Ok(());
    }
    // The runtime ignores the kind, as the addresses determine it. The call does not wait for
    // streams.
    check_copy(machine, handle_value(to), max, handle_value(from), bytes, None)?;
    refuse_blocking(machine, None)?;
    schedule::copy(machine, handle_value(to), handle_value(from), bytes)
}

pub(super) unsafe fn aclrtMemcpyAsync(
    machine: &mut Machine,
    to: *mut c_void,
    max: usize,
    from: *const c_void,
    bytes: usize,
    kind: i32,
    stream: *mut c_void,
) -> Outcome {
    machine.own_stream(handle_value(stream))?;
    if bytes == 0 {
        return Ok(());
    }
    let (to, from) = (handle_value(to), handle_value(from));
    check_copy(machine, to, max, from, bytes, Some(kind))?;
    let pageable = |at: u64| !machine.memory.is_device(at) && !machine.memory.is_pinned(at, bytes);
    let waits = pageable(to) || pageable(from);
    if waits {
        refuse_blocking(machine, Some(handle_value(stream)))?;
    }
    enqueue(machine, handle_value(stream), Task::Copy { to, from, bytes })?;
    if waits {
        // A copy of pageable memory returns after the copy is complete.
        let goal = WaitGoal::Stream(handle_value(stream));
        run_until(machine, goal, -1, sys::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)?;
    }
    Ok(())
}

pub(super) unsafe fn aclrtMemset(
    machine: &mut Machine,
    at: *mut c_void,
    max: usize,
    value: i32,
    bytes: usize,
) -> Outcome {
    machine.current()?;
    if bytes > max {
        return invalid(format!("{bytes} bytes exceed the destination of {max} bytes"));
    }
    refuse_blocking(machine, None)?;
    schedule::set(machine, handle_value(at), value as u8, bytes)
}

pub(super) unsafe fn aclrtMemsetAsync(
    machine: &mut Machine,
    at: *mut c_void,
    max: usize,
    value: i32,
    bytes: usize,
    stream: *mut c_void,
) -> Outcome {
    machine.own_stream(handle_value(stream))?;
    if bytes > max {
        return invalid(format!("{bytes} bytes exceed the destination of {max} bytes"));
    }
    machine.memory.device_range(handle_value(at), bytes)?;
    enqueue(
        machine,
        handle_value(stream),
        Task::Set { at: handle_value(at), value: value as u8, bytes },
    )
}

pub(super) unsafe fn aclrtHostRegister(
    machine: &mut Machine,
    at: *mut c_void,
    bytes: u64,
    kind: i32,
    device: *mut *mut c_void,
) -> Outcome {
    not_null(device)?;
    if kind != sys::ACL_HOST_REGISTER_MAPPED {
        return fail(
            sys::ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
            format!("registration type {kind} is not supported"),
        );
    }
    let (device_number, cap) = (machine.device()?, machine.options.registration_bytes);
    let (at, bytes) = (handle_value(at), bytes as usize);
    let mapped = machine.memory.register(at, bytes, device_number, cap)?;
    // SAFETY: the caller keeps the contract of `entry` (`# Safety`).
    unsafe { write_result(device, mapped as *mut c_void) }
}

pub(super) unsafe fn aclrtHostUnregister(machine: &mut Machine, at: *mut c_void) -> Outcome {
    machine.current()?;
    let bytes = machine.memory.registered(handle_value(at)).map_or(0, |r| r.bytes);
    // Any queued kernel may access registered memory.
    machine.refuse_in_flight(handle_value(at), bytes, bytes != 0)?;
    machine.memory.unregister(handle_value(at))
}
