//! Kernels that break a rule of the kernel language are refused by the recorder or the checker.

use avsg_device::hash;
use avsg_device::machine::Machine;
use avsg_device::machine::cpu::{Column, Cpu, Scalar};
use avsg_device::machine::emu::Emu;
use avsg_device::machine::links::Links;
use avsg_device::params::Params;
use avsg_linker::check::{Refused, Why, check};
use avsg_linker::record::record_stage_one;
use avsg_linker::record::{Life, List, Output, Recorder, Recording, Scalar as S, Words};
use avsg_linker::tape::code::Role;
use avsg_linker::tape::{Range, Tape};

/// Memory of a kernel under test.
struct Memory<'t> {
    n: S<'t>,
    x: Words,
    y: Words,
    odd: Words,
    life: Life,
    list: List<1>,
    more: List<1>,
    out: Output,
}

const BYTE: Range = Range { lo: 0, hi: 255 };

fn record(kernel: impl for<'t> FnOnce(Recorder<'t>, Memory<'t>)) -> Result<Tape, Refused> {
    let recording = Recording::new("wrong");
    let m = recording.recorder();
    let memory = Memory {
        n: m.param("n", "Lanes.", Range::new(0, 64)),
        x: m.column("x", 64, BYTE),
        y: m.column("y", 64, Range::ANY),
        odd: m.column("odd", 63, BYTE),
        life: m.life("life", 64),
        list: m.list("list", 64, [("byte", BYTE)]),
        more: m.list("more", 64, [("byte", BYTE)]),
        out: m.output("out", Range::ANY),
    };
    kernel(m, memory);
    recording.finish()
}

/// The lanes of a sweep.
type Tile<'t> = <Recorder<'t> as Machine>::Tile;

/// Returns a kernel that is one sweep over `n` lanes.
fn sweep(
    body: impl for<'t> Fn(Recorder<'t>, &mut Memory<'t>, Tile<'t>),
) -> impl for<'t> FnOnce(Recorder<'t>, Memory<'t>) {
    move |m, mut d| m.sweep(d.n, |t| body(m, &mut d, t))
}

/// Records and checks a kernel.
fn checked(kernel: impl for<'t> FnOnce(Recorder<'t>, Memory<'t>)) -> Result<(), Refused> {
    record(kernel).and_then(|tape| check(&tape))
}

/// Returns the reason for which the recorder or the checker refuses a kernel.
fn refused(kernel: impl for<'t> FnOnce(Recorder<'t>, Memory<'t>)) -> Why {
    let refused = checked(kernel).expect_err("a wrong kernel passes");
    println!("{refused}");
    refused.why
}

/// Asserts that the recorder or the checker refuses a kernel for this reason.
fn expect_refused(why: Why, kernel: impl for<'t> FnOnce(Recorder<'t>, Memory<'t>)) {
    assert_eq!(refused(kernel), why);
}

/// Asserts that a kernel of one sweep is refused for this reason.
fn expect_refused_sweep(why: Why, body: impl for<'t> Fn(Recorder<'t>, &mut Memory<'t>, Tile<'t>)) {
    expect_refused(why, sweep(body));
}

#[test]
fn a_column_has_one_role_per_sweep() {
    let two_roles = |name: &str, first, second| Why::TwoRoles(name.into(), first, second);
    expect_refused_sweep(two_roles("x", Role::Gathered, Role::Scattered), |m, d, t| {
        let v = m.gather(&d.x, m.iota(t));
        m.scatter(t, &mut d.x, m.iota(t), v, m.is_negative(v));
    });
    expect_refused_sweep(two_roles("x", Role::Streamed, Role::Gathered), |m, d, t| {
        let v = m.gather(&d.x, m.load(t, &d.x));
        m.store(t, &mut d.y, v);
    });
    expect_refused_sweep(two_roles("list", Role::Streamed, Role::Appended), |m, d, t| {
        let v = m.item(t, &d.list, 0);
        m.append(t, &mut d.list, m.is_negative(v), [v]);
    });
    // The results of two writers in one sweep would interleave by tiles.
    expect_refused_sweep(Why::TwoWriters("list".into(), Role::Appended), |m, d, t| {
        let v = m.load(t, &d.x);
        m.append(t, &mut d.list, m.is_negative(v), [v]);
        m.append(t, &mut d.list, !m.is_negative(v), [v]);
    });
    expect_refused_sweep(Why::TwoWriters("life".into(), Role::Scattered), |m, d, t| {
        let v = m.load(t, &d.x);
        m.set_life(t, &mut d.life, v, 1, m.is_negative(v));
        m.set_life(t, &mut d.life, m.iota(t), 2, m.is_negative(v));
    });
}

#[test]
fn a_value_is_not_used_outside_its_block() {
    let vector = refused(|m, mut d| {
        let mut kept = None;
        m.sweep(d.n, |t| kept = Some(m.load(t, &d.x)));
        m.sweep(d.n, |t| m.store(t, &mut d.y, kept.expect("recorded")));
    });
    let tile = refused(|m, mut d| {
        let mut kept = None;
        m.sweep(d.n, |t| kept = Some(t));
        m.sweep(d.n, |_| m.store(kept.expect("recorded"), &mut d.y, m.splat(1)));
    });
    let scalar = refused(|m, mut d| {
        let mut kept = None;
        m.repeat(3, d.n, |r| kept = Some(r + 1));
        m.write_output(&mut d.out, d.n, kept.expect("recorded"));
    });
    for why in [vector, tile, scalar] {
        assert!(matches!(why, Why::Undefined(_)), "{why}");
    }
}

#[test]
fn rust_variables_do_not_carry_values_between_rounds() {
    expect_refused(Why::Carried, |m, mut d| {
        let mut sum = m.scalar(0);
        m.repeat(3, d.n, |r| {
            sum = sum + r;
            m.write_output(&mut d.out, r, sum);
        });
    });
    expect_refused(Why::Carried, |m, mut d| {
        m.repeat(2, d.n, |_| {
            let mut first = None;
            m.repeat(3, d.n, |r| {
                let here = r + 1;
                m.write_output(&mut d.out, r, *first.get_or_insert(here));
            });
        });
    });
    expect_refused(Why::Carried, |m, mut d| {
        m.repeat(3, d.n, |_| {
            m.clear(&mut d.list);
            std::mem::swap(&mut d.list, &mut d.more);
        });
    });
}

#[test]
fn operations_are_refused_where_the_width_would_matter() {
    expect_refused_sweep(Why::InsideSweep, |m, d, _| m.write_output(&mut d.out, d.n, d.n));
    expect_refused_sweep(Why::InsideSweep, |m, d, t| {
        m.store(t, &mut d.y, m.splat(0) + m.len(&d.list))
    });
    expect_refused(Why::InsideSweep, |m, d| m.sweep(d.n, |_| m.sweep(d.n, |_| ())));
    expect_refused(Why::OutsideSweep, |m, _| drop(vec![m.splat(1)]));
}

#[test]
fn constants_out_of_range_are_refused() {
    expect_refused_sweep(Why::Bits, |m, _, t| drop(vec![m.shr(m.iota(t), 32)]));
    let no_bits = 0;
    expect_refused_sweep(Why::Bits, |m, _, t| drop(vec![m.iota(t) & no_bits]));
    for (p, q) in [(1 << 15, 1), (1, 1 << 15), (-1, 1)] {
        let madd = Why::Multipliers(p, q);
        expect_refused_sweep(madd, |m, _, t| drop(vec![m.madd(m.iota(t), p, q)]));
    }
    expect_refused_sweep(Why::ListColumn(1, 1), |m, d, t| drop(vec![m.item(t, &d.list, 1)]));
    expect_refused_sweep(Why::Index("odd".into(), 63, Range::new(0, 63)), |m, d, t| {
        drop(vec![m.gather(&d.odd, m.iota(t))])
    });
    let rule = core::array::from_fn(|at| (at as u8).wrapping_add(129) as i8);
    expect_refused_sweep(Why::Rule(-128, -127, -126), |m, d, t| {
        m.step_life(t, &mut d.life, m.iota(t), &rule, m.is_negative(m.iota(t)))
    });
    expect_refused(Why::Argument(Range::new(0, 128), Range::new(0, 192)), |m, mut d| {
        m.age(&mut d.life, d.n * m.scalar(3), d.n)
    });
}

#[test]
fn an_index_of_a_column_that_does_not_reduce_it_is_in_the_column() {
    let known = checked(|m, mut d| {
        m.sweep(d.n, |t| {
            let at = m.below(m.iota(t), 63);
            m.scatter(t, &mut d.odd, at, at, !m.is_negative(at));
        });
        m.sweep(d.n, |t| {
            let at = m.below(m.iota(t), 63);
            m.store(t, &mut d.y, m.gather(&d.odd, at));
        });
    });
    known.unwrap();
    // A mask that implies the range makes the scatter valid, and no other one does.
    let scatter = |least: i32| {
        checked(sweep(move |m, d, t| {
            let (at, lane) = (m.load(t, &d.x) + -5, m.iota(t));
            let below = m.is_negative(at - m.scalar(63));
            let mask = below & !m.is_negative(at - m.scalar(least));
            m.scatter(t, &mut d.odd, at, lane, mask);
        }))
    };
    scatter(0).unwrap();
    let wraps = scatter(-1).expect_err("a wrong kernel passes").why;
    assert_eq!(wraps, Why::Index("odd".into(), 63, Range::new(-1, 62)));
}

#[test]
fn values_out_of_the_range_of_a_column_are_refused() {
    expect_refused_sweep(Why::Range("x".into(), BYTE, Range::ANY), |m, d, t| {
        m.store(t, &mut d.x, m.load(t, &d.y))
    });
    // A mask that implies the range makes the store valid.
    let append = checked(sweep(|m, d, t| {
        let v = m.load(t, &d.y);
        let v = m.select(m.is_negative(v), m.splat(0), v);
        m.append(t, &mut d.list, m.is_negative(v - m.scalar(256)), [v]);
    }));
    append.unwrap();
    expect_refused(Why::TooLong("x".into(), 64, 64), |m, mut d| {
        m.sweep(d.n + 1, |t| m.store(t, &mut d.x, m.splat(0)))
    });
    expect_refused(Why::Name("x".into()), |m, _| drop(vec![m.param("x", "Twice.", BYTE)]));
}

#[test]
fn a_branch_takes_a_flag_and_its_values_stay_inside() {
    let number = refused(|m, mut d| m.when(d.n, || m.clear(&mut d.list)));
    assert!(matches!(number, Why::Argument(..)), "{number}");
    expect_refused_sweep(Why::InsideSweep, |m, d, t| {
        let one = m.scalar(1);
        m.when(one, || m.store(t, &mut d.x, m.splat(0)));
    });
    let leaks = refused(|m, mut d| {
        let mut known = d.n;
        m.when(m.gt(d.n, m.scalar(3)), || known = m.len(&d.list));
        m.write_output(&mut d.out, m.scalar(0), known);
    });
    assert!(matches!(leaks, Why::Undefined(_)), "{leaks}");
    let right = checked(|m, mut d| {
        let some = m.gt(d.n, m.scalar(0));
        m.when(m.not(some), || m.write_output(&mut d.out, m.scalar(0), d.n));
    });
    right.unwrap();
}

/// A search masks the positions of a probe sequence before it adds them, so it would not notice a
/// negative one.
#[test]
fn searches_refuse_negative_probe_sequences() {
    let mut tape = record_stage_one(&Params::wide(64, 1, 256)).unwrap();
    let sequence = tape.find("sequence").expect("a column").0 as usize;
    check(&tape).unwrap();
    tape.columns[sequence].ranges[0].lo = -1;
    let why = check(&tape).expect_err("a wrong tape passes").why;
    assert!(matches!(why, Why::Argument(..)), "{why}");
}

/// What the checker refuses for an overflow is a panic of `Emu` on words that overflow.
#[test]
fn overflow_is_refused_and_panics() {
    fn kernel<M: Machine>(m: M, n: M::Scalar, x: &M::Column<'_>, y: &mut M::Column<'_>) {
        m.sweep(n, |t| {
            let v = m.load(t, x);
            m.store(t, y, v * 11_000_000 + v);
        });
    }
    expect_refused(Why::Overflow(0, 2_805_000_000), |m, mut d| kernel(m, d.n, &d.x, &mut d.y));
    fn emulated<C: Cpu>(m: C) -> bool {
        let (mut x, mut y) = ([0; 64], [0; 64]);
        x[..20].fill(255);
        let run = std::panic::AssertUnwindSafe(|| {
            kernel(m, Scalar::new(20), &Column::new(&mut x), &mut Column::new(&mut y));
        });
        std::panic::catch_unwind(run).is_err()
    }
    assert!(emulated(Emu::<1>) && emulated(Emu::<2>) && emulated(Emu::<16>));
}

#[test]
fn a_search_must_fit_its_table() {
    let links = hash::links(&Params { spread: 1, ..Params::wide(64, 1, 64) });
    let (retries, bits) = (Links { retries: 16, ..links }, Links { slots: 128, ..links });
    for wrong in [retries, bits, Links { position_bits: 5, ..links }] {
        let why = refused(|m, mut d| m.find_free(&wrong, &mut d.y, &d.x, d.n, [&d.x; 2]));
        assert_eq!(why, Why::Operands, "{wrong:?}");
    }
}
