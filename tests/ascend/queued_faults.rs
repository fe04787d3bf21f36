//! Failures of work in a stream of the caller, which is queued step by step or captured once and
//! replayed: each call in turn, and kernels that hang or raise exceptions.

use std::ops::Range;
use std::sync::Arc;

use avsg::Result;
use avsg::ascend::acl::{Context, Stream};
use avsg::ascend::simulated;
use avsg::engine::DeviceBatch;
use avsg_sim::Session;
use avsg_testkit::device_arrays::DeviceArrays;

use crate::faults::{error_code, points_of_failure};
use crate::harness::{expect_refusal, fail_next, in_session, install_kernels, on_ascend, seeded};
use crate::random_workload::{RandomWorkload, pair_config};
use crate::small::{self, K};

/// Milliseconds that a wait for a stream may take.
const TIMEOUT_MS: i32 = 20;
const STEPS: usize = 3;

/// Returns a workload on one core.
fn workload(session: &Session, context: &Arc<Context>, one_launch: bool) -> RandomWorkload {
    let config = pair_config(1, one_launch);
    let kernels = install_kernels(session, &config.engine_config());
    RandomWorkload::new(&config, context, kernels, 17)
}

/// Errors and calls of a workload.
struct Outcome {
    /// The text of every error.
    errors: Vec<String>,
    /// Names of all calls of the runtime.
    calls: Vec<&'static str>,
    /// Ranges of `calls` that were made by the engine and for its stream. The others copy arrays to
    /// the device and compare results.
    spans: Vec<Range<usize>>,
}

/// Retries failed calls in a session and records their errors.
struct Retrier<'a> {
    session: &'a Session,
    outcome: Outcome,
}

impl Retrier<'_> {
    /// Repeats a call until it succeeds, at most six times.
    fn retry<T>(&mut self, mut call: impl FnMut() -> Result<T>) -> T {
        let from = self.session.calls().len();
        for _ in 0..6 {
            match call() {
                Ok(value) => {
                    self.outcome.spans.push(from..self.session.calls().len());
                    return value;
                }
                Err(error) => self.outcome.errors.push(error.to_string()),
            }
        }
        panic!("the call failed six times: {:?}", self.outcome.errors);
    }
}

/// Runs three steps, captured once and replayed or queued, with the faults that `inject` orders,
/// and drops everything. Checks every row and that no resource leaks.
fn run(one_launch: bool, captured: bool, inject: impl FnOnce(&Session)) -> Outcome {
    let session = Session::new(seeded(5));
    let context = simulated::context().unwrap();
    let mut workload = workload(&session, &context, one_launch);
    let stream = Stream::new(&context).unwrap();
    let outcome = Outcome { errors: Vec::new(), calls: Vec::new(), spans: Vec::new() };
    let mut retrier = Retrier { session: &session, outcome };
    inject(&session);
    let graph =
        captured.then(|| retrier.retry(|| stream.capture(|| workload.pair.enqueue(stream.raw()))));
    retrier.retry(|| context.take_error());
    for step in 0..STEPS {
        workload.next_step();
        match &graph {
            Some(graph) => retrier.retry(|| stream.replay(graph)),
            None => retrier.retry(|| workload.pair.enqueue(stream.raw())),
        }
        retrier.retry(|| stream.synchronize(TIMEOUT_MS));
        retrier.retry(|| context.take_error());
        // A replay that failed has run no kernel, so slots and tables are the CPU's as well.
        if captured && step == STEPS - 1 {
            workload.compare();
        } else {
            workload.compare_rows();
        }
    }
    let from = session.calls().len();
    drop((graph, workload, stream));
    retrier.retry(|| context.take_error());
    if let Err(error) = context.finish() {
        retrier.outcome.errors.push(error.to_string());
    }
    if captured {
        // Objects are dropped in the same way without a capture.
        retrier.outcome.spans.push(from..session.calls().len());
    }
    assert_eq!(session.leaks(), Vec::<String>::new(), "{:?}", retrier.outcome.errors);
    Outcome { calls: session.calls(), ..retrier.outcome }
}

/// Each failed call gives an error that names the call and its code, leaks nothing and makes no
/// later row wrong, and the engine can be used again.
#[test]
fn the_engine_recovers_from_each_failed_queued_call() {
    for (one_launch, captured) in [(false, true), (true, true), (false, false)] {
        let without_fault = run(one_launch, captured, |_| ());
        assert!(without_fault.errors.is_empty(), "{:?}", without_fault.errors);
        let points: Vec<usize> = without_fault.spans.into_iter().flatten().collect();
        let what = format!("failing queued calls, captured {captured}, one launch {one_launch}");
        for at in points_of_failure(&what, &without_fault.calls, points.clone(), 60) {
            let (name, code) = (without_fault.calls[at], error_code(at));
            let outcome = run(one_launch, captured, |session| session.fail_any(at + 1, code));
            assert_eq!(outcome.calls[at], name, "the calls up to the failure differ");
            let expected = format!("{name} failed with code {code}");
            let errors = outcome.errors.join("\n");
            assert!(
                errors.contains(&expected),
                "captured {captured}, call {at}, {name}: {errors:?}"
            );
            for error in &outcome.errors {
                assert!(
                    error.contains(&expected),
                    "captured {captured}, call {at}, {name}: {error}"
                );
            }
        }
        println!("captured {captured}, one launch {one_launch}: {} points", points.len());
        assert!(points.len() >= 100, "{} points", points.len());
    }
}

/// After a failure the tables are reset. A capture must not contain the reset: every replay would
/// do it again, and a discarded capture would never do it although the engine counts it as done.
#[test]
fn a_capture_that_would_contain_a_reset_is_refused() {
    in_session(seeded(7), |session, context| {
        let mut workload = workload(session, context, false);
        let stream = Stream::new(context).unwrap();
        workload.next_step();
        // The launch of the plan succeeds and that of the transfer fails.
        fail_next(session, "aclrtLaunchKernelWithConfig", 2);
        workload.pair.enqueue(stream.raw()).unwrap_err();
        stream.synchronize(TIMEOUT_MS).unwrap();
        let refused = stream.capture(|| workload.pair.enqueue(stream.raw()));
        expect_refusal(refused, &["not reset", "outside of a capture"]);
        workload.pair.enqueue(stream.raw()).unwrap();
        stream.synchronize(TIMEOUT_MS).unwrap();
        workload.compare_rows();
        let graph = stream.capture(|| workload.pair.enqueue(stream.raw())).unwrap();
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
            let mut workload = workload(&session, &context, one_launch);
            let mut stream = Stream::new(&context).unwrap();
            let graph = stream.capture(|| workload.pair.enqueue(stream.raw())).unwrap();
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
