//! Kernels that break a rule which depends on data, on the length of a list or on memory are a fault of
//! the interpreter or of `Emu`.

use super::{Memory, faults, record, refused, run, sweep};
use avsg_device::hash;
use avsg_device::machine::Machine;
use avsg_device::machine::cpu::{Column, Cpu, Scalar};
use avsg_device::machine::emu::Emu;
use avsg_device::machine::links::Links;
use avsg_device::params::Params;
use avsg_linker::check::Why;
use avsg_linker::record::Recorder;

use crate::replay::Replay;

#[test]
fn overflow_is_refused_and_is_a_fault() {
    fn kernel<M: Machine>(m: M, n: M::Scalar, x: &M::Column<'_>, y: &mut M::Column<'_>) {
        m.sweep(n, |t| {
            let v = m.load(t, x);
            m.store(t, y, v * 11_000_000 + v);
        });
    }
    let recorded = |m: Recorder<'_>, mut d: Memory<'_>| kernel(m, d.n, &d.x, &mut d.y);
    assert_eq!(refused(recorded), Why::Overflow(0, 2_805_000_000));
    let fault = faults(recorded);
    assert!(fault.op.ends_with("* 11000000") && fault.what.contains("overflows"), "{fault}");

    fn emulated<C: Cpu>(m: C) -> bool {
        let (mut x, mut y) = ([0; 64], [0; 64]);
        x[..20].fill(255);
        let run = std::panic::AssertUnwindSafe(|| {
            kernel(m, Scalar::new(20), &Column::new(&mut x), &mut Column::new(&mut y));
        });
        std::panic::catch_unwind(run).is_err()
    }
    assert!(emulated(Emu::<1>) && emulated(Emu::<2>) && emulated(Emu::<16>));
    let sum = faults(|m, mut d| {
        let n = m.read_output(&d.out, m.scalar(0)) + i32::MAX;
        m.write_output(&mut d.out, m.scalar(0), n + 1);
    });
    assert!(sum.what.ends_with("overflows on 2147483647 and 1"), "{sum}");
}

/// Returns the links of a search in columns of 64 words.
fn links() -> Links {
    hash::links(&Params { spread: 1, ..Params::wide(64, 1, 64) })
}

#[test]
fn a_search_must_fit_its_table() {
    let (retries, bits) = (Links { retries: 16, ..links() }, Links { slots: 128, ..links() });
    for wrong in [retries, bits, Links { position_bits: 5, ..links() }] {
        let why = refused(|m, mut d| m.find_free(&wrong, &mut d.y, &d.x, d.n, [&d.x; 2]));
        assert_eq!(why, Why::Operands, "{wrong:?}");
    }
    let long = faults(|m, mut d| m.find_free(&links(), &mut d.odd, &d.x, m.scalar(80), [&d.x; 2]));
    assert!(long.what.contains("`operand 0`, which has 63 words"), "{long}");
}

#[test]
fn reading_poison_is_a_fault() {
    let unwritten = faults(sweep(|m, d, t| m.store(t, &mut d.x, m.load(t, &d.y))));
    assert!(unwritten.what.contains("poison"), "{unwritten}");
    // The lanes after the end of a sweep are poison.
    let behind = faults(|m, mut d| {
        m.sweep(d.n, |t| m.store(t, &mut d.y, m.splat(1)));
        m.copy_out(&mut d.out, m.scalar(0), &d.y, d.n + 1);
    });
    assert!(behind.what.contains("poison"), "{behind}");
    let past_the_list = faults(sweep(|m, d, t| {
        m.append(t, &mut d.more, m.eq_to(m.item(t, &d.list, 0), 1), [m.iota(t)])
    }));
    assert!(past_the_list.what.contains("poison"), "{past_the_list}");
    // A search runs its definition, which gathers links that nothing wrote.
    let link = faults(|m, mut d| m.find_free(&links(), &mut d.odd, &d.x, d.n, [&d.y, &d.x]));
    assert!(link.op.starts_with("find odd <- free") && link.what.contains("poison"), "{link}");
    // Lanes that the mask excludes may be poison.
    let harmless = record(sweep(|m, d, t| {
        let lane = m.iota(t);
        m.scatter(t, &mut d.y, m.load(t, &d.odd), lane, m.is_negative(lane));
    }));
    run(&harmless.unwrap(), 16).unwrap();
}

#[test]
fn exceeding_a_bound_is_a_fault() {
    let global = faults(|m, mut d| m.write_output(&mut d.out, m.scalar(64), d.n));
    assert_eq!(global.what, "1 words at 64 are outside of `out`, which has 64 words");
    let full = faults(|m, mut d| {
        m.repeat(9, d.n, |_| {
            m.sweep(d.n, |t| m.append(t, &mut d.list, !m.is_negative(m.iota(t)), [m.iota(t)]));
        });
    });
    assert!(full.what.starts_with("`list` has room for 64 entries"), "{full}");
    let tape = record(|_, _| ()).unwrap();
    let mut replay = Replay::new(&tape, 1).unwrap();
    assert!(replay.bind("x", vec![256; 64]).is_err(), "out of its range");
    assert!(replay.bind("x", vec![0; 63]).is_err(), "too short");
    assert!(replay.set("n", 65).is_err(), "out of its range");
    assert!(replay.run().is_err(), "n was not set");
}
