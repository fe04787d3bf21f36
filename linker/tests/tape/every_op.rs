//! Small kernels that use every operation of the kernel language give the same results on every
//! machine and in the interpreter.

mod harness;

use avsg_device::machine::phase::Phase;
use avsg_device::machine::{Indices, Machine};
use avsg_device::params::Params;
use avsg_linker::record::record_stage_one;
use avsg_linker::tape::OpCode;
use harness::{Kernel, KernelMemory, LEN};

/// Uses every lane operation, every mask operation, loads, stores, gathers and scatters.
struct Lanes;

impl Kernel for Lanes {
    fn run<M: Machine>(m: M, d: &mut KernelMemory<'_, M>) {
        let two = m.scalar(2);
        m.sweep(d.n, |t| {
            let (x, lane) = (m.load(t, &d.x), m.iota(t));
            // x is any word and is split into pieces, so that no operation overflows.
            let (low, high) = (m.low_bits(x, 11), m.shr(x, 21));
            let sum = low + high * 3 + (low * d.s + 7) - two + m.splat(5);
            let mixed = (low * high) & 0xFFFFF | (sum & high) | 1;
            let hash =
                m.low_bits(m.madd(x, 27_381, 0x7FFF), 20) + m.low_bits(m.madd(mixed, 0, 3), 8);
            let product = m.low_bits(mixed, 10) * two - lane + hash;
            let odd = m.eq_to(low & 1, 1);
            let chosen = m.select(odd | m.is_negative(x), product, mixed | lane);
            let permuted = m.below(m.low_bits(lane * 5 + two, LEN.ilog2()), LEN as u32);
            let same = m.eq(m.gather(&d.y, permuted), m.gather(&d.y, lane));
            m.store(t, &mut d.z, m.select(same & !odd, chosen * -1, chosen));
        });
        m.sweep(d.n, |t| {
            let x = m.load(t, &d.x);
            // Half of the indices collide, and the later lane wins.
            let index = m.low_bits(m.iota(t) * 3, 6);
            m.scatter(t, &mut d.y, index, m.low_bits(x, 20), m.is_negative(x), Indices::Repeated);
        });
        m.copy_out(&mut d.out, m.scalar(3), &d.z, d.n);
        m.copy_out(&mut d.out, m.scalar(3 + LEN), &d.y, m.scalar(LEN));
    }
}

/// Uses lists of three widths, scalars, branches, and rounds on lists that get shorter.
struct Lists;

impl Kernel for Lists {
    fn run<M: Machine>(m: M, d: &mut KernelMemory<'_, M>) {
        m.clear(&mut d.pairs);
        m.sweep(d.n, |t| {
            let x = m.low_bits(m.load(t, &d.x), 20);
            m.append(t, &mut d.pairs, !m.eq_to(x & 3, 0), [x, m.iota(t)]);
        });
        m.repeat(5, d.n - m.scalar(1), |r| {
            m.clear(&mut d.more);
            m.sweep(m.len(&d.pairs), |t| {
                let (x, lane) = (m.item(t, &d.pairs, 0), m.item(t, &d.pairs, 1));
                let keep = m.is_negative(m.low_bits(x, 10) - m.low_bits(lane + r, 10));
                m.append(t, &mut d.more, keep, [x, lane]);
                m.append(t, &mut d.count, !keep, []);
            });
            m.move_list(&mut d.pairs, &mut d.more);
            let at = r * m.scalar(2) + 1;
            m.write_output(&mut d.out, at, m.len(&d.count));
            let again = m.read_output(&d.out, at) + r;
            m.write_output(&mut d.out, at + 1, again);
        });
        m.phase(Phase::Probe, "branches.");
        let many = m.name_scalar("many", m.gt(m.len(&d.pairs), m.scalar(30)));
        m.when(many, || m.clear(&mut d.more));
        m.when(m.not(many), || {
            m.when(m.ne(d.n, m.scalar(16)), || m.write_output(&mut d.out, m.scalar(30), d.n));
        });
        m.copy_out_list(&mut d.out, m.scalar(40), &d.pairs, 0);
        m.copy_out_list(&mut d.out, m.scalar(40) + m.len(&d.pairs), &d.pairs, 1);
        let (a, b) = (m.len(&d.pairs), m.len(&d.more));
        let tests = [m.max(a, b), m.min(a, b), m.ne(a, b), m.ne(b, b), m.not(m.ne(a, b))];
        for (n, s) in (20..).zip(tests.into_iter().chain([m.gt(a, b), m.gt(b, a)])) {
            m.write_output(&mut d.out, m.scalar(n), s);
        }
    }
}

/// Uses every operation on lifetimes.
struct Lifetimes;

impl Kernel for Lifetimes {
    fn run<M: Machine>(m: M, d: &mut KernelMemory<'_, M>) {
        let mut rule: [i8; 256] = core::array::from_fn(|at| (at as i32 - 128) as i8);
        rule[..128].iter_mut().enumerate().for_each(|(n, next)| *next = (n / 2) as i8);
        m.sweep(m.scalar(LEN), |t| {
            m.store(t, &mut d.bytes, m.low_bits(m.iota(t) * 77 + 5, 8));
        });
        for (need, from) in [(0, -128), (9, 0), (200, i32::MIN), (100_000, 60), (5, i32::MAX)] {
            let need = m.scalar(need);
            let th = m.threshold(&d.life, m.scalar(-7), need);
            m.clear(&mut d.singles);
            m.append_life(&mut d.singles, &d.life, th, m.min(need, m.scalar(60)), false);
            m.append_life(&mut d.singles, &d.life, th, m.min(need, m.scalar(64)), true);
            m.copy_out_list(&mut d.out, m.scalar(10), &d.singles, 0);
            m.sweep(m.len(&d.singles), |t| {
                let slot = m.item(t, &d.singles, 0);
                m.append(t, &mut d.count, m.is_negative(m.gather_life(&d.life, slot)), []);
            });
            m.sweep(m.len(&d.singles), |t| {
                // Each slot occurs twice, and the second time may be in another tile.
                let slot = m.low_bits(m.item(t, &d.singles, 0), 5);
                m.step_life(t, &mut d.life, slot, &rule, !m.eq_to(slot, 3));
            });
            m.sweep(m.scalar(20), |t| {
                let lane = m.iota(t);
                m.set_life(t, &mut d.life, lane * 9, -100, m.eq_to(lane & 1, 0));
            });
            m.map_life(&mut d.values, &d.life, &d.bytes);
            m.sweep(m.scalar(LEN), |t| {
                let value = m.gather_life(&d.values, m.iota(t));
                m.store(t, &mut d.z, value + 3);
            });
            m.copy_out(&mut d.out, m.scalar(300), &d.z, m.scalar(LEN));
            m.age(&mut d.life, m.max(th + 1, m.scalar(0)), m.scalar(from));
            let dead = m.len(&d.count) + m.read_output(&d.out, m.scalar(0));
            m.write_output(&mut d.out, m.scalar(0), dead);
        }
    }
}

/// Uses every access to global memory.
struct Global;

impl Kernel for Global {
    fn run<M: Machine>(m: M, d: &mut KernelMemory<'_, M>) {
        let at = m.scalar(11);
        m.copy_in(&mut d.z, &d.input, at, d.n);
        m.copy_out(&mut d.out, m.scalar(0), &d.z, d.n);
        m.sweep(d.n, |t| {
            let x = m.load(t, &d.z);
            // Some indices are negative or past the window.
            let found =
                m.lookup(t, &d.input, at, d.n, m.low_bits(x, 8) + m.splat(-9), m.is_negative(x));
            m.store(t, &mut d.z, found);
        });
        m.copy_out(&mut d.out, at, &d.z, d.n);
    }
}

#[test]
fn lane_operations_match() {
    harness::assert_same_on_every_machine::<Lanes>();
}

#[test]
fn list_operations_match() {
    harness::assert_same_on_every_machine::<Lists>();
}

#[test]
fn lifetime_operations_match() {
    harness::assert_same_on_every_machine::<Lifetimes>();
}

#[test]
fn accesses_to_global_memory_match() {
    harness::assert_same_on_every_machine::<Global>();
}

/// The operations on the planes of a table are only in Stage One, which `native_equals_replay.rs`
/// compares. The kernels above use all others.
#[test]
fn every_operation_is_used() {
    let used: Vec<_> = [
        harness::record::<Lanes>(),
        harness::record::<Lists>(),
        harness::record::<Lifetimes>(),
        harness::record::<Global>(),
        record_stage_one(&Params::wide(64, 1, 256)).unwrap(),
    ]
    .iter()
    .flat_map(harness::op_names)
    .collect();
    let missing: Vec<_> =
        OpCode::NAMES.iter().filter(|name| used.iter().all(|u| u != *name)).collect();
    assert!(missing.is_empty(), "no kernel here uses {missing:?}");
}
