//! Memory, copies, host registration.
#![expect(non_snake_case, reason = "the runtime's own names")]

use std::ffi::c_void;

use super::{give, not_null};
use crate::capture::{enqueue, refuse_waiting};
use crate::fault::{Outcome, fail, invalid};
use crate::registry::number;
use crate::schedule::{self, Goal, reach};
use crate::sys;
use crate::task::Task;
use crate::world::World;

pub(super) unsafe fn aclrtMalloc(
    w: &mut World,
    at: *mut *mut c_void,
    bytes: usize,
    policy: i32,
) -> Outcome {
    not_null(at)?;
    let device = w.device()?;
    if !(0..=7).contains(&policy) {
        return invalid(format!("allocation policy {policy}"));
    }
    let made = w.memory.malloc(bytes, device, w.options.device_bytes)?;
    // SAFETY: the caller's contract.
    unsafe { give(at, made as *mut c_void) }
}

pub(super) unsafe fn aclrtFree(w: &mut World, at: *mut c_void) -> Outcome {
    w.current()?;
    let bytes = w.memory.range_bytes(number(at)).unwrap_or(0);
    w.refuse_in_flight(number(at), bytes, false)?;
    w.memory.free(number(at))
}

pub(super) unsafe fn aclrtMallocHost(w: &mut World, at: *mut *mut c_void, bytes: usize) -> Outcome {
    not_null(at)?;
    w.current()?;
    let made = w.memory.malloc_host(bytes)?;
    // SAFETY: the caller's contract.
    unsafe { give(at, made as *mut c_void) }
}

pub(super) unsafe fn aclrtFreeHost(w: &mut World, at: *mut c_void) -> Outcome {
    w.current()?;
    let bytes = w.memory.pinned_bytes(number(at)).unwrap_or(0);
    w.refuse_in_flight(number(at), bytes, false)?;
    w.memory.free_host(number(at))
}

/// What every copy must keep.
fn checked(w: &World, to: u64, max: usize, from: u64, bytes: usize, kind: Option<i32>) -> Outcome {
    if to == 0 || from == 0 {
        return fail(sys::ACL_ERROR_INVALID_PARAM, "a null pointer");
    }
    if bytes > max {
        return invalid(format!("{bytes} bytes into a target of {max}"));
    }
    let (to_device, from_device) = (w.memory.is_device(to), w.memory.is_device(from));
    for (at, device) in [(to, to_device), (from, from_device)] {
        if device {
            w.memory.device_range(at, bytes)?;
        }
    }
    let fits = match kind {
        Some(sys::ACL_MEMCPY_HOST_TO_HOST) => {
            return fail(sys::ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "a copy from host to host");
        }
        Some(sys::ACL_MEMCPY_HOST_TO_DEVICE) => to_device && !from_device,
        Some(sys::ACL_MEMCPY_DEVICE_TO_HOST) => !to_device && from_device,
        Some(sys::ACL_MEMCPY_DEVICE_TO_DEVICE) => to_device && from_device,
        Some(4) | None => to_device || from_device,
        Some(kind) => return invalid(format!("copy kind {kind}")),
    };
    if !fits {
        return invalid(format!("a copy of kind {kind:?} from {from:#x} to {to:#x}"));
    }
    Ok(())
}

pub(super) unsafe fn aclrtMemcpy(
    w: &mut World,
    to: *mut c_void,
    max: usize,
    from: *const c_void,
    bytes: usize,
    _kind: i32,
) -> Outcome {
    w.current()?;
    if bytes == 0 {
        return Ok(());
    }
    // The kind is reserved; addresses tell. Streams are not waited for.
    checked(w, number(to), max, number(from), bytes, None)?;
    refuse_waiting(w, None)?;
    schedule::copy(w, number(to), number(from), bytes)
}

pub(super) unsafe fn aclrtMemcpyAsync(
    w: &mut World,
    to: *mut c_void,
    max: usize,
    from: *const c_void,
    bytes: usize,
    kind: i32,
    stream: *mut c_void,
) -> Outcome {
    w.own_stream(number(stream))?;
    if bytes == 0 {
        return Ok(());
    }
    let (to, from) = (number(to), number(from));
    checked(w, to, max, from, bytes, Some(kind))?;
    let pageable = |at: u64| !w.memory.is_device(at) && !w.memory.is_pinned(at, bytes);
    let waits = pageable(to) || pageable(from);
    if waits {
        refuse_waiting(w, Some(number(stream)))?;
    }
    enqueue(w, number(stream), Task::Copy { to, from, bytes })?;
    if waits {
        // Pageable memory: it returns only after the copy.
        let goal = Goal::Stream(number(stream));
        reach(w, goal, -1, sys::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)?;
    }
    Ok(())
}

pub(super) unsafe fn aclrtMemset(
    w: &mut World,
    at: *mut c_void,
    max: usize,
    value: i32,
    bytes: usize,
) -> Outcome {
    w.current()?;
    if bytes > max {
        return invalid(format!("{bytes} bytes of a target of {max}"));
    }
    refuse_waiting(w, None)?;
    schedule::set(w, number(at), value as u8, bytes)
}

pub(super) unsafe fn aclrtMemsetAsync(
    w: &mut World,
    at: *mut c_void,
    max: usize,
    value: i32,
    bytes: usize,
    stream: *mut c_void,
) -> Outcome {
    w.own_stream(number(stream))?;
    if bytes > max {
        return invalid(format!("{bytes} bytes of a target of {max}"));
    }
    w.memory.device_range(number(at), bytes)?;
    enqueue(w, number(stream), Task::Set { at: number(at), value: value as u8, bytes })
}

#[expect(clippy::too_many_arguments, reason = "the runtime's own signature")]
pub(super) unsafe fn aclrtMemcpyBatchAsync(
    w: &mut World,
    to: *mut *mut c_void,
    max: *mut usize,
    from: *mut *mut c_void,
    bytes: *mut usize,
    count: usize,
    attrs: *mut sys::aclrtMemcpyBatchAttr,
    indexes: *mut usize,
    attr_count: usize,
    fail_index: *mut usize,
    stream: *mut c_void,
) -> Outcome {
    not_null(to)?;
    not_null(max)?;
    not_null(from)?;
    not_null(bytes)?;
    not_null(attrs)?;
    not_null(indexes)?;
    not_null(fail_index)?;
    w.own_stream(number(stream))?;
    // SAFETY: not null, hence valid by the caller's contract, here and below.
    let item = |i: usize| unsafe { (*to.add(i), *max.add(i), *from.add(i), *bytes.add(i)) };
    // SAFETY: as above.
    unsafe { fail_index.write(usize::MAX) };
    // SAFETY: as above.
    let index = |i: usize| unsafe { *indexes.add(i) };
    let ascends = (1..attr_count).all(|i| index(i - 1) < index(i) && index(i) < count);
    if attr_count == 0 || count == 0 || index(0) != 0 || !ascends {
        return invalid("the attributes' indexes begin with 0 and ascend");
    }
    let mut tasks = Vec::with_capacity(count);
    let mut way = None;
    for i in 0..count {
        let (to, max, from, bytes) = item(i);
        let (to, from) = (number(to), number(from));
        let to_device = w.memory.is_device(to);
        let one_way = *way.get_or_insert(to_device) == to_device;
        let good = checked(w, to, max, from, bytes, None);
        if let (Ok(()), true) = (&good, one_way && to_device != w.memory.is_device(from)) {
            tasks.push(Task::Copy { to, from, bytes });
            continue;
        }
        // SAFETY: as above.
        unsafe { fail_index.write(i) };
        return good.and(invalid("a batch goes one way, host to device or back"));
    }
    // Nothing orders the copies of a batch.
    while !tasks.is_empty() {
        let next = (w.draw() % tasks.len() as u64) as usize;
        enqueue(w, number(stream), tasks.swap_remove(next))?;
    }
    Ok(())
}

pub(super) unsafe fn aclrtHostRegister(
    w: &mut World,
    at: *mut c_void,
    bytes: u64,
    kind: i32,
    device: *mut *mut c_void,
) -> Outcome {
    not_null(device)?;
    if kind != sys::ACL_HOST_REGISTER_MAPPED {
        return fail(sys::ACL_ERROR_RT_FEATURE_NOT_SUPPORT, format!("registration type {kind}"));
    }
    let mapped = register(w, number(at), bytes)?;
    // SAFETY: the caller's contract.
    unsafe { give(device, mapped as *mut c_void) }
}

fn register(w: &mut World, at: u64, bytes: u64) -> Outcome<u64> {
    let (device, cap) = (w.device()?, w.options.registration_bytes);
    w.memory.register(at, bytes as usize, device, cap)
}

pub(super) unsafe fn aclrtHostUnregister(w: &mut World, at: *mut c_void) -> Outcome {
    w.current()?;
    let bytes = w.memory.registered(number(at)).map_or(0, |r| r.bytes);
    // Any queued kernel may read it.
    w.refuse_in_flight(number(at), bytes, bytes != 0)?;
    w.memory.unregister(number(at))
}

pub(super) unsafe fn aclrtHostRegisterV2(
    w: &mut World,
    at: *mut c_void,
    bytes: u64,
    flag: u32,
) -> Outcome {
    let pinned = sys::ACL_HOST_REG_PINNED.unsigned_abs();
    let known = sys::ACL_HOST_REG_MAPPED.unsigned_abs() | 4 | 8 | pinned;
    if flag == 0 || flag & !known != 0 {
        return invalid(format!("registration flag {flag:#x}"));
    }
    if flag & pinned != 0 && w.memory.is_pinned(number(at), 1) {
        return invalid("the memory is pinned already");
    }
    register(w, number(at), bytes).map(drop)
}

pub(super) unsafe fn aclrtHostGetDevicePointer(
    w: &mut World,
    at: *mut c_void,
    device: *mut *mut c_void,
    flag: u32,
) -> Outcome {
    not_null(device)?;
    match w.memory.registered(number(at)) {
        // SAFETY: the caller's contract.
        Some(found) if flag == 0 => unsafe { give(device, found.mapped as *mut c_void) },
        _ => invalid(format!("{:#x} is not registered, or flag {flag} is not 0", number(at))),
    }
}
