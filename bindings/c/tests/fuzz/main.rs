//! Random calls through the C ABI, many with an invalid argument: a destroyed or mistyped handle,
//! NULL, a wrong size, length or index. Each returns a status with a message and never
//! AVSG_INTERNAL. Those of a single thread that have no mistake succeed, and their steps, loads, forks
//! and appends are exact, in memory of the library and of the caller and in files, where a row that was
//! never written costs the requests that miss it. So are ranges of rows and the sessions of kept files.
//! They are a program of their own, because they count the open files and the mappings of the process.
//! `AVSG_FUZZ_CALLS=10000000 cargo test --release -p avsg-capi --test fuzz` is a long run.

mod models;
mod random_appends;
mod random_batches;
mod random_begins;
mod random_caller;
mod random_engines;
mod random_files;
mod random_pools;
mod random_queries;
mod random_ranges;
mod random_sessions;
mod random_states;
mod random_steps;
mod random_workers;
mod session_files;
mod shared_handles;

use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use avsg_capi::avsg_set_log;
use avsg_capi::avsg_status::*;
use avsg_capi_testkit::ok;
use random_caller::RandomCaller;
use shared_handles::{Kind, Shared};

/// Returns the number of calls of a run.
fn calls() -> usize {
    let given = std::env::var("AVSG_FUZZ_CALLS").ok().and_then(|n| n.parse().ok());
    given.unwrap_or(60_000)
}

/// Returns the open files and the mappings of this process.
fn in_use() -> (usize, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    (std::fs::read_dir("/proc/self/fd").unwrap().count(), maps.lines().count())
}

/// Makes calls from several threads. Returns the number of rows compared, the number of calls by status,
/// and that of recoveries from a row that was never written, by their way.
fn run(threads: usize, limit: usize) -> (usize, [usize; 13], [usize; 3]) {
    // The log and the resources belong to the process.
    static ONE_RUN: Mutex<()> = Mutex::new(());
    let _one = ONE_RUN.lock().unwrap_or_else(PoisonError::into_inner);
    let (files, mappings) = in_use();
    let shared = Shared::new(limit);
    let mut callers: Vec<_> =
        (0..threads).map(|seed| RandomCaller::new(&shared, seed as u64, threads == 1)).collect();
    std::thread::scope(|scope| {
        for caller in &mut callers {
            scope.spawn(|| caller.run());
        }
    });
    let mut seen = [0; 13];
    callers.iter().for_each(|p| seen.iter_mut().zip(p.seen).for_each(|(sum, n)| *sum += n));
    let checked = callers.iter().map(|p| p.checked).sum();
    let recovered = callers[0].recovered;
    let given_up = callers[0].given_up;
    // A destroy of each handle that is left must succeed, or fail because the handle is stale.
    let mut last = RandomCaller { seen, ..RandomCaller::new(&shared, 0, false) };
    for kind in [Kind::Plan, Kind::Workers, Kind::Engine, Kind::Pool] {
        for handle in &shared.handles[kind as usize] {
            last.destroy(kind, handle.load(Ordering::Relaxed));
        }
    }
    // SAFETY: NULL takes no messages.
    ok(unsafe { avsg_set_log(None, null_mut(), 0) });
    let known = shared.known();
    assert!(known.pools.is_empty() && known.engines.is_empty() && known.plans.is_empty());
    assert_eq!(shared.allocator.live(), [0; 3], "memory of the caller's allocator");
    assert_eq!(shared.folder.count(), 0, "files of pools that have a name");
    let (files_left, mappings_left) = in_use();
    assert_eq!(files_left, files, "files that are open");
    // The allocator and the threads of the standard library keep some.
    assert!(mappings_left < mappings + 200, "{mappings_left} mappings after {mappings}");
    println!(
        "{threads} threads, {limit} calls by status: {seen:?}; {checked} rows compared, \
         {recovered:?} recoveries, {given_up:?} plans given up, {} messages",
        random_queries::MESSAGES.load(Ordering::Relaxed)
    );
    assert!(threads > 1 || !given_up.contains(&0), "{given_up:?} plans given up");
    (checked, seen, recovered)
}

#[test]
fn random_calls_from_one_thread_return_statuses_and_exact_rows() {
    let (checked, seen, recovered) = run(1, calls());
    assert!(checked > calls(), "{checked} rows compared");
    assert!(!recovered.contains(&0), "{recovered:?} recoveries");
    for status in [AVSG_OK, AVSG_INVALID, AVSG_NULL, AVSG_HANDLE, AVSG_SIZE, AVSG_LOST_ROWS] {
        assert!(seen[status as usize] > 0, "{status:?} was never seen");
    }
}

#[test]
fn random_calls_from_three_threads_return_statuses() {
    // Three threads take twice the time, and no single draw has to come up.
    let (_, seen, _) = run(3, calls() / 2);
    assert!(seen[AVSG_OK as usize] > 0);
}
