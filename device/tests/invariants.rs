//! The invariants of any result, after every step of random decodings.

#[path = "rig/checker.rs"]
mod checker;
#[path = "rig/one_request.rs"]
mod one_request;
#[path = "rig/sequences.rs"]
mod sequences;

use avsg_device::machine::emu::Emu;
use checker::Checker;
use one_request::OneRequest;
use proptest::prelude::*;

proptest! {
    #![proptest_config(sequences::config(512))]
    #[test]
    fn hold_after_every_step((p, steps) in sequences::sequences(false)) {
        let (mut request, mut checker) = (OneRequest::new(p), Checker::new(p));
        for step in &steps {
            checker.follow(step, &request.step(Emu::<16>, step))?;
        }
    }
}
