//! Failures of work in a stream of the caller, which is queued step by step or captured once and
//! replayed: each call in turn, and kernels that hang or raise exceptions.

use std::ops::Range;

use avsg::Result;
use avsg::ascend::acl::Stream;
use avsg::ascend::simulated;
use avsg::device::params::Params;
use avsg::engine::{Config, DeviceBatch};
use avsg::rows::RowFormat;
use avsg_sim::{Options, Session};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::device_arrays::DeviceArrays;
use avsg_testkit::{exact, fixture};

use crate::faults::{error_code, points_of_failure};
use crate::harness;
use crate::random_workload::{RandomWorkload, pair_config};

/// Milliseconds that a wait for a stream may take.
const TIMEOUT_MS: i32 = 20;
const STEPS: usize = 3;

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
    let session = Session::new(Options { seed: 5, ..Options::default() });
    let context = simulated::context().unwrap();
    let config = pair_config(1, one_launch);
    let mut workload = RandomWorkload::new(
        &config,
        &context,
        harness::install_kernels(&session, &config.engine_config()),
        17,
    );
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
    let session = Session::new(Options { seed: 7, ..Options::default() });
    let context = simulated::context().unwrap();
    let config = pair_config(1, false);
    let mut workload = RandomWorkload::new(
        &config,
        &context,
        harness::install_kernels(&session, &config.engine_config()),
        19,
    );
    let stream = Stream::new(&context).unwrap();
    workload.next_step();
    let launch = "aclrtLaunchKernelWithConfig";
    let launches = session.calls().iter().filter(|call| **call == launch).count();
    // The launch of the plan succeeds and that of the transfer fails.
    session.fail(launch, launches + 2, 507_899);
    workload.pair.enqueue(stream.raw()).unwrap_err();
    stream.synchronize(TIMEOUT_MS).unwrap();
    let refused = stream.capture(|| workload.pair.enqueue(stream.raw())).unwrap_err().to_string();
    assert!(refused.contains("not reset") && refused.contains("outside of a capture"), "{refused}");
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
}

/// If a kernel of a captured step raises an exception or never ends, the wait reports it. With new
/// generations of the requests and a new stream the same graph can be replayed.
#[test]
fn a_graph_is_replayed_again_after_any_of_its_kernels_failed() {
    for (one_launch, hang) in [(false, true), (true, true), (false, false), (true, false)] {
        let kernels = if one_launch { 4 } else { 5 };
        for nth in 1..=2 * kernels {
            let session = Session::new(Options { seed: 6, ..Options::default() });
            let context = simulated::context().unwrap();
            let config = pair_config(1, one_launch);
            let kernels = harness::install_kernels(&session, &config.engine_config());
            let mut workload = RandomWorkload::new(&config, &context, kernels, 18);
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
    const K: usize = 24;
    let config = Config { cores: 3, ..Config::new(Params::wide(K as u32, 2, 128), 1) };
    let pool = || fixture::pool(2, 600, RowFormat::single(64).unwrap());
    harness::on_both_devices(&config, pool, |engine, session, context| {
        let Some(context) = context else { return };
        let stream = Stream::new(context).unwrap();
        let mut owned = OwnedBatch::new(K, 0);
        owned.push([0, 1, -1, 600], &[(0..K as i32).collect()]);
        let arrays = DeviceArrays::new(context, &owned, &[]).unwrap();
        arrays.write(&owned, &[]).unwrap();
        let mut plan = engine.new_plan(2, 1).unwrap();
        engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
        let wide = DeviceBatch { ids_stride: 1 << 31, ..arrays.batch() };
        // SAFETY: the call is refused.
        let refused = unsafe { engine.enqueue_plan(&wide, &mut plan, stream.raw()) };
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("words of an array is 2147483648"), "{text}");
        // Layer 1 still takes the plan, and another one hits it.
        engine.transfer(&mut plan, 1, None).unwrap();
        let mut next = engine.new_plan(2, 1).unwrap();
        engine.step(&owned.batch(), &mut next, 0, None).unwrap();
        assert_eq!((plan.total_misses(), next.total_misses()), (K, 0));
        for layer in 0..2 {
            let content = |_, id| (id, layer as u32);
            assert_eq!(exact::check_step(engine, &next, &owned, layer, content), K);
        }

        let launch = "aclrtLaunchKernelWithConfig";
        let launches = session.calls().iter().filter(|call| **call == launch).count();
        session.fail(launch, launches + 1, 507_899);
        engine.transfer(&mut next, 0, None).unwrap_err();
        // SAFETY: the call is refused.
        let call = || unsafe { engine.enqueue_plan(&arrays.batch(), &mut plan, stream.raw()) };
        let text = stream.capture(call).unwrap_err().to_string();
        assert!(text.contains("not reset"), "{text}");
        assert_eq!((plan.requests(), plan.number(), plan.misses(0).id.len()), (1, 1, K));
    });
}
