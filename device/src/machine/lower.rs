//! The implementation of [`Machine`] for every [`Cpu`]: a sweep is a loop over registers, and a
//! list is a slice that grows.

use super::Machine;
use super::cpu::{Column, Cpu, Life, List, Scalar, Tile, index};

/// Defines methods that are the register operations of the same names.
macro_rules! same {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $out:ty;)*) => {$(
        #[inline(always)]
        fn $name(self, $($arg: $ty),*) -> $out {
            Cpu::$name(self, $($arg),*)
        }
    )*};
}

impl<C: Cpu> Machine for C {
    type V = C::V;
    type Mask = C::K;
    type Scalar = Scalar;
    type Tile = Tile<C::K>;
    type Column<'a> = Column<'a>;
    type Life<'a> = Life<'a>;
    type List<'a, const W: usize> = List<'a, W>;
    type Input<'a> = &'a [i32];
    type Output<'a> = &'a mut [i32];

    #[inline(always)]
    fn scalar(self, value: i32) -> Scalar {
        Scalar(value)
    }
    #[inline(always)]
    fn max(self, a: Scalar, b: Scalar) -> Scalar {
        Scalar(a.0.max(b.0))
    }
    #[inline(always)]
    fn min(self, a: Scalar, b: Scalar) -> Scalar {
        Scalar(a.0.min(b.0))
    }
    #[inline(always)]
    fn ne(self, a: Scalar, b: Scalar) -> Scalar {
        Scalar(i32::from(a.0 != b.0))
    }
    #[inline(always)]
    fn gt(self, a: Scalar, b: Scalar) -> Scalar {
        Scalar(i32::from(a.0 > b.0))
    }

    #[inline(always)]
    fn sweep(self, n: Scalar, mut body: impl FnMut(Self::Tile)) {
        let n = n.0.max(0) as usize;
        let mut at = 0;
        while at < n {
            body(Tile { at, live: self.first_lanes(n - at) });
            at += C::LANES;
        }
    }
    #[inline(always)]
    fn repeat(self, max: u32, n: Scalar, mut body: impl FnMut(Scalar)) {
        for r in 0..n.0.min(max as i32) {
            body(Scalar(r));
        }
    }
    #[inline(always)]
    fn when_else<T>(
        self,
        condition: Scalar,
        both: &mut T,
        mut body: impl FnMut(&mut T),
        mut otherwise: impl FnMut(&mut T),
    ) {
        if condition.0 != 0 {
            body(both);
        } else {
            otherwise(both);
        }
    }

    same! {
        splat(value: i32) -> C::V;
        shr(v: C::V, bits: u32) -> C::V;
        shl(v: C::V, bits: u32) -> C::V;
        madd(x: C::V, p: i32, q: i32) -> C::V;
        select(mask: C::K, yes: C::V, no: C::V) -> C::V;
        eq(a: C::V, b: C::V) -> C::K;
        is_negative(v: C::V) -> C::K;
        gather(column: &Column<'_>, index: C::V) -> C::V;
        gather_life(life: &Life<'_>, slot: C::V) -> C::V;
    }
    #[inline(always)]
    fn iota(self, t: Self::Tile) -> C::V {
        Cpu::iota(self, t.at as i32)
    }
    #[inline(always)]
    fn mul_scalar(self, v: C::V, s: Scalar) -> C::V {
        Cpu::mul_scalar(self, v, s.0)
    }

    #[inline(always)]
    fn load(self, t: Self::Tile, column: &Column<'_>) -> C::V {
        Cpu::load(self, column.data, t.at, t.live)
    }
    #[inline(always)]
    fn store(self, t: Self::Tile, column: &mut Column<'_>, v: C::V) {
        Cpu::store(self, column.data, t.at, v, t.live);
    }
    #[inline(always)]
    fn scatter(self, t: Self::Tile, column: &mut Column<'_>, index: C::V, v: C::V, mask: C::K) {
        Cpu::scatter(self, column, index, v, mask & t.live);
    }

    #[inline(always)]
    fn len<const W: usize>(self, list: &List<'_, W>) -> Scalar {
        Scalar(list.len as i32)
    }
    #[inline(always)]
    fn clear<const W: usize>(self, list: &mut List<'_, W>) {
        list.len = 0;
    }
    #[inline(always)]
    fn item<const W: usize>(self, t: Self::Tile, list: &List<'_, W>, column: usize) -> C::V {
        Cpu::load(self, list.columns[column].data, t.at, t.live)
    }
    #[inline(always)]
    fn append<const W: usize>(
        self,
        t: Self::Tile,
        list: &mut List<'_, W>,
        mask: C::K,
        values: [C::V; W],
    ) {
        let mask = mask & t.live;
        let n = self.count(mask);
        if n == 0 {
            // Most tiles of padding or of a short list append nothing, so this branch is predicted
            // well and saves the stores.
            return;
        }
        for (column, v) in list.columns.iter_mut().zip(values) {
            self.compress(column.data, list.len, v, mask);
        }
        list.len += n;
    }
    #[inline(always)]
    fn move_list<'a, const W: usize>(self, to: &mut List<'a, W>, from: &mut List<'a, W>) {
        // The fields are swapped one by one, because a swap of whole lists compiles to a call.
        for (a, b) in to.columns.iter_mut().zip(&mut from.columns) {
            core::mem::swap(&mut a.data, &mut b.data);
            core::mem::swap(&mut a.mask, &mut b.mask);
        }
        to.len = from.len;
        from.len = 0;
    }

    #[inline(always)]
    fn age(self, life: &mut Life<'_>, by: Scalar, from: Scalar) {
        if from.0 <= i32::from(i8::MAX) {
            let from = from.0.max(i32::from(i8::MIN)) as i8;
            Cpu::age(self, life.slots_mut(), by.0.clamp(0, 128) as u8, from);
        }
    }
    #[inline(always)]
    fn map_life(self, to: &mut Life<'_>, life: &Life<'_>, table: &Column<'_>) {
        let mut bytes = [0; 256];
        let words = &table.data[..bytes.len()];
        for (n, byte) in bytes.iter_mut().enumerate() {
            *byte = (words[n] - 128) as i8;
        }
        Cpu::map_life(self, to.slots_mut(), life.slots(), &bytes);
    }
    #[inline(always)]
    fn threshold(self, life: &Life<'_>, hint: Scalar, need: Scalar) -> Scalar {
        if need.0 <= 0 {
            return Scalar(-128);
        }
        // Invariant: fewer than `need` are <= low, and enough are <= high or high = 127. The answer
        // of the previous step is nearly always within one of this step's answer, so the search
        // gallops from it.
        let (mut low, mut high) = (-129, 127);
        let (mut t, mut stride) = (hint.0.clamp(-128, 127), 1);
        while high - low > 1 {
            if Cpu::count_le(self, life.slots(), t as i8) as i32 >= need.0 {
                high = t;
                t -= stride;
            } else {
                low = t;
                t += stride;
            }
            stride *= 2;
            if t <= low || t >= high {
                t = low + (high - low) / 2;
            }
        }
        Scalar(high)
    }
    #[inline(always)]
    fn append_life(
        self,
        list: &mut List<'_, 1>,
        life: &Life<'_>,
        t: Scalar,
        limit: Scalar,
        equal: bool,
    ) {
        let ([to], limit) = (&mut list.columns, limit.0.max(0) as usize);
        let (life, t) = (life.slots(), t.0 as i8);
        list.len = Cpu::append_life(self, to.data, list.len, life, t, equal, limit);
    }
    #[inline(always)]
    fn set_life(self, t: Self::Tile, life: &mut Life<'_>, slot: C::V, value: i8, mask: C::K) {
        self.change_life(
            life,
            slot,
            mask & t.live,
            #[inline(always)]
            |_| value,
        );
    }
    #[inline(always)]
    fn step_life(
        self,
        t: Self::Tile,
        life: &mut Life<'_>,
        slot: C::V,
        rule: &[i8; 256],
        mask: C::K,
    ) {
        self.change_life(
            life,
            slot,
            mask & t.live,
            #[inline(always)]
            |life| rule[index(life)],
        );
    }

    #[inline(always)]
    fn read_output(self, from: &&mut [i32], at: Scalar) -> Scalar {
        Scalar(from[at.0 as usize])
    }
    #[inline(always)]
    fn write_output(self, to: &mut &mut [i32], at: Scalar, value: Scalar) {
        to[at.0 as usize] = value.0;
    }
    #[inline(always)]
    fn copy_in(self, column: &mut Column<'_>, from: &&[i32], at: Scalar, n: Scalar) {
        let (at, n) = (at.0 as usize, n.0 as usize);
        column.data[..n].copy_from_slice(&from[at..at + n]);
    }
    #[inline(always)]
    fn copy_out(self, to: &mut &mut [i32], at: Scalar, column: &Column<'_>, n: Scalar) {
        let (at, n) = (at.0 as usize, n.0 as usize);
        to[at..at + n].copy_from_slice(&column.data[..n]);
    }
    #[inline(always)]
    fn written<'a>(self, output: &'a &mut [i32]) -> &'a [i32] {
        output
    }
    #[inline(always)]
    fn copy_out_list<const W: usize>(
        self,
        to: &mut &mut [i32],
        at: Scalar,
        list: &List<'_, W>,
        column: usize,
    ) {
        let at = at.0 as usize;
        to[at..at + list.len].copy_from_slice(list.column(column));
    }
    #[inline(always)]
    fn lookup(
        self,
        t: Self::Tile,
        from: &&[i32],
        base: Scalar,
        n: Scalar,
        index: C::V,
        mask: C::K,
    ) -> C::V {
        let window = &from[base.0 as usize..(base.0 + n.0) as usize];
        // Only misses come here, so the round trip through the stack is cheap beside their cache
        // misses.
        let mut index_words = [-1i32; 64];
        let masked = Cpu::select(self, mask & t.live, index, Cpu::splat(self, -1));
        let all = self.first_lanes(C::LANES);
        Cpu::store(self, &mut index_words, 0, masked, all);
        for word in &mut index_words[..C::LANES] {
            *word = usize::try_from(*word).ok().and_then(|i| window.get(i)).map_or(-1, |&b| b);
        }
        Cpu::load(self, &index_words, 0, all)
    }
}
