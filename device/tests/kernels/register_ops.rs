//! Compares each operation of `Cpu` with a plain loop.

use super::splitmix::SplitMix64;
use avsg_device::machine::cpu::{Column, Cpu, Life, List, REGISTERS, SLACK, Scalar, index};
use avsg_device::machine::{Kernel, Machine};

fn words(random: &mut SplitMix64, n: usize) -> Vec<i32> {
    (0..n).map(|_| random.word() as i32).collect()
}

fn register<C: Cpu>(m: C, lanes: &[i32]) -> C::R {
    let mut words = lanes.to_vec();
    words.resize(SLACK, 0);
    Cpu::load(m, &words, first(m, C::LANES))
}

/// Returns the mask of the first n lanes.
fn first<C: Cpu>(m: C, n: usize) -> C::K {
    Cpu::is_negative(m, m.sub(m.numbers(), Cpu::splat(m, n as i32)))
}

/// Returns a mask of the lanes where `set` is true, made by a comparison.
fn mask<C: Cpu>(m: C, set: &[bool]) -> C::K {
    let lanes: Vec<i32> = set.iter().map(|&b| i32::from(b)).collect();
    Cpu::eq(m, register(m, &lanes), Cpu::splat(m, 1))
}

/// Checks every lane of a register.
#[track_caller]
fn check<C: Cpu>(m: C, v: C::R, lane: &dyn Fn(usize) -> i32) {
    let mut words = vec![0; SLACK];
    Cpu::store(m, &mut words, v);
    assert_eq!(words[..C::LANES], (0..C::LANES).map(lane).collect::<Vec<_>>());
}

/// Checks every lane of a mask, and how many are set.
#[track_caller]
fn check_mask<C: Cpu>(m: C, k: C::K, lane: &dyn Fn(usize) -> bool) {
    let [yes, no] = [1, 0].map(|value| Cpu::splat(m, value));
    check(m, Cpu::select(m, k, yes, no), &|i| i32::from(lane(i)));
    assert_eq!(m.bits(k), (0..C::LANES).map(|i| u32::from(lane(i)) << i).sum());
}

/// Returns all masks for narrow machines and many masks for wide ones, always with the empty and
/// the full one.
fn masks(lanes: usize, random: &mut SplitMix64) -> Vec<Vec<bool>> {
    let patterns: Vec<u64> = match lanes {
        0..=8 if !cfg!(miri) => (0..1 << lanes).collect(),
        _ => {
            let some = if cfg!(miri) { 3 } else { 64 };
            [0, u64::MAX].into_iter().chain((0..some).map(|_| random.word())).collect()
        }
    };
    patterns.into_iter().map(|p| (0..lanes).map(|i| p >> i & 1 == 1).collect()).collect()
}

/// The operations on lanes, masks and columns.
pub struct Operations;

impl Kernel for Operations {
    type Out = ();
    fn run<C: Cpu>(self, m: C) {
        let random = &mut SplitMix64::new(7);
        arithmetic(m, random);
        mask_ops(m, random);
        (0..4 * C::LANES as i32 + 3).chain([200]).for_each(|n| vectors(m, n, random));
        memory(m, random);
        life_ops(m, random);
    }
}

/// The operations on columns, among them gathers.
pub struct OnColumns;

impl Kernel for OnColumns {
    type Out = ();
    fn run<C: Cpu>(self, m: C) {
        memory(m, &mut SplitMix64::new(7));
    }
}

fn arithmetic<C: Cpu>(m: C, random: &mut SplitMix64) {
    check(m, m.count_up(-3), &|i| i as i32 - 3);
    check(m, Cpu::splat(m, i32::MIN), &|_| i32::MIN);
    for _ in 0..if cfg!(miri) { 1 } else { 16 } {
        let mut factor = || random.below(2 * 46_340) as i32 - 46_340;
        let [a, b] = [(); 2].map(|()| (0..C::LANES).map(|_| factor()).collect::<Vec<_>>());
        let (x, y) = (register(m, &a), register(m, &b));
        check(m, m.add(x, y), &|i| a[i] + b[i]);
        check(m, m.sub(x, y), &|i| a[i] - b[i]);
        check(m, m.mul(x, y), &|i| a[i] * b[i]);
        check(m, m.and(x, y), &|i| a[i] & b[i]);
        check(m, m.or(x, y), &|i| a[i] | b[i]);
        check(m, m.register(m.words(x)), &|i| a[i]);
        let words = words(random, C::LANES);
        let half: Vec<i32> = words.iter().map(|w| w & 0x7FFF).collect();
        let (x, short) = (register(m, &words), register(m, &half));
        let [p, q] = [(); 2].map(|()| random.below(1 << 15) as i32);
        for s in [0, 1, 0x7FFF, p] {
            check(m, Cpu::mul_scalar(m, short, s), &|i| half[i] * s);
        }
        for (p, q) in [(p, q), (0x7FFF, 0x7FFF), (0, 1), (1, 0)] {
            let madd = |w: i32| ((w & 0xFFFF) - 0x8000) * p + (w >> 16 & 0xFF) * q;
            check(m, Cpu::madd(m, x, p, q), &|i| madd(words[i]));
        }
        (0..16).for_each(|bits| check(m, Cpu::shl(m, short, bits), &|i| half[i] << bits));
        (0..32)
            .for_each(|bits| check(m, Cpu::shr(m, x, bits), &|i| (words[i] as u32 >> bits) as i32));
    }
}

fn mask_ops<C: Cpu>(m: C, random: &mut SplitMix64) {
    for set in masks(C::LANES, random) {
        let other: Vec<bool> = (0..C::LANES).map(|_| random.below(2) == 0).collect();
        let [k, o] = [&set, &other].map(|set| mask(m, set));
        check_mask(m, k, &|i| set[i]);
        check_mask(m, m.both(k, o), &|i| set[i] & other[i]);
        check_mask(m, m.either(k, o), &|i| set[i] | other[i]);
        check_mask(m, m.others(k), &|i| !set[i]);
        let [yes, no] = [(); 2].map(|()| words(random, C::LANES));
        let selected = Cpu::select(m, k, register(m, &yes), register(m, &no));
        check(m, selected, &|i| if set[i] { yes[i] } else { no[i] });
        // The mask of a sign test behaves like any other mask, also when it is combined and
        // counted.
        let negative = Cpu::is_negative(m, register(m, &yes));
        check_mask(m, negative, &|i| yes[i] < 0);
        check_mask(m, m.both(m.others(negative), first(m, C::LANES)), &|i| yes[i] >= 0);
        check_mask(m, m.both(k, negative), &|i| set[i] & (yes[i] < 0));
    }
    for edge in [i32::MIN, -1, 0, 1, i32::MAX] {
        let [v, other] = [edge, edge ^ 256].map(|edge| Cpu::splat(m, edge));
        check_mask(m, Cpu::is_negative(m, v), &|_| edge < 0);
        check_mask(m, Cpu::eq(m, v, v), &|_| true);
        check_mask(m, Cpu::eq(m, v, other), &|_| false);
    }
}

/// Checks operators of vectors and masks, and an append, in a sweep of `n` lanes.
fn vectors<C: Cpu>(m: C, n: i32, random: &mut SplitMix64) {
    let size = (n as usize).next_multiple_of(C::LANES * REGISTERS).max(SLACK);
    let a: Vec<i32> = (0..size).map(|_| random.below(2000) as i32 - 1000).collect();
    let mut memory = [(); 4].map(|()| a.clone());
    let [x, y, of, numbers] = memory.each_mut();
    of.resize(size + SLACK, 0);
    numbers.resize(size + SLACK, 0);
    let (x, mut y, mut list) = (Column::new(x), Column::new(y), List::new([of, numbers]));
    let scalar = Scalar::new(77);
    m.sweep(Scalar::new(n), |t| {
        let v = Machine::load(m, t, &x);
        let w = ((v + v * 3 - v + scalar) & 0x7FF | 0x800) * scalar - scalar;
        Machine::store(m, t, &mut y, (w | v) & ((v + 5) * v));
        let chosen = Machine::is_negative(m, v) & !m.eq_to(v, -5) | m.eq_to(v, 7);
        m.append(t, &mut list, chosen, [v, m.iota(t)]);
    });
    let lane = |v: i32| ((((v + v * 3 - v + 77) & 0x7FF | 0x800) * 77 - 77) | v) & ((v + 5) * v);
    let live = &a[..n as usize];
    assert!(y.words()[..live.len()].iter().zip(live).all(|(&y, &v)| y == lane(v)));
    let chosen = |i: &usize| live[*i] < 0 && live[*i] != -5 || live[*i] == 7;
    let chosen: Vec<usize> = (0..live.len()).filter(chosen).collect();
    assert!(list.column(0).iter().copied().eq(chosen.iter().map(|&i| live[i])));
    assert!(list.column(1).iter().map(|&i| i as usize).eq(chosen));
}

/// Returns random indices of all signs, many of them equal.
fn indices<C: Cpu>(_: C, random: &mut SplitMix64) -> Vec<i32> {
    (0..C::LANES).map(|i| if i % 3 == 0 { -7 } else { random.word() as i32 }).collect()
}

fn memory<C: Cpu>(m: C, random: &mut SplitMix64) {
    for size in if cfg!(miri) { vec![64, 100] } else { vec![64, 100, 128, 200] } {
        let original = words(random, size);
        let reach = 1usize << size.ilog2();
        // Memory is longer than its content by SLACK.
        let long = [&original[..], &words(random, SLACK)].concat();
        for set in masks(C::LANES, random) {
            let k = mask(m, &set);
            let (index, v) = (indices(m, random), words(random, C::LANES));
            let at = |i: usize| index[i] as u32 as usize % reach;
            let chosen = || (0..C::LANES).filter(|&i| set[i]);

            let mut memory = original.clone();
            let mut column = Column::new(&mut memory);
            check(m, Cpu::gather(m, &column, register(m, &index)), &|i| original[at(i)]);
            Cpu::scatter(m, &mut column, register(m, &index), register(m, &v), k);
            let mut want = original.clone();
            chosen().for_each(|i| want[at(i)] = v[i]);
            assert_eq!(memory, want, "the later lane wins, dead lanes write nothing");

            let mut list = long.clone();
            m.pack(&mut list[5..], register(m, &v), m.bits(k));
            let want: Vec<i32> = chosen().map(|i| v[i]).collect();
            assert_eq!(list[5..5 + want.len()], want);
            assert_eq!(list[..5], long[..5]);
            assert_eq!(list[5 + C::LANES..], long[5 + C::LANES..]);
        }
        for n in 0..=C::LANES {
            let live = first(m, n);
            let loaded = Cpu::load(m, &long[9..], live);
            check(m, Cpu::select(m, live, loaded, Cpu::splat(m, 0)), &|i| {
                if i < n { long[9 + i] } else { 0 }
            });
        }
        let mut memory = long.clone();
        Cpu::store(m, &mut memory[9..], m.count_up(1000));
        assert_eq!(memory[9..9 + C::LANES], (1000..).take(C::LANES).collect::<Vec<_>>());
        assert_eq!(memory[..9], long[..9]);
        assert_eq!(memory[9 + C::LANES..], long[9 + C::LANES..]);
    }
}

/// The operations on the lifetime column.
fn life_ops<C: Cpu>(m: C, random: &mut SplitMix64) {
    for slots in if cfg!(miri) { vec![64] } else { vec![64, 128, 192, 4096, 6144, 8192] } {
        // The columns have all bytes, few values, or equal bytes; with equal bytes, a count in
        // one byte would wrap.
        for spread in if cfg!(miri) { vec![256] } else { vec![256, 3, 1] } {
            let life: Vec<i8> =
                (0..slots).map(|_| (random.below(spread) as i32 - 128) as i8).collect();
            whole_column(m, &life);
            appends(m, &life);
            bytes(m, &life, random);
        }
    }
}

fn whole_column<C: Cpu>(m: C, life: &[i8]) {
    let all = if cfg!(miri) { vec![0u8, 1, 127, 128] } else { (0..=128).collect() };
    for from in [i8::MIN, -112, 0, 127] {
        for &by in &all {
            let mut got = life.to_vec();
            Cpu::age(m, &mut got, by, from);
            let aged = |l: i8| (i32::from(l) - i32::from(by)).max(-128) as i8;
            let want: Vec<i8> = life.iter().map(|&l| if l >= from { aged(l) } else { l }).collect();
            assert!(got == want, "age by {by} from {from}");
        }
    }
    let table: [i8; 256] = core::array::from_fn(|i| (i as u8).wrapping_mul(77) as i8);
    let mut mapped = vec![0; life.len()];
    Cpu::map_life(m, &mut mapped, life, &table);
    assert!(mapped.iter().zip(life).all(|(&to, &l)| to == table[(i32::from(l) + 128) as usize]));
    for t in [i8::MIN, -127, -126, -2, -1, 0, 1, 5, 126, 127] {
        assert_eq!(Cpu::count_le(m, life, t), life.iter().filter(|&&l| l <= t).count());
    }
}

fn appends<C: Cpu>(m: C, life: &[i8]) {
    for t in if cfg!(miri) { vec![0] } else { vec![i8::MIN, -127, -126, 0, 127] } {
        for equal in [false, true] {
            let is_chosen = |l: i8| if equal { l == t } else { l < t };
            let all: Vec<i32> =
                (0..life.len() as i32).filter(|&slot| is_chosen(life[slot as usize])).collect();
            for from in [0, 3] {
                let n = all.len() + from;
                for limit in [from, from + 1, from + 15, from + 33, n.max(1) - 1, n, n + 9] {
                    let limit = limit.max(from);
                    let mut to = vec![-9; life.len() + from + 9 + 2 * SLACK];
                    let len =
                        Cpu::append_life(m, &mut to[..limit + SLACK], from, life, t, equal, limit);
                    let want = &all[..all.len().min(limit - from)];
                    assert_eq!(len, from + want.len(), "t {t}, limit {limit}");
                    assert_eq!(&to[from..len], want);
                    assert!(to[..from].iter().all(|&w| w == -9), "what was there stays");
                }
            }
        }
    }
}

fn bytes<C: Cpu>(m: C, life: &[i8], random: &mut SplitMix64) {
    // An index is reduced to the places, which are more than the slots if these are no power of two.
    let places = life.len().next_power_of_two();
    let mut memory = life.to_vec();
    memory.resize(places + SLACK, 77);
    let rule: [i8; 256] =
        core::array::from_fn(|i| (i as u8 | 0x81).wrapping_sub(128).cast_signed());
    for set in masks(C::LANES, random) {
        let k = mask(m, &set);
        let slot = indices(m, random);
        let at = |i: usize| slot[i] as u32 as usize % places;
        let v = register(m, &slot);

        let mut copy = memory.clone();
        let mut column = Life::new(&mut copy, life.len());
        check(m, Cpu::gather_life(m, &column, v), &|i| i32::from(memory[at(i)]));

        let mut want = memory[..places].to_vec();
        m.change_life(&mut column, v, k, |life| rule[index(life)]);
        for i in (0..C::LANES).filter(|&i| set[i]) {
            want[at(i)] = rule[(i32::from(want[at(i)]) + 128) as usize];
        }
        assert!(column.all()[..places] == want, "dead lanes step nothing but the pad");
        m.change_life(&mut column, v, k, |_| 42);
        (0..C::LANES).filter(|&i| set[i]).for_each(|i| want[at(i)] = 42);
        assert!(column.all()[..places] == want, "dead lanes write nothing but the pad");
        assert!(column.slots() == &want[..life.len()]);
        assert!(copy[places + 16..].iter().all(|&b| b == 77), "16 bytes of the pad are enough");
    }
}
