//! Failures of work in a stream of the caller beside those of single calls: captures that are refused, kernels
//! that hang or raise exceptions in a graph, and calls that are refused.

use avsg::ascend::acl::Stream;
use avsg::ascend::simulated;
use avsg::engine::DeviceBatch;
use avsg_sim::Session;
use avsg_testkit::device_arrays::DeviceArrays;

use crate::faults::{STEPS, TIMEOUT_MS, workload};
use crate::harness::{expect_refusal, fail_next, in_session, on_ascend, seeded};
use crate::small::{self, K};

/// After a failure the tables are reset. A capture must not contain the reset: every replay would
/// do it again, and a discarded capture would never do it although the engine counts it as done.
#[test]
fn a_capture_that_would_contain_a_reset_is_refused() {
    in_session(seeded(7), |session, context| {
        let mut workload = workload(session, context, false).unwrap();
        let stream = Stream::new(context).unwrap();
        workload.next_step();
        // The launch of the plan succeeds and that of the transfer fails.
        fail_next(session, "aclrtLaunchKernelWithConfig", 2);
        workload.enqueue(stream.raw()).unwrap_err();
        stream.synchronize(TIMEOUT_MS).unwrap();
        let refused = workload.capture(&stream);
        expect_refusal(refused, &["not reset", "outside of a capture"]);
        workload.enqueue(stream.raw()).unwrap();
        stream.synchronize(TIMEOUT_MS).unwrap();
        workload.compare_rows();
        let graph = workload.capture(&stream).unwrap();
        for _ in 0..STEPS {
            workload.next_step();
            stream.replay(&graph).unwrap();
            stream.synchronize(TIMEOUT_MS).unwrap();
            workload.compare_rows();
        }
    });
}

/// If a kernel of a captured step raises an exception or never ends, the wait reports it. With new
/// generations of the requests and a new stream the same graph can be replayed.
#[test]
fn a_graph_is_replayed_again_after_any_of_its_kernels_failed() {
    for (one_launch, hang) in [(false, true), (true, true), (false, false), (true, false)] {
        let kernels = if one_launch { 4 } else { 5 };
        for nth in 1..=2 * kernels {
            let session = Session::new(seeded(6));
            let context = simulated::context().unwrap();
            let mut workload = workload(&session, &context, one_launch).unwrap();
            let mut stream = Stream::new(&context).unwrap();
            let graph = workload.capture(&stream).unwrap();
            let at = session.launches() + nth;
            if hang {
                session.hang(at)
            } else {
                session.raise_exception(at, nth as u32 % 4)
            }
            let mut errors = Vec::new();
            for _ in 0..STEPS {
                workload.next_step();
                stream.replay(&graph).unwrap();
                if let Err(error) = stream.synchronize(TIMEOUT_MS) {
                    errors.push(error.to_string());
                    stream = Stream::new(&context).unwrap();
                    // The drop of the old stream may have failed.
                    if let Err(error) = context.take_error() {
                        errors.push(error.to_string());
                    }
                    workload.renew_generations();
                    stream.replay(&graph).unwrap();
                    stream.synchronize(TIMEOUT_MS).unwrap();
                }
                workload.compare_rows();
            }
            let code = if hang { "code 507046" } else { "code 507035" };
            let expected = format!("aclrtSynchronizeStreamWithTimeout failed with {code}");
            assert!(errors[0].contains(&expected), "kernel {nth}: {errors:?}");
            drop((graph, workload, stream));
            context.finish().unwrap();
            assert_eq!(session.leaks(), Vec::<String>::new(), "kernel {nth}");
        }
    }
}

/// A batch that kernels cannot count, and a plan in a capture while the tables are due to be reset,
/// are refused: the plan that was to be overwritten keeps its batch, and every hit stays a hit.
#[test]
fn a_call_that_is_refused_in_a_stream_changes_nothing() {
    on_ascend(&small::config(1), small::pool, |engine, session, context| {
        let stream = Stream::new(context).unwrap();
        let owned = small::one_request(0, 1, small::ids(0));
        let arrays = DeviceArrays::new(context, &owned, &[]).unwrap();
        arrays.write(&owned, &[]).unwrap();
        let mut plan = engine.new_plan(2, 1).unwrap();
        engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
        let wide = DeviceBatch { ids_stride: 1 << 31, ..arrays.batch() };
        // SAFETY: the call is refused.
        let refused = unsafe { engine.enqueue_plan(&wide, &mut plan, stream.raw()) };
        expect_refusal(refused, &["words of an array is 2147483648"]);
        // Layer 1 still takes the plan, and another one hits it.
        engine.transfer(&mut plan, 1, None).unwrap();
        let mut next = engine.new_plan(2, 1).unwrap();
        engine.step(&owned.batch(), &mut next, 0, None).unwrap();
        assert_eq!((plan.total_misses(), next.total_misses()), (K, 0));
        (0..2).for_each(|layer| small::check(engine, &next, &owned, layer));

        fail_next(session, "aclrtLaunchKernelWithConfig", 1);
        engine.transfer(&mut next, 0, None).unwrap_err();
        // SAFETY: the call is refused.
        let call = || unsafe { engine.enqueue_plan(&arrays.batch(), &mut plan, stream.raw()) };
        expect_refusal(stream.capture(call), &["not reset"]);
        assert_eq!((plan.requests(), plan.number(), plan.misses(0).id.len()), (1, 1, K));
    });
}
