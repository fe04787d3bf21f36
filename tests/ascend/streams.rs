//! Steps with device arrays on the Ascend device: streams of the caller and captured steps.

use avsg::ascend::acl::Stream;
use avsg::engine::DeviceFresh;
use avsg_sim::Options;
use avsg_testkit::memory;

use crate::harness::seeded;
use crate::random_workload::{RandomWorkload, in_a_stream};

/// What a queued step calls: it updates arguments and launches kernels, and calls nothing that waits or allocates.
const QUEUED: [&str; 5] = [
    "aclrtGetCurrentContext",
    "aclrtGetStreamResLimit",
    "aclrtKernelArgsParaUpdate",
    "aclrtKernelArgsFinalize",
    "aclrtLaunchKernelWithConfig",
];

/// Replays one captured step, or queues each, over a random workload with joins, leaves, permuted states, padded
/// requests, any number of tokens, invalid ids and fresh rows.
#[test]
fn a_captured_step_is_replayed_over_a_workload_and_neither_waits_nor_allocates() {
    for (one_launch, captured, steps) in [(false, true, 60), (true, true, 60), (false, false, 3)] {
        in_a_stream(seeded(4), 12, one_launch, |mut at| {
            let before = at.session.launches();
            let graph = captured.then(|| at.capture());
            assert_eq!(at.session.launches(), before, "captured work does not run");
            let replay = ["aclrtGetCurrentContext", "aclmdlRIExecuteAsync"];
            let allowed = if captured { &replay[..] } else { &QUEUED };
            for _ in 0..steps {
                at.workload.next_step();
                let before = at.session.calls().len();
                at.submit(graph.as_ref());
                let calls = at.session.calls()[before..].to_vec();
                assert!(calls.iter().all(|call| allowed.contains(call)), "{calls:?}");
                let launches = calls.iter().filter(|call| **call == QUEUED[4]).count();
                assert_eq!(launches, if captured { 0 } else { 5 });
                at.wait();
                at.workload.compare();
            }
            assert!(!captured || at.workload.compared_slots > 10_000);
        });
    }
}

/// The host sees appended rows after it has waited for their stream. Queueing the append or waiting
/// for another stream is not enough.
#[test]
fn appended_rows_are_in_the_pool_after_their_stream_was_waited_for() {
    in_a_stream(Options { seed: 2, jitter: 0, ..Options::default() }, 9, false, |mut at| {
        let other = Stream::new(at.context).unwrap();
        let pool_rows = |workload: &RandomWorkload| memory::read_rows(workload.ascend.pool());
        let mut appended = 0;
        for _ in 0..20 {
            at.workload.next_step();
            let before = pool_rows(&at.workload);
            let workload = &mut at.workload;
            let arrays = &workload.device_arrays;
            let (batch, rows) = (arrays.batch(), arrays.fresh(0));
            let fresh = DeviceFresh { segments: &rows };
            // SAFETY: all memory is dropped after the stream was waited for.
            unsafe {
                workload.ascend.enqueue_append(&batch, 0, &[0], &fresh, at.stream.raw()).unwrap()
            };
            other.synchronize(1000).unwrap();
            assert!(pool_rows(&at.workload) == before, "the append has not run yet");
            at.wait();
            let after = pool_rows(&at.workload);
            let changed =
                after.chunks(48).zip(before.chunks(48)).filter(|(now, then)| now != then).count();
            assert_eq!(changed, at.workload.step_input().appended_rows(), "changed rows");
            appended += changed;
        }
        assert!(appended > 10, "{appended} rows");
    });
}
