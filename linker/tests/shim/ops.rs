//! Every instruction of the shim gives the numbers that Rust computes.

use super::half::{nearest, pack, unpack, value};
use super::harness::{CompiledKernels, Mode, ShimLaunch};

const N: usize = 2048;

/// Returns pseudo-random words with all bits in use.
fn noise(seed: u64) -> impl Iterator<Item = u32> {
    let mut x = seed * 2 + 1;
    std::iter::repeat_with(move || {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (x >> 33) as u32
    })
}

fn words(seed: u64) -> Vec<i32> {
    noise(seed).map(|x| (x << 1 ^ x >> 7) as i32).take(N).collect()
}

fn small(seed: u64) -> Vec<i32> {
    noise(seed).map(|x| x as i32 % 2001 - 1000).take(N).collect()
}

fn floats(seed: u64) -> Vec<i32> {
    small(seed).into_iter().map(|x| (x as f32 * 0.25).to_bits() as i32).collect()
}

/// Returns pairs of finite halves.
fn halves(seed: u64) -> Vec<i32> {
    let finite = |x: u32| if x >> 10 & 31 == 31 { 0x3C00 } else { x as u16 };
    noise(seed).map(|x| pack(finite(x & 0xFFFF), finite(x >> 8 & 0xFFFF))).take(N).collect()
}

fn f(word: i32) -> f32 {
    f32::from_bits(word as u32)
}

fn bits(x: f32) -> i32 {
    x.to_bits() as i32
}

/// Runs a kernel in every mode and compares each word of the output.
fn check(k: &CompiledKernels, name: &str, a: &[i32], b: &[i32], expected: impl Fn(usize) -> i32) {
    for (mode, seed) in [(Mode::InOrder, 1), (Mode::Adversarial, 2), (Mode::Unchecked, 3)] {
        let mut out = vec![0; N];
        let result =
            ShimLaunch::new(name).input(a).input(b).device(&mut out).mode(mode, seed).run(k);
        assert!(result.is_ok(), "{name}: {result:?}");
        for (i, &word) in out.iter().enumerate() {
            assert_eq!(word, expected(i), "{name}, word {i}: a {} b {}", a[i], b[i]);
        }
    }
}

#[test]
fn arithmetic_bit_operations_and_shifts_match() {
    let Some(k) = kernels!("right.cpp") else { return };
    let (a, b) = (small(1), small(2));
    check(&k, "add", &a, &b, |i| a[i] + b[i]);
    check(&k, "sub", &a, &b, |i| a[i] - b[i]);
    check(&k, "mul", &a, &b, |i| a[i] * b[i]);
    check(&k, "max", &a, &b, |i| a[i].max(b[i]));
    check(&k, "adds", &a, &b, |i| a[i] - 17);
    check(&k, "muls", &a, &b, |i| a[i] * -3);
    check(&k, "maxs", &a, &b, |i| a[i].max(5));
    check(&k, "in_place", &a, &b, |i| a[i] + b[i]);
    check(&k, "synchronised", &a, &b, |i| a[i] + 1);
    check(&k, "odd_count", &a, &b, |i| if i < 1001 { a[i] + b[i] } else { -9 });
    check(&k, "nothing", &a, &b, |_| -9);
    check(&k, "strided", &a, &b, |i| {
        // Repeat r covers 16 blocks of a and z, of which it uses the even ones, and 8 blocks of b.
        let (repeat, block, lane) = (i / 128, i / 8 % 16, i % 8);
        let active = block == 0 && [0, 1, 7].contains(&lane);
        if active { a[i] + b[repeat * 64 + block / 2 * 8 + lane] } else { -9 }
    });
    check(&k, "contiguous_mask", &a, &b, |i| if i % 64 < 20 { a[i] + 1 } else { -9 });
    let (a, b) = (floats(3), floats(4));
    check(&k, "add_f", &a, &b, |i| bits(f(a[i]) + f(b[i])));
    check(&k, "mul_f", &a, &b, |i| bits(f(a[i]) * f(b[i])));
    check(&k, "max_f", &a, &b, |i| bits(f(a[i]).max(0.5)));
    let (a, b) = (words(8), words(9));
    check(&k, "bit_and", &a, &b, |i| a[i] & b[i]);
    check(&k, "bit_or", &a, &b, |i| a[i] | b[i]);
    check(&k, "bit_not", &a, &b, |i| !a[i]);
    check(&k, "bit_broadcast", &a, &b, |i| a[i] & b[i % 8]);
    check(&k, "shift_left", &a, &b, |i| a[i] << 5);
    check(&k, "shift_logical", &a, &b, |i| (a[i] as u32 >> 7) as i32);
    check(&k, "shift_arithmetic", &a, &b, |i| a[i] >> 31);
    check(&k, "duplicate", &a, &b, |_| 77);
}

#[test]
fn halves_round_to_nearest_even() {
    let Some(k) = kernels!("right.cpp") else { return };
    let (a, b) = (halves(5), halves(6));
    let lanes = |op: fn(f64, f64) -> f64, x: i32, y: i32| {
        let ([x0, x1], [y0, y1]) = (unpack(x), unpack(y));
        pack(nearest(op(value(x0), value(y0))), nearest(op(value(x1), value(y1))))
    };
    check(&k, "add_h", &a, &b, |i| lanes(|x, y| x + y, a[i], b[i]));
    check(&k, "mul_h", &a, &b, |i| lanes(|x, y| x * y, a[i], b[i]));
    check(&k, "adds_h", &a, &b, |i| lanes(|x, y| x + y, a[i], pack(0xBC00, 0xBC00)));
    // All finite halves are converted to floats and back.
    for start in (0..0x10000).step_by(N) {
        let finite = |h: u32| if h >> 10 & 31 == 31 { 0 } else { h as u16 };
        let all: Vec<u16> = (start..start + N as u32).map(finite).collect();
        let mut packed: Vec<i32> = all.chunks(2).map(|pair| pack(pair[0], pair[1])).collect();
        packed.resize(N, 0);
        check(&k, "half_to_float", &packed, &b, |i| bits(value(all[i]) as f32));
        let wide: Vec<i32> = all.iter().map(|&h| bits(value(h) as f32)).collect();
        check(&k, "float_to_half", &wide, &b, |i| if i < N / 2 { packed[i] } else { -9 });
    }
    // These floats lie between two halves, some of them exactly in the middle.
    let tie = |x: u32| {
        let h = x as u16 & 0x7BFF;
        let (low, high) = (value(h), value(if h == 0x7BFF { h } else { h + 1 }));
        ((low + high) / 2.0 + f64::from(x >> 30) * 1e-7 * low) as f32
    };
    let ties: Vec<f32> = noise(7).map(tie).take(N).collect();
    let a: Vec<i32> = ties.iter().map(|&x| bits(x)).collect();
    check(&k, "float_to_half", &a, &b, |i| {
        let half = |j: usize| nearest(f64::from(ties[j]));
        if i < N / 2 { pack(half(2 * i), half(2 * i + 1)) } else { -9 }
    });
}

#[test]
fn conversions_match() {
    let Some(k) = kernels!("right.cpp") else { return };
    let (a, b) = (words(10), small(11));
    check(&k, "int_to_float", &a, &b, |i| bits(a[i] as f32));
    let x = floats(12);
    check(&k, "float_rint", &x, &b, |i| f(x[i]).round_ties_even() as i32);
    let bytes: Vec<u8> = a.iter().flat_map(|w| w.to_le_bytes()).collect();
    check(&k, "byte_to_half_to_float", &a, &b, |i| bits(f32::from(bytes[i] as i8)));
    check(&k, "bytes_round_trip", &a, &b, |i| if i < N / 2 { a[i] } else { -9 });
    let h: Vec<i32> = (0..N as i32).map(|i| pack(nearest(f64::from(i) / 8.0), 0xC248)).collect();
    check(&k, "half_to_int", &h, &b, |i| value(unpack(h[i / 2])[i % 2]).round_ties_even() as i32);
    check(&k, "int_to_short", &b, &a, |i| {
        if i < N / 2 { pack(b[2 * i] as u16, b[2 * i + 1] as u16) } else { -9 }
    });
}

#[test]
fn comparisons_and_selections_match() {
    let Some(k) = kernels!("right.cpp") else { return };
    let packed = |holds: &dyn Fn(usize) -> bool, i: usize| {
        if i >= N / 32 {
            return -9;
        }
        (0..32).fold(0, |word, j| word | i32::from(holds(32 * i + j)) << j)
    };
    let [a, b] = [13, 14].map(|seed| small(seed).into_iter().map(|x| x % 8).collect::<Vec<_>>());
    check(&k, "equal", &a, &b, |i| packed(&|j| a[j] == b[j], i));
    check(&k, "equal_scalar", &a, &b, |i| packed(&|j| a[j] == -3, i));
    let quarter = |x: i32| bits((x % 8) as f32 * 0.25);
    let [a, b] = [15, 16].map(|seed| small(seed).into_iter().map(quarter).collect::<Vec<_>>());
    check(&k, "less_f", &a, &b, |i| packed(&|j| f(a[j]) < f(b[j]), i));
    check(&k, "greater_f", &a, &b, |i| packed(&|j| f(a[j]) > 0.25, i));
    check(&k, "at_least_f", &a, &b, |i| packed(&|j| f(a[j]) >= 0.25, i));
    check(&k, "unequal_f", &a, &b, |i| packed(&|j| f(a[j]) != 0.25, i));
    let h = halves(17);
    check(&k, "less_equal_h", &h, &b, |i| packed(&|j| value(unpack(h[j / 2])[j % 2]) <= 0.0, i));
    let (a, b) = (words(18), words(19));
    let bit = |j: usize| b[j / 32] >> (j % 32) & 1 == 1;
    check(&k, "select_tensor", &a, &b, |i| if bit(i) { a[i] } else { b[i] });
    let mut out = vec![0; N];
    let launch = ShimLaunch::new("select_tensor").input(&a).input(&b).device(&mut out);
    assert_eq!(launch.run(&k), Ok(24576), "the scratch space of Select is not counted");
    check(&k, "select_scalar", &a, &b, |i| if bit(i) { a[i] } else { 0 });
}

#[test]
fn gathers_compactions_and_transfers_match() {
    let Some(k) = kernels!("right.cpp") else { return };
    let a = words(20);
    let at: Vec<i32> = noise(21).map(|x| (x as i32 & 1023) * 4).take(N).collect();
    check(&k, "gather", &a, &at, |i| a[at[i] as usize / 4]);
    check(&k, "gather_base", &a, &at, |i| a[1024 + at[i] as usize / 4]);
    let b = words(23);
    let counted = |kept: Vec<i32>, i: usize| match i {
        _ if i == N - 1 => kept.len() as i32,
        _ => kept.get(i).copied().unwrap_or(-9),
    };
    let bit = |j: usize| b[j / 32] >> (j % 32) & 1 == 1;
    check(&k, "compact", &a, &b, |i| {
        counted((0..1900).filter(|&j| bit(j)).map(|j| a[j]).collect(), i)
    });
    check(&k, "even", &a, &b, |i| counted((0..1000).step_by(2).map(|j| a[j]).collect(), i));
    // Transfers of parts of blocks.
    let (a, b) = (words(24), words(25));
    check(&k, "part_in", &a, &b, |i| if i < 5 { a[i] } else { -9 });
    check(&k, "part_out", &a, &b, |i| if i < 5 { a[i] } else { 0 });
}
