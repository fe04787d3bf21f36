//! Stage One that reads the counts of GatherMask at once is right if their register interlocks, and
//! only then. The thorough tier shows it.

use avsg_device::params::{Lifetime, Params};
use avsg_linker::ascend::aiv::CountRead;
use avsg_linker::ascend::limits::STAGE_ONE_BYTES;
use avsg_linker::ascend::stage_one_with;
use avsg_linker::record::record_stage_one;

use super::compiled::Compiled;
use super::shim::Mode;
use super::stage_one::{Emitted, INTERLOCKED, file, run_and_compare};
use super::steps::{SplitMix64, StepState, sequence};
use super::tier;

/// Returns how many of some steps differ from the tape or fail, with counts that are read at once.
fn wrong_steps(p: &Params, interlocked: bool, mode: Mode) -> Option<usize> {
    let text =
        stage_one_with(p, STAGE_ONE_BYTES, CountRead::AtOnce).expect("a small geometry fits");
    let register = if interlocked { INTERLOCKED } else { "" };
    let kernels = Compiled::single(&format!("{register}{}", file(p, &text)))?;
    let emitted = Emitted { text, kernels };
    let tape = record_stage_one(p).expect("Stage One can be recorded");
    let mut state = StepState::clear(p);
    let wrong = |step| {
        let before = state.clone();
        let want = state.replay(&tape, 16, step);
        state.finish(p, step);
        run_and_compare(p, &emitted, &before, &want, step, (mode, 1)).is_err()
    };
    Some(sequence(p, &mut SplitMix64(4), STEPS).iter().map(wrong).filter(|wrong| *wrong).count())
}

const STEPS: usize = 6;

#[test]
fn counts_that_are_read_at_once_need_a_register_that_interlocks() {
    if !tier::thorough() {
        return println!("default tier: this test is left to the thorough tier");
    }
    let lifetime = Lifetime::Learned;
    let p = Params { spread: 2, lifetime, page: 16, ..Params::wide(100, 2, 256) };
    for mode in [Mode::InOrder, Mode::Adversarial] {
        let Some(wrong) = wrong_steps(&p, true, mode) else { return };
        assert_eq!(wrong, 0, "{mode:?}");
    }
    // The steps are refused, and without the checks of the shim their data is wrong.
    for mode in [Mode::InOrder, Mode::Unchecked] {
        assert!(wrong_steps(&p, false, mode) > Some(STEPS / 2), "{mode:?}");
    }
}
