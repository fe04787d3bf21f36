//! Failures of the runtime in steps with host arrays, in steps that are queued in a stream of the caller, and
//! in those that are captured once and replayed: each call in turn, kernels that hang or raise exceptions, also in a
//! graph, captures and calls that are refused, and the loss of the device.

use std::sync::Arc;

use avsg::Result;
use avsg::ascend::acl::Context;
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
#[derive(Default)]
struct Outcome {
    /// How often a call that failed is still repeated.
    retries: usize,
    /// The text of every error.
    errors: Vec<String>,
    /// The numbers of the runtime's calls that were made by the engine and for its stream. The others copy arrays
    /// to the device and check results.
    points: Vec<usize>,
    /// The names of all calls, and how many kernels were launched.
    calls: Vec<&'static str>,
    launches: usize,
    /// Whether all steps were done.
    finished: bool,
}

impl Outcome {
    /// Repeats a call until it succeeds. Returns none if no retries are left.
    fn retry<T>(&mut self, session: &Session, mut call: impl FnMut() -> Result<T>) -> Option<T> {
        loop {
            let from = session.calls().len();
            let result = call();
            self.points.extend(from..session.calls().len());
            match result {
                Ok(value) => return Some(value),
                Err(error) => self.errors.push(error.to_string()),
            }
            self.retries = self.retries.checked_sub(1)?;
        }
    }

    /// Makes and checks all steps. Returns none if no retries are left.
    fn run_steps(
        &mut self,
        session: &Session,
        workload: &mut RandomWorkload,
        submission: Submission,
    ) -> Option<()> {
        if submission == CapturedGraph {
            self.retry(session, || workload.capture())?;
        }
        for _ in 0..STEPS {
            workload.next_step();
            self.retry(session, || match submission {
                HostArrays => workload.run_from_host(),
                _ => workload.submit(),
            })?;
            self.retry(session, || {
                let waited = workload.wait();
                if waited.is_err() && submission == CapturedGraph {
                    workload.start_again();
                }
                waited
            })?;
            self.retry(session, || workload.context.take_error())?;
            self.retry(session, || workload.engine.buffer().slot_bytes(0, 1, 2, &mut [0; 40]))?;
            workload.check_rows();
        }
        Some(())
    }
}

/// Creates an engine, runs three steps with the faults that `inject` orders, and drops everything. Checks
/// every row and that no resource leaks.
fn run(
    one_launch: bool,
    submission: Submission,
    retries: usize,
    inject: impl FnOnce(&Session),
) -> Outcome {
    let session = &Session::new(seeded(5));
    inject(session);
    let mut outcome = Outcome { retries, ..Outcome::default() };
    let made = outcome.retry(session, || {
        let context = simulated::context()?;
        Ok((workload(session, &context, one_launch)?, context))
    });
    if let Some((mut workload, context)) = made {
        if submission != HostArrays {
            // The calls so far are those of steps with host arrays.
            outcome.points.clear();
        }
        outcome.finished = outcome.run_steps(session, &mut workload, submission).is_some();
        let (mut workload, mut context) = (Some(workload), Some(context));
        outcome.retry(session, || Ok(workload.take().map(drop)));
        outcome.retry(session, || context.as_ref().map_or(Ok(()), |context| context.take_error()));
        outcome.retry(session, || context.take().map_or(Ok(()), Context::finish));
    }
    assert_eq!(session.leaks(), Vec::<String>::new(), "{:?}", outcome.errors);
    (outcome.calls, outcome.launches) = (session.calls(), session.launches());
    outcome
}

/// Each failed call gives an error that names the call and its code, leaks nothing and makes no
/// later row wrong, and an engine is created and does all its steps.
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
        let Outcome { errors, points, calls, finished, .. } =
            run(one_launch, submission, 0, |_| ());
        assert!(finished && errors.is_empty() && points.len() >= 100, "{errors:?}");
        for &at in &points {
            let same = |other: &&usize| calls[**other] == calls[at];
            let ends = [points.iter().find(same), points.iter().rfind(same)];
            // The default tier fails the first and the last call of each name, and calls with every code.
            let ends = ends.map(|end| end == Some(&at));
            let ends = format!("{submission:?} {} {ends:?}", calls[at]);
            let axes = [ends, format!("{submission:?} {one_launch}"), error_code(at).to_string()];
            all.push((submission, one_launch, at, calls[at], axes));
        }
    }
    let axes = |case: &(_, _, _, _, [String; 3])| case.4.to_vec();
    for (submission, one_launch, at, name, _) in tier::cases("failing calls", all, 0, axes) {
        let code = error_code(at);
        let outcome = run(one_launch, submission, 6, |session| session.fail_any(at + 1, code));
        let what = format!("{submission:?}, one launch {one_launch}, call {at}");
        assert_eq!(outcome.calls[at], name, "the calls up to the failure differ");
        let expected = format!("{name} failed with code {code}");
        // Every other error follows from it.
        let follows = |error: &String| error.contains(&expected) || error.contains("plan is stale");
        let named = outcome.errors.iter().any(|error| error.contains(&expected));
        let right = outcome.finished && named && outcome.errors.iter().all(follows);
        assert!(right, "{what}: {:?}", outcome.errors);
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

/// If a kernel never ends or raises an exception, the wait fails, the engine reports the loss, and all resources are
/// released. With new generations of the requests and a new stream, a graph can be replayed again.
#[test]
fn a_kernel_that_fails_is_reported_leaks_nothing_and_its_graph_is_replayed_again() {
    let ways = [(true, true), (false, true), (true, false), (false, false)];
    for (submission, (one_launch, hangs)) in
        ways.into_iter().flat_map(|way| [(HostArrays, way), (CapturedGraph, way)])
    {
        let launches = run(one_launch, submission, 0, |_| ()).launches;
        assert!(launches > 2 * STEPS, "{launches} kernels");
        let parts = match hangs {
            true => ["aclrtSynchronizeStreamWithTimeout failed with code 507046", ""],
            false => ["code 507035", "block"],
        };
        for nth in 1..=launches {
            let inject = |session: &Session| break_kernel(session, nth, hangs);
            let Outcome { errors, finished, .. } = run(one_launch, submission, 2, inject);
            let (errors, what) = (errors.join("\n"), format!("{submission:?}, kernel {nth}"));
            assert!(parts.iter().all(|part| errors.contains(part)), "{what}: {errors}");
            let right = match submission {
                // Kernel 1 runs while the engine is created, so no engine can report the loss.
                HostArrays => nth == 1 || !finished && errors.contains("device state is lost"),
                _ => finished,
            };
            assert!(right, "{what}: {errors}");
        }
    }
}

#[test]
fn the_loss_of_the_device_is_reported_at_any_call() {
    for at in run(true, HostArrays, 0, |_| ()).points.into_iter().skip(1).step_by(19) {
        let errors = run(true, HostArrays, 2, |session| session.lose_device(at + 1)).errors;
        assert!(errors.join("\n").contains("code 507899"), "call {at}: {errors:?}");
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
            workload.check_rows();
            if step == 0 {
                workload.capture().unwrap();
            }
            workload.next_step();
        }
    });
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
