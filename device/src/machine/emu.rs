//! The emulated machines. A vector of `Emu<N>` is `[i32; N]`. The code is safe, checks bounds, and
//! panics on overflow. `Emu<1>` is the scalar machine that runs on any CPU. `Emu<3>` finds kernels
//! whose result depends on the width.

use super::cpu::{Column, Cpu, Kernel, Life, Scalar};
use super::operators::{mask_operators, vector_operators};
use core::array::from_fn;

/// The emulated machine of `N` lanes, where N is in 1..=64.
#[derive(Clone, Copy, Debug)]
pub struct Emu<const N: usize>;

impl<const N: usize> Emu<N> {
    /// Runs a kernel on this machine.
    pub fn run<K: Kernel>(self, kernel: K) -> K::Out {
        kernel.run(self)
    }
}

/// A vector of an emulated machine.
#[derive(Clone, Copy)]
pub struct V<const N: usize>([i32; N]);

/// A mask of an emulated machine.
#[derive(Clone, Copy)]
pub struct Mask<const N: usize>([bool; N]);

mask_operators!(
    [const N: usize] Mask<N>,
    |a, b| Self(from_fn(|i| a.0[i] & b.0[i])),
    Self(from_fn(|i| a.0[i] | b.0[i])),
    Self(a.0.map(|b| !b))
);

vector_operators!(
    [const N: usize] V<N>, Emu::<N>,
    |a, b|
    Add add zip(a, b, i32::checked_add);
    Sub sub zip(a, b, i32::checked_sub);
    Mul mul zip(a, b, i32::checked_mul);
    BitAnd bitand zip(a, b, |x, y| Some(x & y));
    BitOr bitor zip(a, b, |x, y| Some(x | y));
);

#[inline(always)]
fn zip<const N: usize>(a: V<N>, b: V<N>, f: impl Fn(i32, i32) -> Option<i32>) -> V<N> {
    // Law 6 of the kernel language: an overflow is a defect of the kernel on every machine.
    V(from_fn(|i| f(a.0[i], b.0[i]).expect("a vector operation overflowed")))
}

impl<const N: usize> Cpu for Emu<N> {
    const LANES: usize = N;
    type V = V<N>;
    type K = Mask<N>;

    #[inline(always)]
    fn first_lanes(self, n: usize) -> Mask<N> {
        Mask(from_fn(|i| i < n))
    }
    #[inline(always)]
    fn count(self, k: Mask<N>) -> usize {
        k.0.iter().filter(|&&b| b).count()
    }
    #[inline(always)]
    fn splat(self, value: i32) -> V<N> {
        V([value; N])
    }
    #[inline(always)]
    fn iota(self, from: i32) -> V<N> {
        V(from_fn(|i| from + i as i32))
    }
    #[inline(always)]
    fn shr(self, v: V<N>, bits: u32) -> V<N> {
        V(v.0.map(|x| ((x as u32) >> bits) as i32))
    }
    #[inline(always)]
    fn select(self, k: Mask<N>, yes: V<N>, no: V<N>) -> V<N> {
        V(from_fn(|i| if k.0[i] { yes.0[i] } else { no.0[i] }))
    }
    #[inline(always)]
    fn eq(self, a: V<N>, b: V<N>) -> Mask<N> {
        Mask(from_fn(|i| a.0[i] == b.0[i]))
    }
    #[inline(always)]
    fn is_negative(self, v: V<N>) -> Mask<N> {
        Mask(v.0.map(|x| x < 0))
    }
    #[inline(always)]
    fn load(self, from: &[i32], at: usize, live: Mask<N>) -> V<N> {
        V(from_fn(|i| if live.0[i] { from[at + i] } else { 0 }))
    }
    #[inline(always)]
    fn store(self, to: &mut [i32], at: usize, v: V<N>, live: Mask<N>) {
        for i in 0..N {
            if live.0[i] {
                to[at + i] = v.0[i];
            }
        }
    }
    #[inline(always)]
    fn gather(self, column: &Column<'_>, index: V<N>) -> V<N> {
        V(index.0.map(|i| column.data[(i as u32 & column.mask) as usize]))
    }
    #[inline(always)]
    fn scatter(self, column: &mut Column<'_>, index: V<N>, v: V<N>, k: Mask<N>) {
        let mask = column.mask;
        for i in 0..N {
            if k.0[i] {
                column.data[(index.0[i] as u32 & mask) as usize] = v.0[i];
            }
        }
    }
    #[inline(always)]
    fn compress(self, to: &mut [i32], at: usize, v: V<N>, k: Mask<N>) {
        let mut at = at;
        for i in 0..N {
            if k.0[i] {
                to[at] = v.0[i];
                at += 1;
            }
        }
    }
    #[inline(always)]
    fn gather_life(self, life: &Life<'_>, slot: V<N>) -> V<N> {
        V(slot.0.map(|s| i32::from(life.data[(s as u32 & life.mask) as usize])))
    }
    #[inline(always)]
    fn change_life(self, life: &mut Life<'_>, slot: V<N>, k: Mask<N>, rule: impl Fn(i8) -> i8) {
        for i in (0..N).filter(|&i| k.0[i]) {
            let byte = &mut life.data[(slot.0[i] as u32 & life.mask) as usize];
            *byte = rule(*byte);
        }
    }
}
