//! Steps with device arrays on the Ascend device: streams of the caller and captured steps. Work that is not
//! ordered gives wrong rows.

use avsg::ascend::acl::{DeviceMemory, Event, Stream};
use avsg::ascend::simulated;
use avsg::engine::{DeviceArray, DeviceBatch, DeviceFresh};
use avsg_sim::Options;

use crate::harness::seeded;
use crate::random_workload::{RandomWorkload, in_a_stream};

/// Replays one captured step over a random workload with joins, leaves, permuted states, padded
/// requests, any number of tokens, invalid ids and fresh rows.
#[test]
fn a_captured_step_is_replayed_over_a_workload() {
    for one_launch in [false, true] {
        in_a_stream(seeded(4), 12, one_launch, |mut at| {
            let before = at.session.launches();
            let graph = at.capture();
            assert_eq!(at.session.launches(), before, "captured work does not run");
            for _ in 0..60 {
                at.workload.next_step();
                let before = at.session.calls().len();
                at.stream.replay(&graph).unwrap();
                let calls = at.session.calls()[before..].to_vec();
                let allowed = ["aclrtGetCurrentContext", "aclmdlRIExecuteAsync"];
                assert!(
                    calls.iter().all(|call| allowed.contains(call)),
                    "a replay makes no other calls: {calls:?}"
                );
                at.wait();
                at.workload.compare();
            }
            assert!(at.workload.pair.compared_slots > 10_000);
        });
    }
}

/// A queued step updates arguments and launches kernels. It calls nothing that waits or allocates.
#[test]
fn a_queued_step_neither_waits_nor_allocates() {
    in_a_stream(Options::default(), 13, false, |mut at| {
        for _ in 0..3 {
            at.workload.next_step();
            let before = at.session.calls().len();
            at.enqueue();
            let calls = at.session.calls()[before..].to_vec();
            let allowed = [
                "aclrtGetCurrentContext",
                "aclrtGetStreamResLimit",
                "aclrtKernelArgsParaUpdate",
                "aclrtKernelArgsFinalize",
                "aclrtLaunchKernelWithConfig",
            ];
            assert!(calls.iter().all(|call| allowed.contains(call)), "{calls:?}");
            assert_eq!(calls.iter().filter(|c| **c == "aclrtLaunchKernelWithConfig").count(), 5);
            at.wait();
            at.workload.compare();
        }
    });
}

/// Appends the rows of a step in one stream and gathers them in another. Returns whether the
/// gathered rows are exact.
fn gather_after_append(seed: u64, event_between: bool) -> bool {
    in_a_stream(Options { seed, jitter: 0, ..Options::default() }, 7, false, |mut at| {
        let gathers = Stream::new(at.context).unwrap();
        let appended = Event::sync(at.context).unwrap();
        let mut exact = true;
        for _ in 0..6 {
            at.workload.next_step();
            let pair = &mut at.workload.pair;
            let batch = pair.device_arrays.batch();
            let rows = [0, 1].map(|layer| pair.device_arrays.fresh(layer));
            // SAFETY: all memory is dropped after the streams were waited for.
            unsafe {
                for (layer, rows) in rows.iter().enumerate() {
                    let (fresh, stream) = (DeviceFresh { segments: rows }, at.stream.raw());
                    pair.ascend.enqueue_append(&batch, 0, layer, &fresh, stream).unwrap();
                }
                if event_between {
                    appended.record(&at.stream).unwrap();
                    gathers.wait(&appended).unwrap();
                }
                // The gather is given no fresh rows, so it reads them from the pool.
                exact &= gather_from_pool(&mut at.workload, &batch, &gathers);
            }
            at.wait();
        }
        exact
    })
}

/// Runs a step that reads all rows from the pool, and returns whether the rows that this step
/// appends are exact in their slots.
///
/// # Safety
/// The conditions of [`avsg::engine::Engine::enqueue_step`] must hold.
unsafe fn gather_from_pool(
    workload: &mut RandomWorkload,
    batch: &DeviceBatch,
    stream: &Stream,
) -> bool {
    // With a stable length of -1 no row is fresh.
    let minus_one = DeviceMemory::copied(&simulated::context().unwrap(), &[0xFF; 16]).unwrap();
    let stable_len = DeviceArray { address: minus_one.address(), len: minus_one.len() / 4 };
    let without_fresh = DeviceBatch { stable_len, ..*batch };
    let (engine, plan) = (&mut workload.pair.ascend, &mut workload.pair.ascend_plan);
    // SAFETY: the batch and the stream are valid until the work is done (`# Safety`), and so is `minus_one`.
    unsafe {
        engine.enqueue_step(&without_fresh, plan, 0, None, stream.raw()).unwrap();
        engine.enqueue_transfer(plan, 1, None, stream.raw()).unwrap();
    }
    stream.synchronize(1000).unwrap();
    workload.fresh_rows_are_exact()
}

#[test]
fn a_gather_that_does_not_wait_for_the_append_is_wrong() {
    let every = (0..12).all(|seed| gather_after_append(seed, true));
    assert!(every, "with the event every row is exact");
    let exact = (0..12).filter(|&seed| gather_after_append(seed, false)).count();
    assert!(exact < 12, "without the event some gather must run before its append");
}

/// Runs steps that read their fresh rows from device memory or from the pool, to which they are
/// only appended at the end of the step. Returns whether the fresh rows are exact.
fn read_fresh_rows(from_pool: bool) -> bool {
    in_a_stream(seeded(2), 7, false, |mut at| {
        let mut exact = true;
        for _ in 0..6 {
            at.workload.next_step();
            let batch = at.workload.pair.device_arrays.batch();
            if from_pool {
                // SAFETY: all memory is dropped after the stream was waited for.
                exact &= unsafe { gather_from_pool(&mut at.workload, &batch, &at.stream) };
            }
            at.enqueue();
            at.wait();
            if !from_pool {
                exact &= at.workload.fresh_rows_are_exact();
            }
        }
        exact
    })
}

#[test]
fn a_fresh_row_read_from_the_pool_is_wrong() {
    assert!(read_fresh_rows(false), "fresh rows in device memory are exact");
    assert!(!read_fresh_rows(true), "the pool does not contain the fresh rows yet");
}

/// The host sees appended rows after it has waited for their stream. Queueing the append or waiting
/// for another stream is not enough.
#[test]
fn appended_rows_are_in_the_pool_after_their_stream_was_waited_for() {
    in_a_stream(Options { seed: 2, jitter: 0, ..Options::default() }, 9, false, |mut at| {
        let other = Stream::new(at.context).unwrap();
        let pool_rows = |workload: &RandomWorkload| {
            let pool = workload.pair.ascend.pool();
            let mut rows = vec![[0; 48]; pool.rows()];
            for (index, row) in rows.iter_mut().enumerate() {
                pool.read_row(0, index, row).unwrap();
            }
            rows
        };
        let mut appended = 0;
        for _ in 0..20 {
            at.workload.next_step();
            let before = pool_rows(&at.workload);
            let pair = &mut at.workload.pair;
            let (batch, rows) = (pair.device_arrays.batch(), pair.device_arrays.fresh(0));
            let fresh = DeviceFresh { segments: &rows };
            // SAFETY: all memory is dropped after the stream was waited for.
            unsafe { pair.ascend.enqueue_append(&batch, 0, 0, &fresh, at.stream.raw()).unwrap() };
            other.synchronize(1000).unwrap();
            assert!(pool_rows(&at.workload) == before, "the append has not run yet");
            at.wait();
            let after = pool_rows(&at.workload);
            let changed = after.iter().zip(&before).filter(|(now, then)| now != then).count();
            assert_eq!(changed, at.workload.step_input().appended_rows(), "changed rows");
            appended += changed;
        }
        assert!(appended > 10, "{appended} rows");
    });
}
