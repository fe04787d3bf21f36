//! The emulated machines. A register of `Emu<N>` is `[i32; N]`, and its operations check bounds and panic on
//! overflow. `Emu<1>` runs on any CPU. Others find kernels whose result depends on the width.

use super::cpu::{Cpu, Kernel, Life};
use core::array::from_fn;

/// The emulated machine with registers of `N` lanes, where N is a power of two up to 16.
#[derive(Clone, Copy, Debug)]
pub struct Emu<const N: usize>;

impl<const N: usize> Emu<N> {
    /// Runs a kernel on this machine.
    pub fn run<K: Kernel>(self, kernel: K) -> K::Out {
        kernel.run(self)
    }
}

#[inline(always)]
fn zip<const N: usize>(a: [i32; N], b: [i32; N], f: impl Fn(i32, i32) -> Option<i32>) -> [i32; N] {
    // Law 6 of the kernel language: an overflow is a defect of the kernel on every machine.
    from_fn(|i| f(a[i], b[i]).expect("a vector operation overflowed"))
}

/// Defines methods of [`Cpu`] that are an expression.
macro_rules! operations {
    ($($name:ident($self:ident $(, $arg:ident: $ty:ty)*) -> $out:ty = $e:expr;)*) => {$(
        #[inline(always)]
        fn $name($self $(, $arg: $ty)*) -> $out {
            $e
        }
    )*};
}

// SAFETY: each method is a loop that computes what the comment of the trait says.
unsafe impl<const N: usize> Cpu for Emu<N> {
    const LANES: usize = N;
    type R = [i32; N];
    type K = [bool; N];
    type Words = [u32; N];

    operations! {
        splat(self, value: i32) -> [i32; N] = [value; N];
        numbers(self) -> [i32; N] = from_fn(|i| i as i32);
        add(self, a: [i32; N], b: [i32; N]) -> [i32; N] = zip(a, b, i32::checked_add);
        sub(self, a: [i32; N], b: [i32; N]) -> [i32; N] = zip(a, b, i32::checked_sub);
        mul(self, a: [i32; N], b: [i32; N]) -> [i32; N] = zip(a, b, i32::checked_mul);
        and(self, a: [i32; N], b: [i32; N]) -> [i32; N] = from_fn(|i| a[i] & b[i]);
        or(self, a: [i32; N], b: [i32; N]) -> [i32; N] = from_fn(|i| a[i] | b[i]);
        shr(self, a: [i32; N], bits: u32) -> [i32; N] = a.map(|x| (x as u32 >> bits) as i32);
        eq(self, a: [i32; N], b: [i32; N]) -> [bool; N] = from_fn(|i| a[i] == b[i]);
        is_negative(self, a: [i32; N]) -> [bool; N] = a.map(|x| x < 0);
        select(self, k: [bool; N], yes: [i32; N], no: [i32; N]) -> [i32; N] =
            from_fn(|i| if k[i] { yes[i] } else { no[i] });
        both(self, a: [bool; N], b: [bool; N]) -> [bool; N] = from_fn(|i| a[i] & b[i]);
        either(self, a: [bool; N], b: [bool; N]) -> [bool; N] = from_fn(|i| a[i] | b[i]);
        others(self, k: [bool; N]) -> [bool; N] = k.map(|set| !set);
        bits(self, k: [bool; N]) -> u32 = (0..N).map(|i| u32::from(k[i]) << i).sum();
        load(self, from: &[i32], live: [bool; N]) -> [i32; N] =
            from_fn(|i| if live[i] { from[i] } else { 0 });
        store(self, to: &mut [i32], a: [i32; N]) -> () = to[..N].copy_from_slice(&a);
        words(self, a: [i32; N]) -> [u32; N] = a.map(i32::cast_unsigned);
        register(self, words: [u32; N]) -> [i32; N] = words.map(u32::cast_signed);
    }

    #[inline(always)]
    fn pack(self, to: &mut [i32], a: [i32; N], set: u32) {
        for (to, i) in to.iter_mut().zip((0..N).filter(|i| set >> i & 1 == 1)) {
            *to = a[i];
        }
    }
    #[inline(always)]
    fn chosen(self, life: &[i8; 64], t: i8, equal: bool) -> u64 {
        let is_chosen = |l: i8| if equal { l == t } else { l < t };
        (0..64).map(|i| u64::from(is_chosen(life[i])) << i).sum()
    }
    /// It writes no pad, so that a whole table is that of a device.
    #[inline(always)]
    fn change_life(self, life: &mut Life<'_>, slot: Self::R, k: Self::K, rule: impl Fn(i8) -> i8) {
        for i in (0..N).filter(|&i| k[i]) {
            let byte = &mut life.data[(slot[i] as u32 & life.mask) as usize];
            *byte = rule(*byte);
        }
    }
}
