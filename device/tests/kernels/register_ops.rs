//! Compares each operation of `Cpu` with a plain loop.

use avsg_device::machine::Kernel;
use avsg_device::machine::cpu::{Column, Cpu, Life, SLACK, Scalar, index};
use core::ops::Range;

/// A generator of pseudorandom numbers.
struct Noise(u64);

impl Noise {
    fn word(&mut self) -> i32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as i32
    }
    fn within(&mut self, range: Range<i32>) -> i32 {
        range.start + (self.word() as u32 % (range.end - range.start) as u32) as i32
    }
    fn words(&mut self, n: usize) -> Vec<i32> {
        (0..n).map(|_| self.word()).collect()
    }
}

fn register<C: Cpu>(m: C, lanes: &[i32]) -> C::V {
    let mut words = lanes.to_vec();
    words.resize(SLACK, 0);
    m.load(&words, 0, m.first_lanes(C::LANES))
}

fn lanes<C: Cpu>(m: C, v: C::V) -> Vec<i32> {
    let mut words = vec![0; SLACK];
    m.store(&mut words, 0, v, m.first_lanes(C::LANES));
    words.truncate(C::LANES);
    words
}

/// Returns a mask of the lanes where `set` is true, made by a comparison.
fn mask<C: Cpu>(m: C, set: &[bool]) -> C::K {
    let lanes: Vec<i32> = set.iter().map(|&b| i32::from(b)).collect();
    m.eq(register(m, &lanes), m.splat(1))
}

fn is_set<C: Cpu>(m: C, k: C::K) -> Vec<bool> {
    lanes(m, m.select(k, m.splat(1), m.splat(0))).into_iter().map(|x| x == 1).collect()
}

/// Returns all masks for narrow machines and many masks for wide ones, always with the empty and
/// the full one.
fn masks(lanes: usize, noise: &mut Noise) -> Vec<Vec<bool>> {
    let patterns: Vec<u64> = match lanes {
        0..=8 if !cfg!(miri) => (0..1 << lanes).collect(),
        _ => {
            let some = if cfg!(miri) { 3 } else { 64 };
            let mut pattern =
                || u64::from(noise.word() as u32) << 32 | u64::from(noise.word() as u32);
            [0, u64::MAX].into_iter().chain((0..some).map(|_| pattern())).collect()
        }
    };
    patterns.into_iter().map(|p| (0..lanes).map(|i| p >> i & 1 == 1).collect()).collect()
}

/// The operations on lanes, masks and columns.
pub struct RegisterOps;

impl Kernel for RegisterOps {
    type Out = ();
    fn run<C: Cpu>(self, m: C) {
        let noise = &mut Noise(7);
        arithmetic(m, noise);
        mask_ops(m, noise);
        memory(m, noise);
    }
}

fn arithmetic<C: Cpu>(m: C, noise: &mut Noise) {
    assert_eq!(lanes(m, m.iota(-3)), (-3..).take(C::LANES).collect::<Vec<_>>());
    assert_eq!(lanes(m, m.splat(i32::MIN)), vec![i32::MIN; C::LANES]);
    for _ in 0..if cfg!(miri) { 1 } else { 16 } {
        let a: Vec<i32> = (0..C::LANES).map(|_| noise.within(-46_340..46_340)).collect();
        let b: Vec<i32> = (0..C::LANES).map(|_| noise.within(-46_340..46_340)).collect();
        let s = noise.within(-46_340..46_340);
        let (x, y) = (register(m, &a), register(m, &b));
        let zip = |f: &dyn Fn(i32, i32) -> i32| -> Vec<i32> {
            a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect()
        };
        let with =
            |f: &dyn Fn(i32, i32) -> i32| -> Vec<i32> { a.iter().map(|&a| f(a, s)).collect() };
        assert_eq!(lanes(m, x + y), zip(&|a, b| a + b));
        assert_eq!(lanes(m, x - y), zip(&|a, b| a - b));
        assert_eq!(lanes(m, x * y), zip(&|a, b| a * b));
        assert_eq!(lanes(m, x & y), zip(&|a, b| a & b));
        assert_eq!(lanes(m, x | y), zip(&|a, b| a | b));
        assert_eq!(lanes(m, x + s), with(&|a, s| a + s));
        assert_eq!(lanes(m, x * s), with(&|a, s| a * s));
        assert_eq!(lanes(m, x & s), with(&|a, s| a & s));
        assert_eq!(lanes(m, x | s), with(&|a, s| a | s));
        assert_eq!(lanes(m, x + Scalar::new(s)), with(&|a, s| a + s));
        assert_eq!(lanes(m, x - Scalar::new(s)), with(&|a, s| a - s));
        assert_eq!(lanes(m, x * Scalar::new(s)), with(&|a, s| a * s));
        let words = noise.words(C::LANES);
        let half: Vec<i32> = words.iter().map(|w| w & 0x7FFF).collect();
        for s in [0, 1, 0x7FFF, noise.within(0..1 << 15)] {
            let want: Vec<i32> = half.iter().map(|h| h * s).collect();
            assert_eq!(lanes(m, m.mul_scalar(register(m, &half), s)), want, "times {s}");
        }
        for bits in 0..16 {
            let want: Vec<i32> = half.iter().map(|h| h << bits).collect();
            assert_eq!(lanes(m, m.shl(register(m, &half), bits)), want, "shl {bits}");
        }
        let (p, q) = (noise.within(0..1 << 15), noise.within(0..1 << 15));
        for (p, q) in [(p, q), (0x7FFF, 0x7FFF), (0, 1), (1, 0)] {
            let madd = |w: &i32| ((w & 0xFFFF) - 0x8000) * p + (w >> 16 & 0xFF) * q;
            let want: Vec<i32> = words.iter().map(madd).collect();
            assert_eq!(lanes(m, m.madd(register(m, &words), p, q)), want, "madd {p} {q}");
        }
        for bits in 0..32 {
            let want: Vec<i32> = words.iter().map(|&w| (w as u32 >> bits) as i32).collect();
            assert_eq!(lanes(m, m.shr(register(m, &words), bits)), want, "shr {bits}");
        }
    }
}

fn mask_ops<C: Cpu>(m: C, noise: &mut Noise) {
    for n in 0..C::LANES + 3 {
        let want: Vec<bool> = (0..C::LANES).map(|i| i < n).collect();
        assert_eq!(is_set(m, m.first_lanes(n)), want, "first {n}");
    }
    assert_eq!(m.count(m.first_lanes(usize::MAX)), C::LANES);
    for set in masks(C::LANES, noise) {
        let k = mask(m, &set);
        assert_eq!(is_set(m, k), set);
        assert_eq!(m.count(k), set.iter().filter(|&&b| b).count());
        let other: Vec<bool> = (0..C::LANES).map(|_| noise.word() < 0).collect();
        let o = mask(m, &other);
        let zip = |f: fn(bool, bool) -> bool| -> Vec<bool> {
            set.iter().zip(&other).map(|(&a, &b)| f(a, b)).collect()
        };
        assert_eq!(is_set(m, k & o), zip(|a, b| a & b));
        assert_eq!(is_set(m, k | o), zip(|a, b| a | b));
        assert_eq!(is_set(m, !k), zip(|a, _| !a));
        assert_eq!(m.count(!k), set.iter().filter(|&&b| !b).count());

        let (yes, no) = (noise.words(C::LANES), noise.words(C::LANES));
        let want: Vec<i32> = (0..C::LANES).map(|i| if set[i] { yes[i] } else { no[i] }).collect();
        assert_eq!(lanes(m, m.select(k, register(m, &yes), register(m, &no))), want);
        // The mask of a sign test behaves like any other mask, also when it is combined and
        // counted.
        let negative = m.is_negative(register(m, &yes));
        let want: Vec<bool> = yes.iter().map(|&x| x < 0).collect();
        assert_eq!(is_set(m, negative), want);
        assert_eq!(m.count(negative), want.iter().filter(|&&b| b).count());
        let others = m.count(!negative & m.first_lanes(C::LANES));
        assert_eq!(others, want.iter().filter(|&&b| !b).count());
        let want: Vec<bool> = (0..C::LANES).map(|i| set[i] & (yes[i] < 0)).collect();
        assert_eq!(is_set(m, k & negative), want);
    }
    for edge in [i32::MIN, -1, 0, 1, i32::MAX] {
        assert_eq!(m.count(m.is_negative(m.splat(edge))), if edge < 0 { C::LANES } else { 0 });
        assert_eq!(m.count(m.eq(m.splat(edge), m.splat(edge))), C::LANES);
        assert_eq!(m.count(m.eq(m.splat(edge), m.splat(edge ^ 256))), 0);
    }
}

fn memory<C: Cpu>(m: C, noise: &mut Noise) {
    for words in if cfg!(miri) { vec![64, 100] } else { vec![64, 100, 128, 200] } {
        let original = noise.words(words);
        let reach = 1usize << words.ilog2();
        // Memory is longer than its content by SLACK.
        let long = [&original[..], &noise.words(SLACK)].concat();
        for set in masks(C::LANES, noise) {
            let k = mask(m, &set);
            // Indices of all signs are used, many of them equal.
            let index: Vec<i32> =
                (0..C::LANES).map(|i| if i % 3 == 0 { -7 } else { noise.word() }).collect();
            let at = |i: usize| index[i] as u32 as usize % reach;
            let v = noise.words(C::LANES);

            let mut memory = original.clone();
            let mut column = Column::new(&mut memory);
            let got = lanes(m, Cpu::gather(m, &column, register(m, &index)));
            assert_eq!(got, (0..C::LANES).map(|i| original[at(i)]).collect::<Vec<_>>());
            Cpu::scatter(m, &mut column, register(m, &index), register(m, &v), k);
            let mut want = original.clone();
            (0..C::LANES).filter(|&i| set[i]).for_each(|i| want[at(i)] = v[i]);
            assert_eq!(memory, want, "the later lane wins, dead lanes write nothing");

            let mut list = long.clone();
            m.compress(&mut list, 5, register(m, &v), k);
            let want: Vec<i32> = (0..C::LANES).filter(|&i| set[i]).map(|i| v[i]).collect();
            assert_eq!(list[5..5 + want.len()], want);
            assert_eq!(list[..5], long[..5]);
            assert_eq!(list[5 + C::LANES..], long[5 + C::LANES..]);
        }
        for n in 0..=C::LANES {
            let live = m.first_lanes(n);
            assert_eq!(lanes(m, Cpu::load(m, &long, 9, live))[..n], long[9..9 + n]);
            let mut memory = long.clone();
            Cpu::store(m, &mut memory, 9, m.iota(1000), live);
            assert_eq!(memory[9..9 + n], (1000..).take(n).collect::<Vec<_>>());
            assert_eq!(memory[..9], long[..9]);
            assert_eq!(memory[9 + C::LANES..], long[9 + C::LANES..]);
        }
    }
}

/// The operations on the lifetime column.
pub struct LifeOps;

impl Kernel for LifeOps {
    type Out = ();
    fn run<C: Cpu>(self, m: C) {
        let noise = &mut Noise(11);
        for slots in if cfg!(miri) { vec![64] } else { vec![64, 128, 192, 4096, 6144, 8192] } {
            // The columns have all bytes, few values, or equal bytes; with equal bytes, a count in
            // one byte would wrap.
            for spread in if cfg!(miri) { vec![256] } else { vec![256, 3, 1] } {
                let life: Vec<i8> =
                    (0..slots).map(|_| (noise.within(0..spread) - 128) as i8).collect();
                whole_column(m, &life);
                appends(m, &life);
                bytes(m, &life, noise);
            }
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
            let all: Vec<i32> = (0i32..)
                .zip(life)
                .filter(|&(_, &l)| if equal { l == t } else { l < t })
                .map(|(slot, _)| slot)
                .collect();
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

fn bytes<C: Cpu>(m: C, life: &[i8], noise: &mut Noise) {
    // An index is reduced to the places, which are more than the slots if these are no power of two.
    let places = life.len().next_power_of_two();
    let mut memory = life.to_vec();
    memory.resize(places + SLACK, 77);
    let rule: [i8; 256] =
        core::array::from_fn(|i| (i as u8 | 0x81).wrapping_sub(128).cast_signed());
    for set in masks(C::LANES, noise) {
        let k = mask(m, &set);
        let slot: Vec<i32> =
            (0..C::LANES).map(|i| if i % 3 == 0 { -2 } else { noise.word() }).collect();
        let at = |i: usize| slot[i] as u32 as usize % places;
        let v = register(m, &slot);

        let mut copy = memory.clone();
        let mut column = Life::new(&mut copy, life.len());
        let got = lanes(m, Cpu::gather_life(m, &column, v));
        assert_eq!(got, (0..C::LANES).map(|i| i32::from(memory[at(i)])).collect::<Vec<_>>());

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
