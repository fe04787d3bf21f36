//! The invariants of [`Checker`](super::checker::Checker) hold after every step of random
//! decodings, whatever values a request has learned: a slot that a step uses is not its victim.

use super::checker::Checker;
use super::one_request::OneRequest;
use super::sequences;
use proptest::prelude::*;

proptest! {
    #![proptest_config(sequences::config(512))]
    #[test]
    fn invariants_hold_after_every_step((p, steps) in sequences::sequences(false)) {
        let (mut request, mut checker) = (OneRequest::new(p), Checker::new(p));
        for (i, step) in (0..).zip(&steps) {
            request.scramble(i);
            checker.follow(step, &request.step(step))?;
        }
    }
}
