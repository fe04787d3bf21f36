//! The implementation of [`Machine`] for every [`Cpu`]: a vector is some registers, a sweep is a loop over
//! vectors, and a list is a slice that grows.

use super::Machine;
use super::Memory;
use super::cpu::{Column, Cpu, Life, List, REGISTERS, Scalar, Tile, index};
use super::links::Links;
use super::search;
use super::vector::{Mask, Vector, each};

/// Defines methods that do the same to each register, by the instructions of the same names.
macro_rules! same {
    ($($name:ident($($vector:ident: $ty:ty),+ $(; $($arg:ident: $arg_ty:ty),+)?) -> $out:ident;)*) => {$(
        #[inline(always)]
        fn $name(self, $($vector: $ty,)+ $($($arg: $arg_ty),+)?) -> $out<C> {
            $out(self, each!(i => Cpu::$name(self, $($vector.1[i],)+ $($($arg),+)?)))
        }
    )*};
}

impl<C: Cpu> Memory for C {
    type Column<'a> = Column<'a>;
    type Life<'a> = Life<'a>;
    type List<'a, const W: usize> = List<'a, W>;
}

impl<C: Cpu> Machine for C {
    type V = Vector<C>;
    type Mask = Mask<C>;
    type Scalar = Scalar;
    type Tile = Tile<Mask<C>>;
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
            body(Tile { at, live: Mask::first(self, n - at) });
            at += Vector::<C>::LANES;
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
        shr(v: Vector<C>; bits: u32) -> Vector;
        shl(v: Vector<C>; bits: u32) -> Vector;
        madd(x: Vector<C>; p: i32, q: i32) -> Vector;
        select(mask: Mask<C>, yes: Vector<C>, no: Vector<C>) -> Vector;
        eq(a: Vector<C>, b: Vector<C>) -> Mask;
        is_negative(v: Vector<C>) -> Mask;
    }
    #[inline(always)]
    fn splat(self, value: i32) -> Vector<C> {
        Vector(self, [Cpu::splat(self, value); REGISTERS])
    }
    #[inline(always)]
    fn iota(self, t: Self::Tile) -> Vector<C> {
        Vector::count_up(self, t.at)
    }
    #[inline(always)]
    fn mul_scalar(self, v: Vector<C>, s: Scalar) -> Vector<C> {
        Vector(self, each!(i => Cpu::mul_scalar(self, v.1[i], s.0)))
    }

    #[inline(always)]
    fn load(self, t: Self::Tile, column: &Column<'_>) -> Vector<C> {
        Vector::load(column.data, t.at, t.live)
    }
    #[inline(always)]
    fn store(self, t: Self::Tile, column: &mut Column<'_>, v: Vector<C>) {
        v.store(column.data, t.at);
    }
    #[inline(always)]
    fn gather(self, column: &Column<'_>, index: Vector<C>) -> Vector<C> {
        Vector(self, each!(i => Cpu::gather(self, column, index.1[i])))
    }
    #[inline(always)]
    fn scatter(
        self,
        t: Self::Tile,
        column: &mut Column<'_>,
        index: Vector<C>,
        v: Vector<C>,
        mask: Mask<C>,
    ) {
        let mask = mask & t.live;
        for i in 0..REGISTERS {
            Cpu::scatter(self, column, index.1[i], v.1[i], mask.1[i]);
        }
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
    fn item<const W: usize>(self, t: Self::Tile, list: &List<'_, W>, column: usize) -> Vector<C> {
        Vector::load(list.columns[column].data, t.at, t.live)
    }
    #[inline(always)]
    fn append<const W: usize>(
        self,
        t: Self::Tile,
        list: &mut List<'_, W>,
        mask: Mask<C>,
        values: [Vector<C>; W],
    ) {
        let mask = mask & t.live;
        let sets = each!(i => self.bits(mask.1[i]));
        let n: u32 = sets.iter().map(|set| set.count_ones()).sum();
        if n == 0 {
            // Most tiles of padding or of a short list append nothing, so this branch is predicted
            // well and saves the stores.
            return;
        }
        for (column, v) in list.columns.iter_mut().zip(&values) {
            let (words, mut done) = (&mut column.data[list.len..][..Vector::<C>::LANES], 0);
            for (i, &set) in sets.iter().enumerate() {
                self.pack(&mut words[done..], v.1[i], set);
                done += set.count_ones() as usize;
            }
        }
        list.len += n as usize;
    }
    #[inline(always)]
    fn move_list<'a, const W: usize>(self, to: &mut List<'a, W>, from: &mut List<'a, W>) {
        // The fields are swapped one by one, because a swap of whole lists compiles to a call.
        for n in 0..W {
            let (a, b) = (&mut to.columns[n], &mut from.columns[n]);
            core::mem::swap(&mut a.data, &mut b.data);
            core::mem::swap(&mut a.mask, &mut b.mask);
        }
        to.len = from.len;
        from.len = 0;
    }

    #[inline(always)]
    fn find(
        self,
        links: &Links,
        slot: &mut Column<'_>,
        queries: [&Column<'_>; 2],
        n: Scalar,
        table: [&Column<'_>; 2],
    ) {
        search::find(self, links, slot, queries, n, table);
    }
    #[inline(always)]
    fn find_free(
        self,
        links: &Links,
        position: &mut Column<'_>,
        sequence: &Column<'_>,
        n: Scalar,
        table: [&Column<'_>; 2],
    ) {
        search::find_free(self, links, position, sequence, n, table);
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
    fn gather_life(self, life: &Life<'_>, slot: Vector<C>) -> Vector<C> {
        Vector(self, each!(i => Cpu::gather_life(self, life, slot.1[i])))
    }
    #[inline(always)]
    fn set_life(
        self,
        t: Self::Tile,
        life: &mut Life<'_>,
        slot: Vector<C>,
        value: i8,
        mask: Mask<C>,
    ) {
        let mask = mask & t.live;
        for i in 0..REGISTERS {
            self.change_life(
                life,
                slot.1[i],
                mask.1[i],
                #[inline(always)]
                |_| value,
            );
        }
    }
    #[inline(always)]
    fn step_life(
        self,
        t: Self::Tile,
        life: &mut Life<'_>,
        slot: Vector<C>,
        rule: &[i8; 256],
        mask: Mask<C>,
    ) {
        let mask = mask & t.live;
        for i in 0..REGISTERS {
            self.change_life(
                life,
                slot.1[i],
                mask.1[i],
                #[inline(always)]
                |life| rule[index(life)],
            );
        }
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
        index: Vector<C>,
        mask: Mask<C>,
    ) -> Vector<C> {
        let window = &from[base.0 as usize..(base.0 + n.0) as usize];
        // Only misses come here, so the round trip through the stack is cheap beside their cache
        // misses.
        let mut words = [-1i32; 64];
        let none = Machine::splat(self, -1);
        Machine::select(self, mask & t.live, index, none).store(&mut words, 0);
        for word in &mut words {
            *word = usize::try_from(*word).ok().and_then(|i| window.get(i)).map_or(-1, |&b| b);
        }
        Vector::load(&words, 0, Mask::first(self, words.len()))
    }
}
