//! Kernels on the memory and the arguments of Stage One. They reach what Stage One does not: operands
//! at the ends of their ranges, values that are read once more, lists that only might be empty,
//! columns that keep their words, and names that the text has.

use super::emitted_stage_one::Native;
use super::one_request::{UNTOUCHED, Way, arrays};
use avsg_device::machine::Machine;
use avsg_device::machine::cpu::{Column, Cpu, Life, List};
use avsg_device::machine::declare::Columns;
use avsg_device::machine::emu::Emu;
use avsg_device::one_request::{StageOne, split_work};
use avsg_device::params::{ID_LIMIT, Params};
use avsg_device::request::Request;
use avsg_device::schedule::Work;
use avsg_device::sequential::Sequential;
use avsg_device::state::State;
use avsg_linker::record::{Recorder, record_with};
use avsg_linker::tape::Tape;
use std::ops::RangeInclusive;

/// The memory of a kernel while it runs for a token. Each kernel writes `result`, `k` words.
pub struct Memory<'m, 'a, M: Machine> {
    state: &'m mut State<'a, M>,
    pub work: &'m mut Work<'a, M, Sequential>,
    request: &'m mut Request<'a, M>,
    pub k: M::Scalar,
    token: M::Scalar,
    /// Words in 0..=256.
    over: M::Column<'static>,
    /// Words in 0..=2^24.
    hashed: M::Column<'static>,
    /// Words in -1..=10.
    small: M::Column<'static>,
    other: M::Column<'static>,
    pub result: M::Column<'static>,
    /// Pairs of ids.
    pub pairs: M::List<'static, 2>,
    pub more: M::List<'static, 2>,
}

type Part<'f, M> = &'f dyn Fn(M, &mut Memory<'_, '_, M>);
pub type Recorded = for<'t> fn(Recorder<'t>, &mut Memory<'_, '_, Recorder<'t>>);

/// A kernel as a tape, and on a CPU.
pub struct Kernel {
    pub record: fn() -> Tape,
    pub native: Native,
}

/// Makes a [`Kernel`] of what runs before all tokens, for each token and after all tokens.
macro_rules! kernel {
    ($before:ident, $token:ident, $after:ident) => {
        Kernel {
            record: || record(|m, d| $before(m, d), |m, d| $token(m, d), |m, d| $after(m, d)),
            native: |one, way| run_on_cpu(one, way, [&$before, &$token, &$after]),
        }
    };
    ($token:ident) => {
        kernel!(nothing, $token, nothing)
    };
}

fn nothing<M: Machine>(_: M, _: &mut Memory<'_, '_, M>) {}

pub fn geometry() -> Params {
    Params::paper(300, 2, 1024)
}

/// Records a kernel that runs for each token.
pub fn record_tokens(kernel: Recorded) -> Tape {
    record(|_, _| {}, kernel, |_, _| {})
}

fn record(before: Recorded, token: Recorded, after: Recorded) -> Tape {
    let tape = record_with(Sequential, &geometry(), |mut m, state, work, request| {
        run(m, &mut memory(&mut m, state, work, request), [&before, &token, &after]);
    });
    tape.unwrap_or_else(|e| panic!("{e}"))
}

fn run_on_cpu(one: StageOne<'_>, way: Way, parts: [Part<'_, Emu<16>>; 3]) {
    let p = *one.params;
    let (mut state, work, mut request) = arrays(one, way);
    let mut work = split_work(Sequential, &p, work);
    run(Emu, &mut memory(&mut Leaked, &mut state, &mut work, &mut request), parts);
}

/// Columns that no step frees: they are few and small.
struct Leaked;

fn leaked() -> &'static mut [i32] {
    vec![UNTOUCHED; 1024].leak()
}

impl<C: Cpu> Columns<'static, C> for Leaked {
    fn column(&mut self, _: &'static str, _: u32, _: RangeInclusive<i32>) -> Column<'static> {
        Column::new(leaked())
    }
    fn list<const W: usize>(
        &mut self,
        _: &'static str,
        _: u32,
        _: [(&'static str, RangeInclusive<i32>); W],
    ) -> List<'static, W> {
        List::new([(); W].map(|()| leaked()))
    }
    fn life(&mut self, name: &'static str, _: u32) -> Life<'static> {
        panic!("no kernel here has working lifetimes: {name}")
    }
}

fn memory<'m, 'a, M: Machine>(
    columns: &mut impl Columns<'static, M>,
    state: &'m mut State<'a, M>,
    work: &'m mut Work<'a, M, Sequential>,
    request: &'m mut Request<'a, M>,
) -> Memory<'m, 'a, M> {
    let (k, any) = (geometry().k, i32::MIN..=i32::MAX);
    let pair = || ["a", "b"].map(|name| (name, 0..=ID_LIMIT - 1));
    Memory {
        k: request.k,
        token: request.k,
        state,
        work,
        request,
        over: columns.column("over", k, 0..=256),
        hashed: columns.column("hashed", k, 0..=1 << 24),
        small: columns.column("small", k, -1..=10),
        // A word of C++.
        other: columns.column("switch", k, any.clone()),
        result: columns.column("result", k, any),
        pairs: columns.list("pairs", k, pair()),
        more: columns.list("more", k, pair()),
    }
}

fn run<M: Machine>(m: M, d: &mut Memory<'_, '_, M>, [before, each, after]: [Part<'_, M>; 3]) {
    before(m, d);
    m.repeat(geometry().tokens, d.request.tokens, |token| {
        d.token = token;
        let from = d.request.ids.at + d.request.ids.stride * token;
        m.copy_in(&mut d.work.ids, &d.request.ids.words, from, d.k);
        each(m, d);
        let to = d.request.misses.at + d.k * token;
        m.copy_out(&mut d.request.misses.slot, to, &d.result, d.k);
    });
    after(m, d);
}

/// Returns a mask that is set in all lanes.
pub fn all<M: Machine>(m: M, t: M::Tile) -> M::Mask {
    !m.is_negative(m.iota(t))
}

/// Publishes a list and its length.
fn publish<M: Machine>(m: M, d: &mut Memory<'_, '_, M>) {
    let (at, n) = (d.request.valid.at + d.token, m.len(&d.pairs));
    m.write_output(&mut d.request.valid.words, at, n);
    m.copy_out_list(&mut d.request.misses.id, d.request.misses.at, &d.pairs, 0);
    m.copy_out_list(&mut d.request.misses.row, d.request.misses.at, &d.pairs, 1);
}

/// A mask may be left out only where no operand has a higher bit. Lane 0 has one.
fn operands_just_outside_of_a_mask<M: Machine>(m: M, d: &mut Memory<'_, '_, M>) {
    m.sweep(m.scalar(1024), |t| m.store(t, &mut d.state.id, m.iota(t)));
    m.sweep(d.k, |t| {
        let lane = m.iota(t);
        let first = m.eq_to(lane, 0);
        m.store(t, &mut d.over, m.select(first, m.splat(256), m.low_bits(lane, 8)));
        m.store(t, &mut d.hashed, m.select(first, m.splat(1 << 24), lane * 52_000));
    });
    m.sweep(d.k, |t| {
        let over = m.load(t, &d.over);
        let held = m.gather(&d.state.id, over * 4);
        let sum = m.madd(m.load(t, &d.hashed), 27_381, 2_305) + m.low_bits(over, 8);
        m.store(t, &mut d.result, sum + held);
    });
}

/// Selections that are a maximum, and others that only look like one; one is by a lifetime.
fn selections_by_a_sign<M: Machine>(m: M, d: &mut Memory<'_, '_, M>) {
    m.sweep(d.k, |t| {
        let lane = m.iota(t);
        let small = m.select(m.eq_to(lane & 7, 3), m.splat(-1), m.low_bits(lane, 3) + 2);
        m.store(t, &mut d.small, small);
        m.store(t, &mut d.over, m.low_bits(lane * 5, 4));
        m.set_life(t, &mut d.state.life, lane, 1, m.eq_to(lane & 4, 4));
    });
    m.sweep(d.k, |t| {
        let (x, y) = (m.load(t, &d.small), m.load(t, &d.over));
        let below = m.is_negative(x + -5);
        let larger = m.select(below, m.splat(5), x) + m.select(below, m.splat(7), x) * 16;
        let by_another = m.select(m.is_negative(y + -5), m.splat(5), x) * 256;
        let positive = m.select(m.is_negative(x), m.splat(0), x) * 4096;
        let other = m.select(m.is_negative(y + -5), m.splat(0), x) * (1 << 20);
        let flag = m.select(!m.is_negative(x), m.splat(1 << 16), m.splat(0));
        let lived = m.gather_life(&d.state.life, m.low_bits(m.iota(t), 8));
        let young = m.select(!m.is_negative(lived - d.token), m.splat(1 << 25), m.splat(0));
        m.store(t, &mut d.result, larger + by_another + positive + flag + other + young);
    });
}

/// A value that is stored, and then used once more.
fn a_stored_value_that_is_used_again<M: Machine>(m: M, d: &mut Memory<'_, '_, M>) {
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
fn an_item_that_is_read_after_an_append<M: Machine>(m: M, d: &mut Memory<'_, '_, M>) {
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
    m.copy_out(&mut d.request.misses.position, d.request.misses.at, &d.other, n);
    publish(m, d);
    m.sweep(d.k, |t| m.store(t, &mut d.result, m.iota(t)));
}

/// Rounds over lists that share their storage, where each column takes a column behind it.
fn a_list_that_is_compacted_in_place<M: Machine>(m: M, d: &mut Memory<'_, '_, M>) {
    m.clear(&mut d.pairs);
    m.clear(&mut d.more);
    m.sweep(d.k, |t| {
        let x = m.low_bits(m.load(t, &d.work.ids), 20);
        m.append(t, &mut d.pairs, all(m, t), [x, m.iota(t)]);
    });
    m.repeat(2, m.scalar(2), |round| {
        m.sweep(m.len(&d.pairs), |t| {
            let (a, b) = (m.item(t, &d.pairs, 0), m.item(t, &d.pairs, 1));
            let kept = m.is_negative(m.low_bits(a, 8) - m.low_bits(b + round * m.scalar(64), 8));
            m.append(t, &mut d.more, kept, [b, b]);
        });
        m.move_list(&mut d.pairs, &mut d.more);
    });
    publish(m, d);
    m.sweep(d.k, |t| m.store(t, &mut d.result, m.iota(t)));
}

/// Lists that are empty in some tokens and rounds only, and a length that is read before a change.
fn lists_that_might_be_empty<M: Machine>(m: M, d: &mut Memory<'_, '_, M>) {
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
fn scatters_side_by_side<M: Machine>(m: M, d: &mut Memory<'_, '_, M>) {
    m.sweep(m.scalar(512), |t| m.store(t, &mut d.work.slot, m.splat(-1)));
    m.sweep(m.scalar(1024), |t| m.store(t, &mut d.state.id, m.iota(t)));
    m.sweep(d.k, |t| {
        let lane = m.iota(t);
        let (x, y) = (m.low_bits(lane * 3, 9), m.low_bits(lane * 5, 9));
        m.scatter(t, &mut d.state.id, x, m.low_bits(lane, 4), all(m, t));
        m.scatter(t, &mut d.work.slot, lane, y, all(m, t));
    });
    m.sweep(d.k, |t| m.store(t, &mut d.result, m.load(t, &d.work.slot)));
}

/// Adds the ids of the token to a column, and uses another one before and after that.
fn add_to_other<M: Machine>(m: M, d: &mut Memory<'_, '_, M>) {
    m.sweep(d.k, |t| m.store(t, &mut d.hashed, m.low_bits(m.load(t, &d.work.ids), 20)));
    m.sweep(d.k, |t| {
        let sum = m.low_bits(m.load(t, &d.other), 20) + m.load(t, &d.hashed);
        m.store(t, &mut d.other, sum);
        m.store(t, &mut d.result, sum);
    });
    m.sweep(d.k, |t| m.store(t, &mut d.over, m.low_bits(m.iota(t), 3)));
    m.sweep(d.k, |t| {
        let sum = m.low_bits(m.load(t, &d.result), 22) + m.load(t, &d.over);
        m.store(t, &mut d.result, sum);
    });
}

/// Columns that keep their words from token to token, and are written before the first and read after the last. Each token changes
/// one, and some tokens write the other one. Other columns are only live in a part of a token.
fn around_the_tokens<M: Machine>(m: M, d: &mut Memory<'_, '_, M>) {
    add_to_other(m, d);
    m.when(m.not(m.ne(d.token, m.scalar(0))), || {
        m.sweep(d.k, |t| m.store(t, &mut d.small, m.low_bits(m.load(t, &d.over), 2)));
    });
}

fn before_the_tokens<M: Machine>(m: M, d: &mut Memory<'_, '_, M>) {
    m.sweep(d.k, |t| m.store(t, &mut d.other, m.iota(t) * 3));
    m.sweep(d.k, |t| m.store(t, &mut d.small, m.splat(2)));
}

fn after_the_tokens<M: Machine>(m: M, d: &mut Memory<'_, '_, M>) {
    m.copy_out(&mut d.request.misses.row, d.request.misses.at, &d.other, d.k);
    m.copy_out(&mut d.request.misses.id, d.request.misses.at, &d.small, d.k);
}

/// Values with names that C++ and the text use themselves.
fn names_that_the_text_has<M: Machine>(m: M, d: &mut Memory<'_, '_, M>) {
    let sum = m.name_scalar("class", d.token + 2);
    let more = m.name_scalar("lanes", sum + d.k);
    m.sweep(d.k, |t| {
        let x = m.name_vector("register", m.low_bits(m.load(t, &d.work.ids), 10) + sum);
        let even = m.name_mask("int", m.eq_to(m.name_vector("base", m.low_bits(x, 1)), 0));
        m.store(t, &mut d.result, m.select(even, x + more, x * 3));
    });
}

/// Scalars: the larger of conditions and of numbers, and opposites.
pub fn scalars_of_conditions<M: Machine>(m: M, d: &mut Memory<'_, '_, M>) {
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
fn products_and_words<M: Machine>(m: M, d: &mut Memory<'_, '_, M>) {
    let three = m.scalar(3) + m.min(d.token, m.scalar(1));
    m.sweep(d.k, |t| {
        let (lane, x) = (m.iota(t), m.low_bits(m.load(t, &d.work.ids), 10));
        let words = ((x * lane) & (x | lane)) + (x & 0xF0F) + (x | 0x700) * three;
        let chosen = m.eq(x, lane) | m.eq_to(m.low_bits(lane, 2), 1);
        m.store(t, &mut d.result, m.select(chosen & !m.eq_to(x, 5), words - three, x - lane));
    });
}

pub const LISTS_THAT_MIGHT_BE_EMPTY: Kernel = kernel!(lists_that_might_be_empty);

pub const KERNELS: [Kernel; 11] = [
    kernel!(operands_just_outside_of_a_mask),
    kernel!(selections_by_a_sign),
    kernel!(a_stored_value_that_is_used_again),
    kernel!(an_item_that_is_read_after_an_append),
    kernel!(a_list_that_is_compacted_in_place),
    LISTS_THAT_MIGHT_BE_EMPTY,
    kernel!(scatters_side_by_side),
    kernel!(names_that_the_text_has),
    kernel!(scalars_of_conditions),
    kernel!(products_and_words),
    kernel!(before_the_tokens, around_the_tokens, after_the_tokens),
];
