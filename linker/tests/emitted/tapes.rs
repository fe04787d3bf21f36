//! Small kernels, emitted and run on the shim: each gives the bits that it gives on a CPU.

use super::edge_kernels::{
    KERNELS, Kernel, LISTS_THAT_MIGHT_BE_EMPTY, Recorded, all, geometry, record_tokens,
    scalars_of_conditions,
};
use super::emitted_stage_one::{emit_all, random_steps};
use avsg_device::machine::Machine;
use avsg_device::params::{ID_LIMIT, Lifetime, Params};
use avsg_linker::ascend::{StageOneText, stage_one, text};
use avsg_linker::check::{Why, check};
use avsg_linker::record::record_stage_one;
use avsg_linker::tape::{OpCode, Tape};
use std::collections::BTreeSet;

/// Writes a kernel for the smallest unified buffer that suffices, so that a sweep has several
/// tiles, and for the whole one, in which some sweeps take all lanes at once.
fn emit(tape: &Tape) -> [StageOneText; 2] {
    let text = |n: u32| text(&geometry(), tape, 1024 * n);
    let whole = text(184).unwrap_or_else(|e| panic!("{e}\n{tape}"));
    let least = (1..184).find_map(|n| text(n).ok());
    [least.unwrap_or_else(|| whole.clone()), whole]
}

/// Writes a kernel for a unified buffer in which a sweep has several tiles unless it takes all lanes
/// at once, as only a sweep may that appends to an empty list.
fn emit_narrow_and_wide(tape: &Tape) -> StageOneText {
    let narrow_and_wide = |text: &StageOneText| {
        let constant = |name: &str| {
            let (_, value) = text.ops.split_once(&format!("{name} = "))?;
            value.split(';').next()?.parse::<u32>().ok()
        };
        constant("TILE") < Some(geometry().k) && constant("WIDE") >= Some(geometry().k)
    };
    let text = |n: u32| text(&geometry(), tape, 256 * n).ok();
    (1..4 * 184).filter_map(text).find(narrow_and_wide).expect("such a size of the unified buffer")
}

/// What the checker accepts can be emitted: the tapes of this file and those of Stage One have every
/// operation.
#[test]
fn every_operation_is_emitted() {
    let wide = Params { lifetime: Lifetime::Learned, page: 16, ..Params::wide(64, 2, 384) };
    let stages = [wide, Params::paper(64, 2, 256)].map(|p| {
        stage_one(&p).unwrap_or_else(|e| panic!("{e}"));
        record_stage_one(&p).unwrap()
    });
    let tapes = KERNELS.map(|kernel| (kernel.record)());
    tapes.iter().for_each(|tape| drop(emit(tape)));
    let ops = tapes.iter().chain(&stages).flat_map(|tape| tape.body.all());
    let name = |text: String| text.split(|c: char| !c.is_alphanumeric()).next().map(String::from);
    let used: BTreeSet<String> = ops.filter_map(|op| name(format!("{:?}", op.code))).collect();
    let missing: Vec<_> = OpCode::NAMES.iter().filter(|&&name| !used.contains(name)).collect();
    assert!(missing.is_empty(), "no tape has {missing:?}");
}

#[test]
fn small_kernels_match_the_cpu() {
    let p = geometry();
    let texts = |Kernel { record, native }| {
        let tape = record();
        emit(&tape).map(|text| (p, native, tape.clone(), text))
    };
    let mut all: Vec<_> = KERNELS.into_iter().flat_map(texts).collect();
    let lists = (LISTS_THAT_MIGHT_BE_EMPTY.record)();
    let narrow_and_wide = emit_narrow_and_wide(&lists);
    all.push((p, LISTS_THAT_MIGHT_BE_EMPTY.native, lists, narrow_and_wide));
    let Some(all) = emit_all(all, |text| text) else { return };
    for (seed, emitted) in (0..).zip(&all) {
        let mut steps = random_steps(&p, seed, 8);
        // These kernels write as many words as a token has ids.
        steps.retain(|(step, _)| !step.tokens.is_empty());
        emitted.compare(&emitted.trace(steps, false));
    }
}

/// A list that replaces another one shares its storage. So it must not need an item of a column
/// that it has overwritten.
#[test]
fn a_list_that_is_no_compaction_is_refused() {
    fn refused(append: Recorded) {
        let tape = record_tokens(append);
        check(&tape).unwrap_or_else(|e| panic!("{e}"));
        let failed = text(&geometry(), &tape, 184 * 1024).unwrap_err();
        assert!(failed.to_string().ends_with(&Why::Storage.to_string()), "{failed}");
    }
    refused(|m, d| {
        m.sweep(m.len(&d.pairs), |t| {
            let a = m.item(t, &d.pairs, 0);
            m.append(t, &mut d.more, all(m, t), [a, a]);
        });
        m.move_list(&mut d.pairs, &mut d.more);
    });
    refused(|m, d| {
        m.sweep(m.len(&d.pairs), |t| {
            let (a, b) = (m.item(t, &d.pairs, 0), m.item(t, &d.pairs, 1));
            m.append(t, &mut d.more, all(m, t), [b, m.low_bits(a, ID_LIMIT.ilog2())]);
        });
        m.move_list(&mut d.pairs, &mut d.more);
    });
    refused(|m, d| {
        m.sweep(m.len(&d.pairs), |t| {
            let (a, b) = (m.item(t, &d.pairs, 0), m.item(t, &d.pairs, 1));
            m.append(t, &mut d.more, all(m, t), [a, b]);
            m.store(t, &mut d.result, a);
        });
        m.move_list(&mut d.pairs, &mut d.more);
    });
    refused(|m, d| {
        m.sweep(d.k, |t| m.append(t, &mut d.more, all(m, t), [m.iota(t), m.iota(t)]));
        m.move_list(&mut d.pairs, &mut d.more);
    });
}

#[test]
fn columns_that_the_text_cannot_tell_apart_are_refused() {
    for name in ["pairs0", "iota", "summary"] {
        let mut tape = record_tokens(|m, d| scalars_of_conditions(m, d));
        let over = tape.find("over").unwrap().0 as usize;
        tape.columns[over].name = name.into();
        check(&tape).unwrap_or_else(|e| panic!("{e}"));
        let failed = text(&geometry(), &tape, 184 * 1024).unwrap_err();
        let why = Why::TextName(name.into());
        assert!(failed.to_string().ends_with(&why.to_string()), "{failed}");
    }
}
