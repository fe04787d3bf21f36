//! Failures of work in a caller's stream, queued step by step or captured once and replayed: every
//! call in turn, kernels that hang or raise exceptions.

use std::ops::Range;

use avsg::Result;
use avsg::ascend::acl::owned::Stream;
use avsg_sim::{Options, Session};

use crate::faults::{code, points_of_failure};
use crate::random::{Random, form};
use crate::stand;

/// Milliseconds of a wait.
const PATIENCE: i32 = 20;
const STEPS: usize = 3;

/// How a workload went.
struct Outcome {
    /// Every error, as text.
    errors: Vec<String>,
    /// Every call, and which of them were the engine's and its stream's. The others bring arrays to the
    /// device and compare what came out.
    calls: Vec<&'static str>,
    spans: Vec<Range<usize>>,
}

/// A session, with the errors of calls that were made again.
struct Watch<'a> {
    session: &'a Session,
    outcome: Outcome,
}

impl Watch<'_> {
    /// Makes a call until it succeeds.
    fn insist<T>(&mut self, mut call: impl FnMut() -> Result<T>) -> T {
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
        panic!("not usable again: {:?}", self.outcome.errors);
    }
}

/// Captures a step (or not), runs three of them, destroys everything; verifies every row.
fn run(one_launch: bool, captured: bool, order: impl FnOnce(&Session)) -> Outcome {
    let session = Session::new(Options { seed: 5, ..Options::default() });
    let context = stand::context().unwrap();
    let form = form(1, one_launch);
    let mut workload = Random::new(&form, &context, stand::kernels(&session, &form.config()), 17);
    let stream = Stream::new(&context).unwrap();
    let none = Outcome { errors: Vec::new(), calls: Vec::new(), spans: Vec::new() };
    let mut watch = Watch { session: &session, outcome: none };
    order(&session);
    let graph =
        captured.then(|| watch.insist(|| stream.capture(|| workload.pair.enqueue(stream.raw()))));
    watch.insist(|| context.take_error());
    for step in 0..STEPS {
        workload.next();
        match &graph {
            Some(graph) => watch.insist(|| stream.replay(graph)),
            None => watch.insist(|| workload.pair.enqueue(stream.raw())),
        }
        watch.insist(|| stream.synchronize(PATIENCE));
        watch.insist(|| context.take_error());
        // No captured work that failed has run, so slots and tables are the same as well.
        if captured && step == STEPS - 1 {
            workload.compare();
        } else {
            workload.compare_rows();
        }
    }
    let from = session.calls().len();
    drop((graph, workload, stream));
    watch.insist(|| context.take_error());
    if let Err(error) = context.finish() {
        watch.outcome.errors.push(error.to_string());
    }
    if captured {
        // What is destroyed is the same either way.
        watch.outcome.spans.push(from..session.calls().len());
    }
    assert_eq!(session.leaks(), Vec::<String>::new(), "{:?}", watch.outcome.errors);
    Outcome { calls: session.calls(), ..watch.outcome }
}

/// Each call in turn: an error that names it and its code, nothing leaked, no wrong row later, and
/// work goes on.
#[test]
fn every_queued_call_may_fail_once() {
    for (one_launch, captured) in [(false, true), (true, true), (false, false)] {
        let quiet = run(one_launch, captured, |_| ());
        assert!(quiet.errors.is_empty(), "{:?}", quiet.errors);
        let points: Vec<usize> = quiet.spans.into_iter().flatten().collect();
        let what = format!("failing queued calls, captured {captured}, one launch {one_launch}");
        for at in points_of_failure(&what, &quiet.calls, points.clone(), 60) {
            let (name, code) = (quiet.calls[at], code(at));
            let outcome = run(one_launch, captured, |session| session.fail_any(at + 1, code));
            assert_eq!(outcome.calls[at], name, "the same calls up to the failure");
            let told = format!("{name} failed with code {code}");
            let said = outcome.errors.join("\n");
            assert!(said.contains(&told), "captured {captured}, call {at}, {name}: {said:?}");
            for error in &outcome.errors {
                assert!(error.contains(&told), "captured {captured}, call {at}, {name}: {error}");
            }
        }
        println!("captured {captured}, one launch {one_launch}: {} points", points.len());
        assert!(points.len() >= 100, "{} points", points.len());
    }
}

/// After a failure tables start cold. A recording cannot hold that: it would do so at every replay, or
/// never, if it is thrown away while the engine believes that it has happened.
#[test]
fn a_cold_start_is_not_recorded() {
    let session = Session::new(Options { seed: 7, ..Options::default() });
    let context = stand::context().unwrap();
    let form = form(1, false);
    let mut workload = Random::new(&form, &context, stand::kernels(&session, &form.config()), 19);
    let stream = Stream::new(&context).unwrap();
    workload.next();
    let launch = "aclrtLaunchKernelWithConfig";
    let launches = session.calls().iter().filter(|call| **call == launch).count();
    // The plan is launched, its transfer is not.
    session.fail(launch, launches + 2, 507_899);
    workload.pair.enqueue(stream.raw()).unwrap_err();
    stream.synchronize(PATIENCE).unwrap();
    let refused = stream.capture(|| workload.pair.enqueue(stream.raw())).unwrap_err().to_string();
    assert!(refused.contains("not reset") && refused.contains("outside of a capture"), "{refused}");
    workload.pair.enqueue(stream.raw()).unwrap();
    stream.synchronize(PATIENCE).unwrap();
    workload.compare_rows();
    let graph = stream.capture(|| workload.pair.enqueue(stream.raw())).unwrap();
    for _ in 0..STEPS {
        workload.next();
        stream.replay(&graph).unwrap();
        stream.synchronize(PATIENCE).unwrap();
        workload.compare_rows();
    }
}

/// Kernels of a captured step that raise an exception, or never end: the wait says so, and a runtime
/// that gives its requests new generations goes on in a new stream, with the same graph.
#[test]
fn every_replayed_kernel_may_fail() {
    for (one_launch, hang) in [(false, true), (true, true), (false, false), (true, false)] {
        let kernels = if one_launch { 4 } else { 5 };
        for nth in 1..=2 * kernels {
            let session = Session::new(Options { seed: 6, ..Options::default() });
            let context = stand::context().unwrap();
            let form = form(1, one_launch);
            let kernels = stand::kernels(&session, &form.config());
            let mut workload = Random::new(&form, &context, kernels, 18);
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
                workload.next();
                stream.replay(&graph).unwrap();
                if let Err(error) = stream.synchronize(PATIENCE) {
                    errors.push(error.to_string());
                    stream = Stream::new(&context).unwrap();
                    // What the old one left when it went.
                    if let Err(error) = context.take_error() {
                        errors.push(error.to_string());
                    }
                    workload.renew();
                    stream.replay(&graph).unwrap();
                    stream.synchronize(PATIENCE).unwrap();
                }
                workload.compare_rows();
            }
            let code = if hang { "code 507046" } else { "code 507035" };
            let told = format!("aclrtSynchronizeStreamWithTimeout failed with {code}");
            assert!(errors[0].contains(&told), "kernel {nth}: {errors:?}");
            drop((graph, workload, stream));
            context.finish().unwrap();
            assert_eq!(session.leaks(), Vec::<String>::new(), "kernel {nth}");
        }
    }
}
