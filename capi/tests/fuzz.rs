//! Random calls through the C ABI, many with an invalid argument: a destroyed or mistyped handle,
//! NULL, a wrong size, length or index. Each returns a status with a message and never
//! AVSG_INTERNAL, and every step that succeeds from a single thread is exact.
//! `AVSG_FUZZ_CALLS=10000000 cargo test --release -p avsg-capi --test fuzz` is a long run.

#[path = "c_side/random_caller.rs"]
mod random_caller;
#[path = "c_side/random_workers.rs"]
mod random_workers;
#[path = "c_side/shared_handles.rs"]
mod shared_handles;

use std::sync::atomic::{AtomicUsize, Ordering};

use avsg_capi::avsg_status::*;
use avsg_testkit::splitmix::SplitMix64;
use random_caller::RandomCaller;
use shared_handles::{Kind, Shared};

/// Returns the number of calls of a run.
fn calls() -> usize {
    let given = std::env::var("AVSG_FUZZ_CALLS").ok().and_then(|n| n.parse().ok());
    given.unwrap_or(30_000)
}

/// Makes calls from several threads. Returns the number of rows compared, and the number of calls
/// by status.
fn run(threads: usize, limit: usize) -> (usize, [usize; 10]) {
    let shared = Shared { handles: Default::default(), calls: AtomicUsize::new(0), limit };
    let mut callers: Vec<_> = (0..threads)
        .map(|seed| RandomCaller {
            shared: &shared,
            random: SplitMix64::new(seed as u64),
            verify: threads == 1,
            epoch: 1,
            checked: 0,
            seen: [0; 10],
        })
        .collect();
    std::thread::scope(|scope| {
        for caller in &mut callers {
            scope.spawn(|| caller.run());
        }
    });
    let mut seen = [0; 10];
    callers.iter().for_each(|p| seen.iter_mut().zip(p.seen).for_each(|(sum, n)| *sum += n));
    let checked = callers.iter().map(|p| p.checked).sum();
    // A destroy of each handle that is left must succeed, or fail because the handle is stale.
    let mut last = RandomCaller {
        shared: &shared,
        random: SplitMix64::new(0),
        verify: false,
        epoch: 1,
        checked: 0,
        seen,
    };
    for kind in [Kind::Plan, Kind::Workers, Kind::Engine, Kind::Pool] {
        for handle in &shared.handles[kind as usize] {
            last.destroy(kind, handle.load(Ordering::Relaxed));
        }
    }
    println!("{threads} threads, {limit} calls by status: {seen:?}; {checked} rows compared");
    (checked, seen)
}

#[test]
fn random_calls_from_one_thread_return_statuses_and_exact_rows() {
    let (checked, seen) = run(1, calls());
    assert!(checked > calls() / 8, "{checked} rows compared");
    for status in [AVSG_OK, AVSG_INVALID, AVSG_NULL, AVSG_HANDLE, AVSG_SIZE] {
        assert!(seen[status as usize] > 0, "{status:?} was never seen");
    }
}

#[test]
fn random_calls_from_three_threads_return_statuses() {
    let (_, seen) = run(3, calls());
    assert!(seen[AVSG_OK as usize] > 0);
}
