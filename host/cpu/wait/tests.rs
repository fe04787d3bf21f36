//! Tests of events.

use super::*;
use std::sync::atomic::AtomicUsize;

#[test]
fn no_notification_is_lost() {
    let (event, turn) = (Notify::default(), AtomicUsize::new(0));
    let run = |own: usize| {
        for round in 0..2000 {
            let mine = 2 * round + own;
            event.wait(Duration::ZERO, || turn.load(Ordering::Acquire) == mine);
            turn.store(mine + 1, Ordering::Release);
            event.notify();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| run(1));
        run(0);
    });
    assert_eq!(turn.into_inner(), 4000);
    assert!(!event.has_sleepers());
}
