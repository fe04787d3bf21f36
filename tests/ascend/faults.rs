//! What happens when the runtime fails: every call in turn, kernels that hang or raise exceptions, a
//! device that is lost.

use avsg_sim::{Options, Session};
use avsg_testkit::tier;

use crate::scenario::{self, Outcome, run};
use crate::stand;

fn session() -> Session {
    Session::new(Options { seed: 5, ..Options::default() })
}

/// Runs the scenario with what `order` orders, and looks for leaks.
fn with(patience: usize, order: impl FnOnce(&Session)) -> (Outcome, Vec<&'static str>) {
    with_launches(patience, true, order)
}

fn with_launches(
    patience: usize,
    one_launch: bool,
    order: impl FnOnce(&Session),
) -> (Outcome, Vec<&'static str>) {
    let session = session();
    let kernels = stand::kernels(&session, &scenario::config());
    order(&session);
    let outcome = run(kernels, patience, one_launch);
    assert_eq!(session.leaks(), Vec::<String>::new(), "{:?}", outcome.errors);
    (outcome, session.calls())
}

#[test]
fn nothing_fails_unasked() {
    let (outcome, calls) = with(0, |_| ());
    assert!(outcome.finished && outcome.errors.is_empty(), "{:?}", outcome.errors);
    assert!(outcome.rows >= 2 * 3 * 4 * 6, "{} rows were compared", outcome.rows);
    assert!(calls.len() >= 200, "{} calls", calls.len());
}

/// Each call in turn: an error that names it and its code, nothing leaked, no wrong row later, and
/// the engine goes on.
#[test]
fn every_call_may_fail_once() {
    let [one, two] = [true, false].map(|one_launch| with_launches(0, one_launch, |_| ()).1);
    // Before the first step launches, all is the same.
    let differ = one.iter().zip(&two).position(|(a, b)| a != b).unwrap();
    for (one_launch, calls, from) in [(true, one, 0), (false, two, differ)] {
        let points = calls.len() - from;
        let what = format!("failing calls, one launch {one_launch}");
        let all = (from..calls.len()).collect();
        let taken = points_of_failure(&what, &calls, all, 160);
        let resumed = taken.iter().filter(|&&at| resumes(one_launch, at, calls[at])).count();
        let of = taken.len();
        println!("{what}: {of} points of failure, resumed after {resumed}");
        assert!(points >= 200 && resumed * 2 > of, "{resumed} of {of}");
    }
}

/// What a call fails with.
pub fn code(at: usize) -> i32 {
    [107_000, 207_001, 507_899, 507_014][at % 4]
}

/// Those of the calls `at` that this run fails: among them the first and the last of each name, and some with
/// each code.
pub fn points_of_failure(what: &str, calls: &[&str], at: Vec<usize>, least: usize) -> Vec<usize> {
    let places = at.clone();
    tier::cases(what, at, least, |&at| {
        let same = |place: &&usize| calls[**place] == calls[at];
        let first = places.iter().find(same) == Some(&at);
        let last = places.iter().rfind(same) == Some(&at);
        vec![format!("{} {first} {last}", calls[at]), code(at).to_string()]
    })
}

/// Fails the call at `at`, which is `name`. Says whether there was an engine that went on.
fn resumes(one_launch: bool, at: usize, name: &str) -> bool {
    let code = code(at);
    let (outcome, after) = with_launches(6, one_launch, |session| session.fail_any(at + 1, code));
    assert_eq!(after[at], name, "the same calls up to the failure");
    let said = outcome.errors.join("\n");
    let told = format!("{name} failed with code {code}");
    assert!(said.contains(&told), "call {at}, {name}: {said}");
    // Everything else that was said follows from it.
    for error in &outcome.errors {
        assert!(error.contains(&told) || error.contains("plan is stale"), "{at}: {error}");
    }
    // An engine that was made goes on to the end.
    assert_eq!(outcome.finished, outcome.created, "call {at}, {name}: {said}");
    outcome.finished
}

/// A kernel that never ends: the wait gives up, the engine says that it is lost, and everything is
/// released by force.
#[test]
fn every_kernel_may_hang() {
    for (one_launch, nth) in [true, false].into_iter().flat_map(|one_launch| {
        let session = session();
        let kernels = stand::kernels(&session, &scenario::config());
        let outcome = run(kernels, 0, one_launch);
        let launches = session.launches();
        assert!(outcome.finished && launches >= 10, "{launches} kernels");
        (1..=launches).map(move |nth| (one_launch, nth))
    }) {
        let (outcome, _) = with_launches(2, one_launch, |session| session.hang(nth));
        let said = outcome.errors.join("\n");
        let told = "aclrtSynchronizeStreamWithTimeout failed with code 507046";
        assert!(said.contains(told) && !outcome.finished, "kernel {nth}: {said}");
        // At creation there is no engine yet to say so.
        assert!(nth == 1 || said.contains("device state is lost"), "kernel {nth}: {said}");
    }
}

#[test]
fn every_kernel_may_raise_an_exception() {
    for nth in 1..=10 {
        let (outcome, _) = with(2, |session| session.raise_exception(nth, nth as u32 % 4));
        let said = outcome.errors.join("\n");
        assert!(said.contains("code 507035") && said.contains("block"), "kernel {nth}: {said}");
        assert!(nth == 1 || said.contains("device state is lost"), "kernel {nth}: {said}");
    }
}

#[test]
fn a_device_may_be_lost_at_any_call() {
    let calls = with(0, |_| ()).1.len();
    for at in (1..calls).step_by(7) {
        let (outcome, _) = with(2, |session| session.lose_device(at));
        let said = outcome.errors.join("\n");
        assert!(said.contains("code 507899"), "call {at}: {said}");
    }
}

/// The rung of the hugepage ladder is what the device registers.
#[test]
fn registration_decides_the_pages() {
    use avsg::ascend::RegisteredPool;
    use avsg::pool::{Pages, PoolConfig};
    use avsg::rows::RowFormat;

    let session = session();
    let context = stand::context().unwrap();
    let format = RowFormat::single(1152).unwrap();
    let config = PoolConfig { chunk_bytes: 2 << 20, ..PoolConfig::new(1, 8192, format) };
    let first = RegisteredPool::create(&context, &config).unwrap();
    let best = first.pool().pages();
    drop(first);
    let nth = session.calls().iter().filter(|c| **c == "aclrtHostRegister").count() + 3;
    session.fail("aclrtHostRegister", nth, 507_899);
    let second = RegisteredPool::create(&context, &config);
    match best {
        Pages::Plain => {
            let text = second.unwrap_err().to_string();
            assert!(text.contains("aclrtHostRegister failed with code 507899"), "{text}");
        }
        _ => assert!(second.unwrap().pool().pages() != best, "a lower rung than {best}"),
    }
    drop(context);
    assert_eq!(session.leaks(), Vec::<String>::new(), "what was registered before is undone");
}
