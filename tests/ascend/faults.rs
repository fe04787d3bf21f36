//! Failures of the runtime: each call in turn, kernels that hang or raise exceptions, and the loss
//! of the device.

use avsg::ascend::RegisteredPool;
use avsg::pool::{Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg_sim::Session;
use avsg_testkit::tier;

use crate::harness::{expect_refusal, fail_next, in_session, install_kernels, seeded};
use crate::scenario::{self, Outcome, run};

/// Runs the scenario in one or two launches per step with the faults that `inject` orders, and
/// checks that no resource leaks. Returns the outcome and the calls of the runtime.
fn run_with_faults(
    retries: usize,
    one_launch: bool,
    inject: impl FnOnce(&Session),
) -> (Outcome, Vec<&'static str>) {
    let session = Session::new(seeded(5));
    let kernels = install_kernels(&session, &scenario::config());
    inject(&session);
    let outcome = run(kernels, retries, one_launch);
    assert_eq!(session.leaks(), Vec::<String>::new(), "{:?}", outcome.errors);
    (outcome, session.calls())
}

#[test]
fn the_scenario_succeeds_without_faults() {
    let (outcome, calls) = run_with_faults(0, true, |_| ());
    assert!(outcome.finished && outcome.errors.is_empty(), "{:?}", outcome.errors);
    assert!(outcome.rows >= 2 * 3 * 4 * 6, "{} rows were compared", outcome.rows);
    assert!(calls.len() >= 200, "{} calls", calls.len());
}

/// Each failed call gives an error that names the call and its code, leaks nothing and makes no
/// later row wrong, and the engine can be used again.
#[test]
fn the_engine_recovers_from_each_failed_call() {
    let [one_launch_calls, two_launch_calls] =
        [true, false].map(|one_launch| run_with_faults(0, one_launch, |_| ()).1);
    // The calls before the first launch of a step are the same.
    let differ = one_launch_calls.iter().zip(&two_launch_calls).position(|(a, b)| a != b).unwrap();
    for (one_launch, calls, from) in
        [(true, one_launch_calls, 0), (false, two_launch_calls, differ)]
    {
        let points = calls.len() - from;
        let what = format!("failing calls, one launch {one_launch}");
        let all = (from..calls.len()).collect();
        let selected = points_of_failure(&what, &calls, all, 160);
        let resumed = selected.iter().filter(|&&at| resumes(one_launch, at, calls[at])).count();
        let total = selected.len();
        println!("{what}: {total} points of failure, resumed after {resumed}");
        assert!(points >= 200 && resumed * 2 > total, "{resumed} of {total} resumed");
    }
}

/// Returns the error code that the call at an index fails with.
pub fn error_code(at: usize) -> i32 {
    [107_000, 207_001, 507_899, 507_014][at % 4]
}

/// Returns the calls among `at` that this run fails: in the default tier a sample of at least
/// `least`, with the first and the last call of each name and with every code.
pub fn points_of_failure(what: &str, calls: &[&str], at: Vec<usize>, least: usize) -> Vec<usize> {
    let all = at.clone();
    tier::cases(what, at, least, |&at| {
        let same = |other: &&usize| calls[**other] == calls[at];
        let first = all.iter().find(same) == Some(&at);
        let last = all.iter().rfind(same) == Some(&at);
        vec![format!("{} {first} {last}", calls[at]), error_code(at).to_string()]
    })
}

/// Fails the call at `at`, which is `name`, and checks the errors. Returns whether an engine was
/// created and did all its steps.
fn resumes(one_launch: bool, at: usize, name: &str) -> bool {
    let code = error_code(at);
    let (outcome, after) = run_with_faults(6, one_launch, |session| session.fail_any(at + 1, code));
    assert_eq!(after[at], name, "the calls up to the failure differ");
    let errors = outcome.errors.join("\n");
    let expected = format!("{name} failed with code {code}");
    assert!(errors.contains(&expected), "call {at}, {name}: {errors}");
    // Every other error follows from it.
    for error in &outcome.errors {
        assert!(error.contains(&expected) || error.contains("plan is stale"), "{at}: {error}");
    }
    // An engine that was created does all its steps.
    assert_eq!(outcome.finished, outcome.created, "call {at}, {name}: {errors}");
    outcome.finished
}

/// If a kernel never ends or raises an exception, the wait fails, the engine reports the loss, and all
/// resources are released.
#[test]
fn a_kernel_that_fails_is_reported_and_leaks_nothing() {
    for (one_launch, hangs) in [(true, true), (false, true), (true, false), (false, false)] {
        let session = Session::new(seeded(5));
        let outcome = run(install_kernels(&session, &scenario::config()), 0, one_launch);
        let launches = session.launches();
        drop(session);
        assert!(outcome.finished && launches >= 10, "{launches} kernels");
        let parts = match hangs {
            true => ["aclrtSynchronizeStreamWithTimeout failed with code 507046", ""],
            false => ["code 507035", "block"],
        };
        for nth in 1..=launches {
            let (outcome, _) = run_with_faults(2, one_launch, |session| match hangs {
                true => session.hang(nth),
                false => session.raise_exception(nth, nth as u32 % 4),
            });
            let errors = outcome.errors.join("\n");
            let reported = parts.iter().all(|part| errors.contains(part));
            assert!(reported && !outcome.finished, "kernel {nth}: {errors}");
            // Kernel 1 runs while the engine is created, so no engine can report the loss.
            assert!(nth == 1 || errors.contains("device state is lost"), "kernel {nth}: {errors}");
        }
    }
}

#[test]
fn the_loss_of_the_device_is_reported_at_any_call() {
    let calls = run_with_faults(0, true, |_| ()).1.len();
    for at in (1..calls).step_by(7) {
        let (outcome, _) = run_with_faults(2, true, |session| session.lose_device(at));
        let errors = outcome.errors.join("\n");
        assert!(errors.contains("code 507899"), "call {at}: {errors}");
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
        match best {
            Pages::Plain => {
                expect_refusal(second, &["aclrtHostRegister failed with code 507899"]);
            }
            _ => assert!(
                second.unwrap().pool().pages() != best,
                "the pool must use smaller pages than {best}"
            ),
        }
    });
}
