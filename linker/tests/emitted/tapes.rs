//! Small kernels on the memory and the arguments of Stage One: emitted and run on the shim, each
//! gives the bits of its tape. They reach what Stage One does not: operands at the ends of their
//! ranges, values that are read once more, and lists that only might be empty.

use super::compiled::compile_all;
use super::shim::Mode;
use super::stage_one::{Emitted, file, run_and_compare};
use super::steps::{self, SplitMix64, StepState};
use avsg_device::machine::{Indices, Machine};
use avsg_device::params::{ID_LIMIT, Lifetime, Params};
use avsg_device::request::Request;
use avsg_device::schedule::Work;
use avsg_device::sequential::Sequential;
use avsg_device::state::State;
use avsg_linker::ascend::aiv::CountRead;
use avsg_linker::ascend::{StageOneText, stage_one, text};
use avsg_linker::check::{Why, check};
use avsg_linker::record::{List, Recorder, Scalar, Words, record_stage_one, record_with};
use avsg_linker::tape::{OpCode, Range, Tape};
use std::collections::BTreeSet;

/// The memory of a kernel while it runs for a token. Each kernel writes `result`, `k` words.
struct Memory<'m, 'a, 't> {
    state: &'m mut State<'a, Recorder<'t>>,
    work: &'m mut Work<'a, Recorder<'t>, Sequential>,
    request: &'m mut Request<'a, Recorder<'t>>,
    k: Scalar<'t>,
    token: Scalar<'t>,
    /// Words in 0..=256.
    over: Words,
    /// Words in 0..=2^22.
    hashed: Words,
    /// Words in -1..=10.
    small: Words,
    other: Words,
    result: Words,
    /// Pairs of ids.
    pairs: List<2>,
    more: List<2>,
}

type Kernel = for<'t> fn(Recorder<'t>, &mut Memory<'_, '_, 't>);

fn geometry() -> Params {
    Params::paper(300, 2, 1024)
}

fn record(kernel: Kernel) -> Tape {
    let p = geometry();
    let tape = record_with::<Sequential>(&p, |m, state, work, request| {
        let column = |name, lo, hi| m.column(name, p.k, Range::new(lo, hi));
        let ids = Range::new(0, ID_LIMIT - 1);
        let list = |name| m.list(name, p.k, [("a", ids), ("b", ids)]);
        let (k, tokens) = (request.k, request.tokens);
        let mut d = Memory {
            state,
            work,
            request,
            k,
            token: k,
            over: column("over", 0, 256),
            hashed: column("hashed", 0, 1 << 22),
            small: column("small", -1, 10),
            other: column("other", i32::MIN, i32::MAX),
            result: column("result", i32::MIN, i32::MAX),
            pairs: list("pairs"),
            more: list("more"),
        };
        m.repeat(p.tokens, tokens, |token| {
            d.token = token;
            let from = d.request.ids.at + d.request.ids.stride * token;
            m.fetch(&mut d.work.ids, &d.request.ids.words, from, k);
            kernel(m, &mut d);
            let to = d.request.misses.at + k * token;
            m.publish(&mut d.request.misses.slot, to, &d.result, k);
        });
    });
    tape.unwrap_or_else(|e| panic!("{e}"))
}

/// Writes a kernel for the smallest unified buffer that suffices, so that a sweep has several
/// tiles, and for the whole one, in which some sweeps take all lanes at once.
fn emit(tape: &Tape) -> [StageOneText; 2] {
    let text = |n: u32| text(&geometry(), tape, 1024 * n, CountRead::AfterWait);
    let whole = text(184).unwrap_or_else(|e| panic!("{e}\n{tape}"));
    let least = (1..184).find_map(|n| text(n).ok());
    [least.unwrap_or_else(|| whole.clone()), whole]
}

/// Returns a mask that is set in all lanes.
fn all<M: Machine>(m: M, t: M::Tile) -> M::Mask {
    !m.is_negative(m.iota(t))
}

/// Publishes a list and its length.
fn publish<'t>(m: Recorder<'t>, d: &mut Memory<'_, '_, 't>) {
    let (at, n) = (d.request.valid.at + d.token, m.len(&d.pairs));
    m.write_output(&mut d.request.valid.words, at, n);
    m.publish_list(&mut d.request.misses.id, d.request.misses.at, &d.pairs, 0);
    m.publish_list(&mut d.request.misses.row, d.request.misses.at, &d.pairs, 1);
}

/// A mask may be left out only where no operand has a higher bit. Lane 0 has one.
fn operands_just_outside_of_a_mask<'t>(m: Recorder<'t>, d: &mut Memory<'_, '_, 't>) {
    m.sweep(m.scalar(1024), |t| m.store(t, &mut d.state.id, m.iota(t)));
    m.sweep(d.k, |t| {
        let lane = m.iota(t);
        let first = m.eq_to(lane, 0);
        m.store(t, &mut d.over, m.select(first, m.splat(256), m.low_bits(lane, 8)));
        m.store(t, &mut d.hashed, m.select(first, m.splat(1 << 22), lane * 13_000));
    });
    m.sweep(d.k, |t| {
        let over = m.load(t, &d.over);
        let held = m.gather(&d.state.id, over * 4);
        let sum = m.madd(m.load(t, &d.hashed), 27_381, 2_305) + m.low_bits(over, 8);
        m.store(t, &mut d.result, sum + held);
    });
}

/// Selections that are a maximum, and others that only look like one.
fn selections_by_a_sign<'t>(m: Recorder<'t>, d: &mut Memory<'_, '_, 't>) {
    m.sweep(d.k, |t| {
        let lane = m.iota(t);
        let small = m.select(m.eq_to(lane & 7, 3), m.splat(-1), m.low_bits(lane, 3) + 2);
        m.store(t, &mut d.small, small);
        m.store(t, &mut d.over, m.low_bits(lane * 5, 4));
    });
    m.sweep(d.k, |t| {
        let (x, y) = (m.load(t, &d.small), m.load(t, &d.over));
        let below = m.is_negative(x + -5);
        let larger = m.select(below, m.splat(5), x) + m.select(below, m.splat(7), x) * 16;
        let by_another = m.select(m.is_negative(y + -5), m.splat(5), x) * 256;
        let positive = m.select(m.is_negative(x), m.splat(0), x) * 4096;
        let other = m.select(m.is_negative(y + -5), m.splat(0), x) * (1 << 20);
        let flag = m.select(!m.is_negative(x), m.splat(1 << 16), m.splat(0));
        m.store(t, &mut d.result, larger + by_another + positive + flag + other);
    });
}

/// A value that is stored, and then used once more.
fn a_stored_value_that_is_used_again<'t>(m: Recorder<'t>, d: &mut Memory<'_, '_, 't>) {
    m.clear(&mut d.pairs);
    m.sweep(d.k, |t| {
        let x = m.low_bits(m.load(t, &d.work.ids), 20) * 3;
        m.store(t, &mut d.other, x);
        m.store(t, &mut d.result, x);
        m.append(t, &mut d.pairs, m.eq_to(x & 4, 0), [x, m.low_bits(x, 4)]);
    });
    m.sweep(d.k, |t| {
        let x = m.low_bits(m.load(t, &d.other), 20);
        let sum = m.low_bits(m.load(t, &d.result), 20) + x;
        m.store(t, &mut d.result, sum);
    });
    publish(m, d);
}

/// Lists that could be written over the one that they are made from, if that one were not read
/// afterwards, or by the next column.
fn an_item_that_is_read_after_an_append<'t>(m: Recorder<'t>, d: &mut Memory<'_, '_, 't>) {
    m.clear(&mut d.work.pending);
    m.clear(&mut d.pairs);
    m.clear(&mut d.more);
    m.sweep(d.k, |t| {
        let x = m.low_bits(m.load(t, &d.work.ids), 20);
        m.append(t, &mut d.work.pending, m.eq_to(x & 1, 0), [x, m.iota(t)]);
    });
    let n = m.len(&d.work.pending);
    m.sweep(n, |t| {
        let (x, lane) = (m.item(t, &d.work.pending, 0), m.item(t, &d.work.pending, 1));
        m.append(t, &mut d.more, m.eq_to(lane & 2, 0), [x, x]);
        m.append(t, &mut d.pairs, m.eq_to(lane & 2, 2), [lane, lane]);
        m.store(t, &mut d.other, x + 1);
    });
    m.publish(&mut d.request.misses.position, d.request.misses.at, &d.other, n);
    publish(m, d);
    m.sweep(d.k, |t| m.store(t, &mut d.result, m.iota(t)));
}

/// Rounds over lists that share their storage, where each column takes a column behind it.
fn a_list_that_is_compacted_in_place<'t>(m: Recorder<'t>, d: &mut Memory<'_, '_, 't>) {
    fill_pairs(m, d);
    m.repeat(2, m.scalar(2), |round| {
        m.sweep(m.len(&d.pairs), |t| {
            let (a, b) = (m.item(t, &d.pairs, 0), m.item(t, &d.pairs, 1));
            let kept = m.is_negative(m.low_bits(a, 8) - m.low_bits(b + round * m.scalar(64), 8));
            m.append(t, &mut d.more, kept, [b, b]);
        });
        m.take(&mut d.pairs, &mut d.more);
    });
    publish(m, d);
    m.sweep(d.k, |t| m.store(t, &mut d.result, m.iota(t)));
}

fn fill_pairs<'t>(m: Recorder<'t>, d: &mut Memory<'_, '_, 't>) {
    m.clear(&mut d.pairs);
    m.clear(&mut d.more);
    m.sweep(d.k, |t| {
        let x = m.low_bits(m.load(t, &d.work.ids), 20);
        m.append(t, &mut d.pairs, all(m, t), [x, m.iota(t)]);
    });
}

/// Lists that are empty in some tokens and rounds only, and a length that is read before a change.
fn lists_that_might_be_empty<'t>(m: Recorder<'t>, d: &mut Memory<'_, '_, 't>) {
    m.sweep(d.k, |t| m.store(t, &mut d.over, m.low_bits(m.iota(t), 4)));
    m.clear(&mut d.pairs);
    for kept in [3, 5, 9] {
        // A sweep that needs so few registers takes more lanes at a time, if the list is empty.
        m.sweep(d.k, |t| {
            let x = m.load(t, &d.over);
            m.append(t, &mut d.pairs, m.eq_to(x, kept), [x, x]);
        });
        m.when(m.gt(m.scalar(1), d.token), || m.clear(&mut d.pairs));
    }
    m.clear(&mut d.more);
    m.repeat(2, m.scalar(2), |_| {
        m.sweep(d.k, |t| {
            let x = m.load(t, &d.over);
            m.append(t, &mut d.more, m.eq_to(x, 7), [x, x]);
        });
    });
    let before = m.len(&d.more);
    m.clear(&mut d.more);
    let after = m.len(&d.more);
    m.sweep(d.k, |t| m.store(t, &mut d.result, m.iota(t) + before + after));
    publish(m, d);
}

/// Two scatters of one sweep, of which the second does not write the indices of the first.
fn scatters_side_by_side<'t>(m: Recorder<'t>, d: &mut Memory<'_, '_, 't>) {
    m.sweep(m.scalar(512), |t| m.store(t, &mut d.work.slot, m.splat(-1)));
    m.sweep(m.scalar(1024), |t| m.store(t, &mut d.state.id, m.iota(t)));
    m.sweep(d.k, |t| {
        let lane = m.iota(t);
        let (x, y) = (m.low_bits(lane * 3, 9), m.low_bits(lane * 5, 9));
        m.scatter(t, &mut d.state.id, x, m.low_bits(lane, 4), all(m, t), Indices::Repeated);
        m.scatter(t, &mut d.work.slot, lane, y, all(m, t), Indices::Distinct);
    });
    m.sweep(d.k, |t| m.store(t, &mut d.result, m.load(t, &d.work.slot)));
}

/// Scalars: the larger of conditions and of numbers, and opposites.
fn scalars_of_conditions<'t>(m: Recorder<'t>, d: &mut Memory<'_, '_, 't>) {
    let (some, many) = (m.ne(d.token, m.scalar(0)), m.gt(d.k, m.scalar(200)));
    let either = m.max(some, many);
    let sum = m.max(some, d.token + 2) + m.max(either, m.not(many)) + m.not(m.max(some, many));
    m.sweep(d.k, |t| m.store(t, &mut d.result, m.iota(t) * 8 + sum + either));
    m.when(either, || m.write_output(&mut d.request.valid.words, d.request.valid.at, d.k));
    m.when(m.not(either), || {
        m.write_output(&mut d.request.valid.words, d.request.valid.at, d.token);
    });
}

/// Operations that Stage One does not have.
fn products_and_words<'t>(m: Recorder<'t>, d: &mut Memory<'_, '_, 't>) {
    let three = m.scalar(3) + m.min(d.token, m.scalar(1));
    m.sweep(d.k, |t| {
        let (lane, x) = (m.iota(t), m.low_bits(m.load(t, &d.work.ids), 10));
        let words = ((x * lane) & (x | lane)) + (x & 0xF0F) + (x | 0x700) * three;
        let chosen = m.eq(x, lane) | m.eq_to(m.low_bits(lane, 2), 1);
        m.store(t, &mut d.result, m.select(chosen & !m.eq_to(x, 5), words - three, x - lane));
    });
}

const KERNELS: [Kernel; 9] = [
    operands_just_outside_of_a_mask,
    selections_by_a_sign,
    a_stored_value_that_is_used_again,
    an_item_that_is_read_after_an_append,
    a_list_that_is_compacted_in_place,
    lists_that_might_be_empty,
    scatters_side_by_side,
    scalars_of_conditions,
    products_and_words,
];

/// What the checker accepts can be emitted: the tapes of this file and those of Stage One have every
/// operation.
#[test]
fn every_operation_is_emitted() {
    let wide = Params { lifetime: Lifetime::frequency(), page: 16, ..Params::wide(64, 2, 256) };
    let stages = [wide, Params::paper(64, 2, 256)].map(|p| {
        stage_one(&p).unwrap_or_else(|e| panic!("{e}"));
        record_stage_one(&p).unwrap()
    });
    let tapes = KERNELS.map(record);
    tapes.iter().for_each(|tape| drop(emit(tape)));
    let ops = tapes.iter().chain(&stages).flat_map(|tape| tape.body.all());
    let name = |text: String| text.split(|c: char| !c.is_alphanumeric()).next().map(String::from);
    let used: BTreeSet<String> = ops.filter_map(|op| name(format!("{:?}", op.code))).collect();
    let missing: Vec<_> = OpCode::NAMES.iter().filter(|&&name| !used.contains(name)).collect();
    assert!(missing.is_empty(), "no tape has {missing:?}");
}

#[test]
fn small_kernels_match_their_tapes() {
    let (p, tapes) = (geometry(), KERNELS.map(record));
    let texts = tapes.each_ref().map(emit).concat();
    let files: Vec<_> = texts.iter().map(|text| file(&p, text)).collect();
    let Some(compiled) = compile_all(&files) else { return };
    for (n, (kernels, text)) in compiled.into_iter().zip(texts).enumerate() {
        let tape = &tapes[n / 2];
        let (emitted, mut state) = (Emitted { text, kernels }, StepState::clear(&p));
        for (at, step) in steps::sequence(&p, &mut SplitMix64(n as u64), 6).iter().enumerate() {
            let before = state.clone();
            let want = state.replay(tape, 16, step);
            for mode in [Mode::InOrder, Mode::Adversarial] {
                run_and_compare(&p, &emitted, &before, &want, step, (mode, at as u64))
                    .unwrap_or_else(|e| panic!("text {n}, step {at}, {mode:?}: {e}\n{tape}"));
            }
        }
    }
}

/// A list that replaces another one shares its storage. So it must not need an item of a column
/// that it has overwritten.
#[test]
fn a_list_that_is_no_compaction_is_refused() {
    fn refused(append: Kernel) {
        let tape = record(append);
        check(&tape).unwrap_or_else(|e| panic!("{e}"));
        let failed = text(&geometry(), &tape, 184 * 1024, CountRead::AfterWait).unwrap_err();
        assert!(failed.to_string().ends_with(&Why::Storage.to_string()), "{failed}");
    }
    refused(|m, d| {
        m.sweep(m.len(&d.pairs), |t| {
            let a = m.item(t, &d.pairs, 0);
            m.append(t, &mut d.more, all(m, t), [a, a]);
        });
        m.take(&mut d.pairs, &mut d.more);
    });
    refused(|m, d| {
        m.sweep(m.len(&d.pairs), |t| {
            let (a, b) = (m.item(t, &d.pairs, 0), m.item(t, &d.pairs, 1));
            m.append(t, &mut d.more, all(m, t), [b, m.low_bits(a, 22)]);
        });
        m.take(&mut d.pairs, &mut d.more);
    });
    refused(|m, d| {
        m.sweep(m.len(&d.pairs), |t| {
            let (a, b) = (m.item(t, &d.pairs, 0), m.item(t, &d.pairs, 1));
            m.append(t, &mut d.more, all(m, t), [a, b]);
            m.store(t, &mut d.result, a);
        });
        m.take(&mut d.pairs, &mut d.more);
    });
    refused(|m, d| {
        m.sweep(d.k, |t| m.append(t, &mut d.more, all(m, t), [m.iota(t), m.iota(t)]));
        m.take(&mut d.pairs, &mut d.more);
    });
}
