//! Small kernels, emitted and run on the shim: each gives the bits of its tape.

use super::gpu::Gpu;
use super::kernels::{
    KERNELS, a_column_around_the_tokens, a_column_of_an_earlier_token, geometry, record,
};
use super::stage_one::{ALL, emit, steps};
use super::steps::StepState;
use avsg_linker::check::Why;
use avsg_linker::cuda::{Options, text};
use avsg_sim::shim::Mode;

#[test]
fn small_kernels_match_their_tapes() {
    let p = geometry();
    let mut tapes = KERNELS.map(record).to_vec();
    tapes.extend([a_column_around_the_tokens(), a_column_of_an_earlier_token()]);
    for (n, tape) in tapes.into_iter().enumerate() {
        let options = Options { threads: 256, ..ALL };
        let Some(emitted) = emit(&p, tape, options, Gpu::Loads, |text| text) else { return };
        let mut state = StepState::clear(&p);
        for (at, step) in steps(&p, n as u64, 6).iter().enumerate() {
            let before = state.clone();
            let want = state.replay(&emitted.tape, 16, step);
            state.learn(&p);
            emitted
                .run_and_compare(&before, &want, step, (Mode::Adversarial, at as u64))
                .unwrap_or_else(|e| panic!("kernel {n}, step {at}: {e}\n{}", emitted.tape));
        }
    }
}

#[test]
fn columns_that_the_text_cannot_tell_apart_are_refused() {
    for name in ["pairs0", "thread", "linkGlobal", "pending_length"] {
        let mut tape = record(KERNELS[0]);
        let over = tape.find("over").unwrap().0 as usize;
        tape.columns[over].name = name.into();
        let failed = text(&geometry(), &tape, ALL).unwrap_err().to_string();
        let why = Why::TextName(avsg_linker::ascend::camel(name));
        assert!(failed.ends_with(&why.to_string()), "{failed}");
    }
}
