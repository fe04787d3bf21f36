//! The rules of the simulator for contexts, streams, events and memory, tested by raw calls as a C
//! program makes them.

use std::ptr::{self, null_mut};

use crate::calls::*;
use avsg_sim::entries::*;
use avsg_sim::{Options, sys};

const TO_DEVICE: i32 = sys::ACL_MEMCPY_HOST_TO_DEVICE;
const STREAM_CONTEXT: i32 = sys::ACL_ERROR_RT_STREAM_CONTEXT;

#[test]
fn contexts_belong_to_threads_and_streams_to_contexts() {
    let session = begin(Options { devices: 2, ..no_jitter() });
    let first = create!(aclrtGetCurrentContext());
    assert_eq!(code!(aclInit(ptr::null())), sys::ACL_ERROR_REPEAT_INITIALIZE);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut none: Handle = null_mut();
            assert_eq!(code!(aclrtGetCurrentContext(&mut none)), sys::ACL_ERROR_RT_CONTEXT_NULL);
            assert_eq!(code!(aclrtMalloc(&mut none, 64, 0)), sys::ACL_ERROR_RT_CONTEXT_NULL);
        });
    });
    ok!(aclrtSetDevice(1));
    let other = create!(aclrtGetCurrentContext());
    assert_ne!(other, first, "the context of a device that is set becomes current");
    ok!(aclrtResetDevice(1));
    assert_eq!(code!(aclrtSetCurrentContext(other)), INVALID, "the context is released");
    ok!(aclrtSetCurrentContext(first));
    assert_eq!(code!(aclrtSetDevice(2)), sys::ACL_ERROR_RT_INVALID_DEVICEID);
    // Sets are counted: the first of two resets releases nothing.
    ok!(aclrtSetDevice(0), aclrtResetDevice(0));
    assert_eq!(create!(aclrtGetCurrentContext()), first);
    let stream = create!(aclrtCreateStream());
    ok!(aclrtSetDevice(1));
    assert_eq!(code!(aclrtRecordEvent(null_mut(), stream)), STREAM_CONTEXT);
    assert_eq!(code!(aclrtDestroyStream(stream)), STREAM_CONTEXT);
    let waited = code!(aclrtSynchronizeStreamWithTimeout(stream, 5));
    assert_eq!(waited, OK, "the only call that takes a stream of another context");
    ok!(aclrtSetCurrentContext(first), aclrtDestroyStream(stream));
    assert_eq!(code!(aclrtDestroyStream(stream)), INVALID, "freed twice");
    ok!(aclrtResetDevice(1));
    end(&session);
}

/// Copies through two streams, with or without a wait between them. Returns whether the data is
/// right.
fn hand_over(seed: u64, waits: bool) -> bool {
    let session = begin(Options { seed, ..no_jitter() });
    let (a, b) = (create!(aclrtCreateStream()), create!(aclrtCreateStream()));
    let device = create!(aclrtMalloc(64, 0));
    let (from, to) = (create!(aclrtMallocHost(64)), create!(aclrtMallocHost(64)));
    words(from, 8)[7] = 42;
    ok!(aclrtMemcpyAsync(device, 64, from, 64, TO_DEVICE, a));
    if waits {
        ok!(aclrtSynchronizeStream(a));
    }
    ok!(aclrtMemcpyAsync(to, 64, device, 64, TO_HOST, b));
    assert_ne!(words(to, 8)[7], 42, "no work has run before the wait");
    ok!(aclrtSynchronizeStream(b));
    let right = words(to, 8)[7] == 42;
    ok!(aclrtSynchronizeStream(a));
    ok!(aclrtDestroyStream(a), aclrtDestroyStream(b));
    ok!(aclrtFree(device), aclrtFreeHost(from), aclrtFreeHost(to));
    end(&session);
    right
}

#[test]
fn a_missing_wait_makes_some_results_wrong() {
    assert!((0..40).all(|seed| hand_over(seed, true)));
    let right = (0..40).filter(|&seed| hand_over(seed, false)).count();
    assert!((1..39).contains(&right), "{right} of 40 orders without the wait gave the right data");
}

#[test]
fn event_flags_and_elapsed_times_are_checked() {
    let session = begin(no_jitter());
    let (a, b) = (create!(aclrtCreateStream()), create!(aclrtCreateStream()));
    let timing = || create!(aclrtCreateEventExWithFlag(sys::ACL_EVENT_TIME_LINE as u32));
    let (start, stop) = (timing(), timing());
    let mut none: Handle = null_mut();
    assert_eq!(code!(aclrtCreateEventExWithFlag(&mut none, 1)), INVALID, "another flag");
    let (mut ms, wrong) = (0.0, sys::ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
    assert_eq!(code!(aclrtEventElapsedTime(&mut ms, start, stop)), wrong, "never recorded");
    ok!(aclrtRecordEvent(start, a), aclrtRecordEvent(stop, b), aclrtSynchronizeDevice());
    assert_eq!(code!(aclrtEventElapsedTime(&mut ms, start, stop)), wrong, "two streams");
    ok!(aclrtRecordEvent(stop, a), aclrtSynchronizeStream(a));
    ok!(aclrtEventElapsedTime(&mut ms, start, stop));
    assert!(ms > 0.0);
    ok!(aclrtDestroyEvent(start), aclrtDestroyEvent(stop));
    ok!(aclrtDestroyStream(a), aclrtDestroyStream(b));
    end(&session);
}

#[test]
fn memory_calls_check_sizes_owners_registrations_and_queued_work() {
    let (device_bytes, registration_bytes) = (1 << 20, 1 << 20);
    let session = begin(Options { device_bytes, registration_bytes, ..no_jitter() });
    let stream = create!(aclrtCreateStream());
    let device = create!(aclrtMalloc(4096, 0));
    let host = create!(aclrtMallocHost(8192));
    let mut none: Handle = null_mut();
    assert_eq!(code!(aclrtMalloc(&mut none, 1 << 20, 0)), sys::ACL_ERROR_RT_MEMORY_ALLOCATION);
    assert_eq!(code!(aclrtMalloc(&mut none, 0, 0)), sys::ACL_ERROR_INVALID_PARAM);
    assert_eq!(code!(aclrtFree(host)) + code!(aclrtFreeHost(device)), 2 * INVALID);
    // The host cannot access device memory.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let at = device as usize;
    let line = maps.lines().find(|line| {
        let (from, rest) = line.split_once('-').unwrap();
        let to = rest.split(' ').next().unwrap();
        let hex = |text| usize::from_str_radix(text, 16).unwrap();
        (hex(from)..hex(to)).contains(&at)
    });
    assert!(line.is_some_and(|line| line.contains("---p")), "{line:?}");
    let refused = code!(aclrtMemcpy(device, 16, host, 32, TO_DEVICE));
    assert_eq!(refused, INVALID, "larger than the destination");
    let past = device.wrapping_byte_add(4090);
    let refused = code!(aclrtMemcpy(past, 16, host, 16, TO_DEVICE));
    assert_eq!(refused, INVALID, "past the end of the allocation");
    let twice = code!(aclrtMemcpyAsync(host, 8, host.wrapping_byte_add(64), 8, 0, stream));
    assert_eq!(twice, sys::ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "host to host");
    let mut mapped: Handle = null_mut();
    let odd = host.wrapping_byte_add(64);
    assert_eq!(code!(aclrtHostRegister(odd, 4096, 0, &mut mapped)), INVALID, "alignment");
    let large = code!(aclrtHostRegister(host, 2 << 20, 0, &mut mapped));
    assert_eq!(large, sys::ACL_ERROR_RT_MEMORY_ALLOCATION);
    let kind = code!(aclrtHostRegister(host, 8192, 4, &mut mapped));
    assert_eq!(kind, sys::ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    ok!(aclrtHostRegister(host, 8192, 0, &mut mapped));
    assert!(!mapped.is_null() && mapped != host);
    let first = mapped;
    let page = host.wrapping_byte_add(4096);
    let again = code!(aclrtHostRegister(page, 4096, 0, &mut mapped));
    assert_eq!(again, sys::ACL_ERROR_RT_HOST_MEMORY_ALREADY_REGISTERED);
    assert_eq!(mapped, first, "a call that failed gives nothing");
    assert_eq!(code!(aclrtMemcpy(device, 8, mapped, 8, TO_DEVICE)), INVALID, "for kernels only");
    ok!(aclrtMemcpy(device, 8, host, 8, TO_DEVICE));
    assert_eq!(code!(aclrtFreeHost(host)), INVALID, "still registered");
    ok!(aclrtHostUnregister(host));
    let twice = code!(aclrtHostUnregister(host));
    assert_eq!(twice, sys::ACL_ERROR_RT_HOST_MEMORY_NOT_REGISTERED);
    ok!(aclrtMemcpyAsync(device, 8, host, 8, TO_DEVICE, stream));
    assert_eq!(code!(aclrtFree(device)), INVALID, "a copy is in flight");
    assert_eq!(code!(aclrtFreeHost(host)), INVALID, "a copy is in flight");
    // A copy to pageable memory is done when the call returns, after the earlier work of the
    // stream.
    let mut pageable = [0u64; 2];
    words(host, 2).fill(9);
    let to = pageable.as_mut_ptr().cast();
    ok!(aclrtMemcpyAsync(to, 8, device, 8, TO_HOST, stream));
    assert_eq!(pageable, [9, 0]);
    ok!(aclrtFree(device), aclrtDestroyStream(stream));
    assert_eq!(code!(aclrtFree(device)), INVALID, "freed twice");
    assert_eq!(session.leaks().len(), 2, "the host memory and the device: {:?}", session.leaks());
    ok!(aclrtFreeHost(host));
    end(&session);
}
