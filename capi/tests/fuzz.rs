//! Random calls through the C ABI, most of them with something wrong: destroyed and mistyped handles,
//! NULL, sizes, lengths, indices. Each answers a code with a sentence and never a defect, and every step
//! that succeeds is exact. `AVSG_FUZZ_CALLS=10000000 cargo test --release --test capi_fuzz` for a long run.

#[path = "c_side/c.rs"]
mod c;
#[path = "c_side/player.rs"]
mod player;

use std::sync::atomic::{AtomicUsize, Ordering};

use avsg_capi::avsg_status::*;
use avsg_testkit::splitmix::SplitMix64;
use player::{Kind, Player, Shared};

fn calls() -> usize {
    let given = std::env::var("AVSG_FUZZ_CALLS").ok().and_then(|n| n.parse().ok());
    given.unwrap_or(30_000)
}

fn run(threads: usize, limit: usize) -> (usize, [usize; 10]) {
    let shared = Shared { handles: Default::default(), calls: AtomicUsize::new(0), limit };
    let mut players: Vec<_> = (0..threads)
        .map(|seed| Player {
            shared: &shared,
            dice: SplitMix64::new(seed as u64),
            verify: threads == 1,
            epoch: 1,
            checked: 0,
            seen: [0; 10],
        })
        .collect();
    std::thread::scope(|scope| {
        for player in &mut players {
            scope.spawn(|| player.play());
        }
    });
    let mut seen = [0; 10];
    players.iter().for_each(|p| seen.iter_mut().zip(p.seen).for_each(|(sum, n)| *sum += n));
    let checked = players.iter().map(|p| p.checked).sum();
    // Whatever is left can be destroyed, once.
    let mut last = Player {
        shared: &shared,
        dice: SplitMix64::new(0),
        verify: false,
        epoch: 1,
        checked: 0,
        seen,
    };
    for (kind, places) in
        [Kind::Plan, Kind::Engine, Kind::Pool].map(|k| (k, &shared.handles[k as usize]))
    {
        places.iter().for_each(|place| last.destroy(kind, place.load(Ordering::Relaxed)));
    }
    println!("{threads} threads, {limit} calls by status: {seen:?}; {checked} rows compared");
    (checked, seen)
}

#[test]
fn random_calls_from_one_thread_are_answered_and_exact() {
    let (checked, seen) = run(1, calls());
    assert!(checked > calls() / 8, "{checked} rows compared");
    for status in [AVSG_OK, AVSG_INVALID, AVSG_NULL, AVSG_HANDLE, AVSG_SIZE] {
        assert!(seen[status as usize] > 0, "{status:?} was never seen");
    }
}

#[test]
fn random_calls_from_three_threads_are_answered() {
    let (_, seen) = run(3, calls());
    assert!(seen[AVSG_OK as usize] > 0);
}
