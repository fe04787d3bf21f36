//! Failures of the runtime in steps with host arrays, in steps that are queued in a stream of the caller, and
//! in those that are captured once and replayed: each call in turn, kernels that hang or raise exceptions, also in a
//! graph, captures and calls that are refused, and the loss of the device.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use avsg::Result;
use avsg::ascend::acl::{Context, Stream};
use avsg::ascend::{RegisteredPool, simulated};
use avsg::pool::{Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg_sim::Session;
use avsg_testkit::tier;

use crate::harness::{expect_refusal, fail_next, in_session, seeded};
use crate::random_workload::Submission::{CapturedGraph, HostArrays, QueuedInStream};
use crate::random_workload::{RandomWorkload, Submission};

const STEPS: usize = 3;

/// Returns a workload on one core.
fn workload(session: &Session, context: &Arc<Context>, one_launch: bool) -> Result<RandomWorkload> {
    RandomWorkload::on_rust_kernels(session, context, (1, one_launch), 17)
}

/// Errors and calls of a run.
struct Outcome<'a> {
    session: &'a Session,
    /// How often a call that failed is still repeated.
    retries: usize,
    /// The text of every error.
    errors: Vec<String>,
    /// Ranges of the runtime's calls that were made by the engine and for its stream. The others copy arrays
    /// to the device and compare results.
    spans: Vec<Range<usize>>,
    /// Whether the engine was created.
    created: bool,
    /// Whether all steps were done.
    finished: bool,
}

impl Outcome<'_> {
    /// Makes a call, which is part of a span.
    fn attempt<T>(&mut self, call: impl FnOnce() -> Result<T>) -> Option<T> {
        let from = self.session.calls().len();
        let result = call();
        self.spans.push(from..self.session.calls().len());
        result.map_err(|error| self.errors.push(error.to_string())).ok()
    }

    /// Repeats a call until it succeeds. Returns none if no retries are left.
    fn retry<T>(&mut self, mut call: impl FnMut() -> Result<T>) -> Option<T> {
        loop {
            if let Some(value) = self.attempt(&mut call) {
                return Some(value);
            }
            self.retries = self.retries.checked_sub(1)?;
        }
    }

    /// Makes and checks all steps. Returns none if no retries are left.
    fn run_steps(&mut self, workload: &mut RandomWorkload, submission: Submission) -> Option<()> {
        if submission == CapturedGraph {
            self.retry(|| workload.capture())?;
        }
        for step in 0..STEPS {
            workload.next_step();
            self.retry(|| match submission {
                HostArrays => workload.run_from_host(),
                _ => workload.submit(),
            })?;
            self.retry(|| workload.wait())?;
            self.retry(|| workload.context.take_error())?;
            self.retry(|| workload.ascend.buffer().slot_bytes(0, 1, 2, &mut [0; 48]))?;
            // A replay that failed has run no kernel, so slots and tables are the CPU's as well.
            if submission == CapturedGraph && step == STEPS - 1 {
                workload.compare();
            } else {
                workload.compare_rows();
            }
        }
        Some(())
    }
}

/// Creates an engine, runs three steps with the faults that `inject` orders, and drops everything. Checks
/// every row and that no resource leaks, passes the outcome and the names of all calls to `check`, and returns
/// its result.
fn run<T>(
    one_launch: bool,
    submission: Submission,
    retries: usize,
    inject: impl FnOnce(&Session),
    check: impl FnOnce(Outcome<'_>, Vec<&'static str>) -> T,
) -> T {
    let session = Session::new(seeded(5));
    inject(&session);
    let (session, errors, spans) = (&session, Vec::new(), Vec::new());
    let mut outcome = Outcome { session, retries, errors, spans, created: false, finished: false };
    let made = outcome.attempt(|| {
        let context = simulated::context()?;
        Ok((workload(session, &context, one_launch)?, context))
    });
    if let Some((mut workload, context)) = made {
        outcome.created = true;
        if submission != HostArrays {
            // The calls so far are those of steps with host arrays.
            outcome.spans.clear();
        }
        outcome.finished = outcome.run_steps(&mut workload, submission).is_some();
        outcome.attempt(|| {
            drop(workload);
            Ok(())
        });
        outcome.retry(|| context.take_error());
        outcome.attempt(|| context.finish());
    }
    assert_eq!(session.leaks(), Vec::<String>::new(), "{:?}", outcome.errors);
    check(outcome, session.calls())
}

/// Each failed call gives an error that names the call and its code, leaks nothing and makes no
/// later row wrong, and an engine that was created does all its steps.
#[test]
fn the_engine_recovers_from_each_failed_call() {
    let mut all = Vec::new();
    for (submission, one_launch) in [
        (HostArrays, true),
        (HostArrays, false),
        (QueuedInStream, false),
        (CapturedGraph, false),
        (CapturedGraph, true),
    ] {
        let flawless = |outcome: Outcome<'_>, calls| {
            assert!(outcome.finished && outcome.errors.is_empty(), "{:?}", outcome.errors);
            (outcome.spans.into_iter().flatten().collect::<Vec<_>>(), calls)
        };
        let (points, calls) = run(one_launch, submission, 0, |_| (), flawless);
        assert!(points.len() >= 100, "{} points", points.len());
        for &at in &points {
            let same = |other: &&usize| calls[**other] == calls[at];
            let ends =
                [points.iter().find(same), points.iter().rfind(same)].map(|end| end == Some(&at));
            all.push((submission, one_launch, at, calls[at], ends));
        }
    }
    // The default tier fails the first and the last call of each name, and calls with every code.
    let axes =
        |&(submission, one_launch, at, name, ends): &(Submission, bool, usize, &str, [bool; 2])| {
            let ends = format!("{submission:?} {name} {ends:?}");
            vec![ends, format!("{submission:?} {one_launch}"), error_code(at).to_string()]
        };
    for (submission, one_launch, at, name, _) in tier::cases("failing calls", all, 0, axes) {
        let code = error_code(at);
        let fail = |session: &Session| session.fail_any(at + 1, code);
        run(one_launch, submission, 6, fail, |outcome, after| {
            let what = format!("{submission:?}, one launch {one_launch}, call {at}");
            assert_eq!(after[at], name, "the calls up to the failure differ");
            let expected = format!("{name} failed with code {code}");
            let errors = outcome.errors.join("\n");
            assert!(errors.contains(&expected), "{what}: {errors}");
            // Every other error follows from it.
            let follows =
                |error: &String| error.contains(&expected) || error.contains("plan is stale");
            assert!(outcome.errors.iter().all(follows), "{what}: {errors}");
            assert_eq!(outcome.finished, outcome.created, "{what}: {errors}");
        });
    }
}

/// Returns the error code that the call at an index fails with.
fn error_code(at: usize) -> i32 {
    [107_000, 207_001, 507_899, 507_014][at % 4]
}

/// Makes the n-th kernel never end or raise an exception.
fn break_kernel(session: &Session, nth: usize, hangs: bool) {
    match hangs {
        true => session.hang(nth),
        false => session.raise_exception(nth, nth as u32 % 4),
    }
}

/// If a kernel never ends or raises an exception, the wait fails, the engine reports the loss, and all
/// resources are released.
#[test]
fn a_kernel_that_fails_is_reported_and_leaks_nothing() {
    for (one_launch, hangs) in [(true, true), (false, true), (true, false), (false, false)] {
        let count = |outcome: Outcome<'_>, _| outcome.session.launches();
        let launches = run(one_launch, HostArrays, 0, |_| (), count);
        assert!(launches > 2 * STEPS, "{launches} kernels");
        let parts = match hangs {
            true => ["aclrtSynchronizeStreamWithTimeout failed with code 507046", ""],
            false => ["code 507035", "block"],
        };
        for nth in 1..=launches {
            let inject = |session: &Session| break_kernel(session, nth, hangs);
            run(one_launch, HostArrays, 2, inject, |outcome, _| {
                let errors = outcome.errors.join("\n");
                let reported = parts.iter().all(|part| errors.contains(part));
                assert!(reported && !outcome.finished, "kernel {nth}: {errors}");
                // Kernel 1 runs while the engine is created, so no engine can report the loss.
                assert!(nth == 1 || errors.contains("device state is lost"), "{nth}: {errors}");
            });
        }
    }
}

#[test]
fn the_loss_of_the_device_is_reported_at_any_call() {
    let points = run(true, HostArrays, 0, |_| (), |outcome, _| outcome.spans);
    for at in points.into_iter().flatten().skip(1).step_by(19) {
        let lose = |session: &Session| session.lose_device(at + 1);
        run(true, HostArrays, 2, lose, |outcome, _| {
            let errors = outcome.errors.join("\n");
            assert!(errors.contains("code 507899"), "call {at}: {errors}");
        });
    }
}

/// After a failure the tables are reset. A capture must not contain the reset: every replay would
/// do it again, and a discarded capture would never do it although the engine counts it as done.
#[test]
fn a_capture_that_would_contain_a_reset_is_refused() {
    in_session(seeded(7), |session, context| {
        let mut workload = workload(session, context, false).unwrap();
        workload.next_step();
        // The launch of the plan succeeds and that of the transfer fails.
        fail_next(session, "aclrtLaunchKernelWithConfig", 2);
        workload.submit().unwrap_err();
        workload.wait().unwrap();
        expect_refusal(workload.capture(), &["not reset", "outside of a capture"]);
        for step in 0..=STEPS {
            workload.submit().unwrap();
            workload.wait().unwrap();
            workload.compare_rows();
            if step == 0 {
                workload.capture().unwrap();
            }
            workload.next_step();
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
            workload.capture().unwrap();
            break_kernel(&session, session.launches() + nth, hang);
            let mut errors = Vec::new();
            for _ in 0..STEPS {
                workload.next_step();
                workload.submit().unwrap();
                if let Err(error) = workload.wait() {
                    errors.push(error.to_string());
                    workload.stream = Rc::new(Stream::new(&context).unwrap());
                    // The drop of the old stream may have failed.
                    let _ = context.take_error();
                    workload.renew_generations();
                    workload.submit().unwrap();
                    workload.wait().unwrap();
                }
                workload.compare_rows();
            }
            let code = if hang { "code 507046" } else { "code 507035" };
            let expected = format!("aclrtSynchronizeStreamWithTimeout failed with {code}");
            assert!(errors[0].contains(&expected), "kernel {nth}: {errors:?}");
            drop(workload);
            context.finish().unwrap();
            assert_eq!(session.leaks(), Vec::<String>::new(), "kernel {nth}");
        }
    }
}

/// If the device refuses to register a kind of pages, the pool is created from the next smaller
/// kind.
#[test]
fn a_pool_uses_pages_that_the_device_registers() {
    in_session(seeded(5), |session, context| {
        let format = RowFormat::single(1152).unwrap();
        let config = PoolConfig { chunk_bytes: 2 << 20, ..PoolConfig::new(1, 8192, format) };
        let best = RegisteredPool::create(context, &config).unwrap().pool().pages();
        fail_next(session, "aclrtHostRegister", 3);
        let second = RegisteredPool::create(context, &config);
        if best == Pages::Plain {
            expect_refusal(second, &["aclrtHostRegister failed with code 507899"]);
        } else {
            assert!(second.unwrap().pool().pages() != best, "smaller pages than {best}");
        }
    });
}
