//! Small kernels, emitted and run on the shim: each gives the bits of its tape.

use super::gpu::Gpu;
use super::kernels::{KERNELS, columns_around_the_tokens, geometry, record};
use super::stage_one::{ALL, emit_all, steps};
use avsg_linker::check::Why;
use avsg_linker::cuda::{Options, text};
use avsg_sim::shim::Mode;

#[test]
fn small_kernels_match_their_tapes() {
    let p = geometry();
    let mut tapes = KERNELS.map(record).to_vec();
    tapes.push(columns_around_the_tokens());
    let options = Options { threads: 256, ..ALL };
    let all = tapes.into_iter().map(|tape| (p, tape, options)).collect();
    let Some(all) = emit_all(all, Gpu::Loads, |text| text) else { return };
    for (n, emitted) in all.iter().enumerate() {
        emitted.compare(steps(&p, n as u64, 6), &[Mode::Adversarial]);
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
