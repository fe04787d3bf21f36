//! What all CPU machines share: columns are slices, a sweep is a loop, a scalar is an `i32`.
//!
//! A CPU machine implements [`Cpu`], about twenty register operations; the blanket impl below makes
//! a [`Machine`] of it. [`Vector`] stamps the operators.

use super::Machine;
use core::ops::{Add, BitAnd, BitOr, Mul, Not, Sub};

/// Words that every column must have at least, and by which lists are longer than their content:
/// a whole register may be stored at the end of a list.
pub const SLACK: usize = 64;

/// A run-time scalar. Opaque on purpose: it has no `PartialEq`, no `Ord`.
#[derive(Clone, Copy)]
pub struct Scalar(pub(crate) i32);

impl Scalar {
    /// Wraps a number, on the host's side of a kernel's boundary.
    pub fn new(value: i32) -> Self {
        Self(value)
    }

    /// Unwraps it there.
    pub fn value(self) -> i32 {
        self.0
    }
}

impl Add for Scalar {
    type Output = Self;
    #[inline(always)]
    fn add(self, o: Self) -> Self {
        Self(self.0 + o.0)
    }
}
impl Sub for Scalar {
    type Output = Self;
    #[inline(always)]
    fn sub(self, o: Self) -> Self {
        Self(self.0 - o.0)
    }
}
impl Add<i32> for Scalar {
    type Output = Self;
    #[inline(always)]
    fn add(self, o: i32) -> Self {
        Self(self.0 + o)
    }
}
impl Mul for Scalar {
    type Output = Self;
    #[inline(always)]
    fn mul(self, o: Self) -> Self {
        Self(self.0 * o.0)
    }
}

/// A position in a sweep.
#[derive(Clone, Copy)]
pub struct Tile<K> {
    /// First lane.
    pub at: usize,
    /// Lanes before the sweep's end.
    pub live: K,
}

/// A column of words. Indices are reduced by `mask`, so a gather cannot leave it.
pub struct Column<'a> {
    data: &'a mut [i32],
    mask: u32,
}

impl<'a> Column<'a> {
    /// Wraps memory of at least [`SLACK`] words. Gathers and scatters reach the largest power of
    /// two that fits.
    ///
    /// # Panics
    /// If it is shorter.
    pub fn new(data: &'a mut [i32]) -> Self {
        assert!(data.len() >= SLACK, "a column needs {SLACK} words");
        let mask = ((1u64 << data.len().ilog2()) - 1) as u32;
        Self { data, mask }
    }

    /// The words.
    #[inline(always)]
    pub fn words(&self) -> &[i32] {
        self.data
    }

    /// The words, to write.
    #[inline(always)]
    pub fn words_mut(&mut self) -> &mut [i32] {
        self.data
    }

    /// All that an index may be reduced to; `mask < words().len()`.
    #[inline(always)]
    pub fn mask(&self) -> u32 {
        self.mask
    }
}

/// The lifetime column: S bytes, then [`SLACK`] bytes that take the writes of dead lanes.
pub struct Life<'a> {
    data: &'a mut [i8],
    mask: u32,
}

impl<'a> Life<'a> {
    /// Wraps S + [`SLACK`] bytes, S a power of two of at least 64.
    ///
    /// # Panics
    /// If the length is not of that form.
    pub fn new(data: &'a mut [i8]) -> Self {
        let slots = data.len().saturating_sub(SLACK);
        assert!(slots >= 64 && slots.is_power_of_two(), "a lifetime column needs 2^m + 64 bytes");
        Self { data, mask: (slots - 1) as u32 }
    }

    /// S. An inclusive range to `mask` would be a call.
    #[inline(always)]
    fn len(&self) -> usize {
        self.mask as usize + 1
    }

    /// The S lifetimes.
    #[inline(always)]
    pub fn slots(&self) -> &[i8] {
        &self.data[..self.len()]
    }

    /// The S lifetimes, to write.
    #[inline(always)]
    pub fn slots_mut(&mut self) -> &mut [i8] {
        let len = self.len();
        &mut self.data[..len]
    }

    /// S lifetimes and the pad behind them.
    #[inline(always)]
    pub fn all(&self) -> &[i8] {
        self.data
    }

    /// S lifetimes and the pad behind them, to write; the pad starts at index S = `mask + 1`.
    #[inline(always)]
    pub fn padded(&mut self) -> &mut [i8] {
        self.data
    }

    /// S - 1; `mask + SLACK < padded().len()`.
    #[inline(always)]
    pub fn mask(&self) -> u32 {
        self.mask
    }
}

/// `W` columns and the number of words in each.
pub struct List<'a, const W: usize> {
    columns: [Column<'a>; W],
    len: usize,
}

impl<'a, const W: usize> List<'a, W> {
    /// An empty list over memory of content + [`SLACK`] words each.
    pub fn new(columns: [&'a mut [i32]; W]) -> Self {
        Self { columns: columns.map(Column::new), len: 0 }
    }

    /// The words of one column.
    #[inline(always)]
    pub fn column(&self, column: usize) -> &[i32] {
        &self.columns[column].data[..self.len]
    }
}

/// The register operations of a CPU machine.
pub trait Cpu: Copy {
    /// Lanes in a register.
    const LANES: usize;
    /// A register of lanes.
    type V: Vector<Self>;
    /// A mask.
    type K: Copy + BitAnd<Output = Self::K> + BitOr<Output = Self::K> + Not<Output = Self::K>;

    /// A mask of the first min(n, LANES) lanes.
    fn first(self, n: usize) -> Self::K;
    /// How many lanes are set.
    fn count(self, k: Self::K) -> usize;
    /// Every lane the same.
    fn splat(self, value: i32) -> Self::V;
    /// from, from + 1, …
    fn iota(self, from: i32) -> Self::V;
    /// Lane-wise sum, as the other four: no lane may overflow.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// Lane-wise difference.
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    /// Lane-wise product, the low 32 bits.
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// Lane-wise and.
    fn and(self, a: Self::V, b: Self::V) -> Self::V;
    /// Lane-wise or.
    fn or(self, a: Self::V, b: Self::V) -> Self::V;
    /// Logical shift right.
    fn shr(self, v: Self::V, bits: u32) -> Self::V;
    /// Lane-wise choice.
    fn select(self, k: Self::K, yes: Self::V, no: Self::V) -> Self::V;
    /// Lanes that are equal.
    fn eq(self, a: Self::V, b: Self::V) -> Self::K;
    /// Lanes < 0.
    fn neg(self, v: Self::V) -> Self::K;
    /// LANES words at `at`; lanes outside `live` may be 0 instead.
    fn load(self, from: &[i32], at: usize, live: Self::K) -> Self::V;
    /// LANES words at `at`; what becomes of words outside `live` is undefined.
    fn store(self, to: &mut [i32], at: usize, v: Self::V, live: Self::K);
    /// The words at the reduced indices.
    fn gather(self, column: &Column<'_>, index: Self::V) -> Self::V;
    /// Writes under the mask at the reduced indices, in lane order.
    fn scatter(self, column: &mut Column<'_>, index: Self::V, v: Self::V, k: Self::K);
    /// Stores the lanes under the mask side by side at `at`; may write up to LANES words there.
    fn compress(self, to: &mut [i32], at: usize, v: Self::V, k: Self::K);
    /// life\[slot\], sign-extended.
    fn life_at(self, life: &Life<'_>, slot: Self::V) -> Self::V;
    /// Writes a byte under the mask.
    fn set_life(self, life: &mut Life<'_>, slot: Self::V, value: i8, k: Self::K);
    /// Replaces a byte by its successor under the mask.
    fn step_life(self, life: &mut Life<'_>, slot: Self::V, rule: &[i8; 256], k: Self::K);

    /// See [`Machine::age`].
    #[inline(always)]
    fn age(self, life: &mut [i8], by: u8, settle: bool) {
        for l in life {
            let settled = if settle && *l >= 0 { *l ^ i8::MIN } else { *l };
            *l = (i16::from(settled) - i16::from(by)).max(-128) as i8;
        }
    }
    /// How many bytes are <= t.
    #[inline(always)]
    fn count_le(self, life: &[i8], t: i8) -> usize {
        life.iter().filter(|&&l| l <= t).count()
    }
    /// Appends the indices of bytes < t (or = t) to `to` from `len`, until it holds `limit`;
    /// returns the new length. `to` has [`SLACK`] words more than `limit`.
    #[inline(always)]
    fn append_life(
        self,
        to: &mut [i32],
        mut len: usize,
        life: &[i8],
        t: i8,
        equal: bool,
        limit: usize,
    ) -> usize {
        for (slot, &l) in life.iter().enumerate() {
            if len >= limit {
                break;
            }
            if if equal { l == t } else { l < t } {
                to[len] = slot as i32;
                len += 1;
            }
        }
        len
    }
}

/// A register that knows its machine: a value of it could only be made with the token.
pub trait Vector<C: Cpu>:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Add<i32, Output = Self>
    + Mul<i32, Output = Self>
    + BitAnd<i32, Output = Self>
    + BitOr<i32, Output = Self>
    + Add<Scalar, Output = Self>
    + Sub<Scalar, Output = Self>
    + Mul<Scalar, Output = Self>
{
}

/// Stamps the operators of a register type; `$m` is an expression that makes the machine's token
/// (a value of `$v` exists, so the machine was detected).
#[macro_export]
#[doc(hidden)]
macro_rules! vector_operators {
    ($g:tt $v:ty, $c:ty, $m:expr) => {
        $crate::vector_operators!(@same $g $v, $m, Add add);
        $crate::vector_operators!(@same $g $v, $m, Sub sub);
        $crate::vector_operators!(@same $g $v, $m, Mul mul);
        $crate::vector_operators!(@same $g $v, $m, BitAnd bitand and);
        $crate::vector_operators!(@same $g $v, $m, BitOr bitor or);
        $crate::vector_operators!(@with $g $v, $m, i32, Add add, x => x);
        $crate::vector_operators!(@with $g $v, $m, i32, Mul mul, x => x);
        $crate::vector_operators!(@with $g $v, $m, i32, BitAnd bitand, x => x);
        $crate::vector_operators!(@with $g $v, $m, i32, BitOr bitor, x => x);
        $crate::vector_operators!(@with $g $v, $m, $crate::machine::cpu::Scalar, Add add, x => x.value());
        $crate::vector_operators!(@with $g $v, $m, $crate::machine::cpu::Scalar, Sub sub, x => x.value());
        $crate::vector_operators!(@with $g $v, $m, $crate::machine::cpu::Scalar, Mul mul, x => x.value());
        $crate::vector_operators!(@bound $g $v, $c);
    };
    (@bound [$($g:tt)*] $v:ty, $c:ty) => {
        impl<$($g)*> $crate::machine::cpu::Vector<$c> for $v {}
    };
    (@same $g:tt $v:ty, $m:expr, $tr:ident $f:ident) => {
        $crate::vector_operators!(@same $g $v, $m, $tr $f $f);
    };
    (@same [$($g:tt)*] $v:ty, $m:expr, $tr:ident $f:ident $op:ident) => {
        impl<$($g)*> core::ops::$tr for $v {
            type Output = Self;
            #[inline(always)]
            fn $f(self, o: Self) -> Self { $crate::machine::cpu::Cpu::$op($m, self, o) }
        }
    };
    (@with [$($g:tt)*] $v:ty, $m:expr, $t:ty, $tr:ident $f:ident, $x:ident => $e:expr) => {
        impl<$($g)*> core::ops::$tr<$t> for $v {
            type Output = Self;
            #[inline(always)]
            fn $f(self, $x: $t) -> Self {
                core::ops::$tr::$f(self, $crate::machine::cpu::Cpu::splat($m, $e))
            }
        }
    };
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
    fn if_ne(self, a: Scalar, b: Scalar, then: i32) -> Scalar {
        Scalar(if a.0 == b.0 { 0 } else { then })
    }
    #[inline(always)]
    fn if_gt(self, a: Scalar, b: Scalar, then: i32) -> Scalar {
        Scalar(if a.0 > b.0 { then } else { 0 })
    }

    #[inline(always)]
    fn sweep(self, n: Scalar, mut body: impl FnMut(Self::Tile)) {
        let n = n.0.max(0) as usize;
        let mut at = 0;
        while at < n {
            body(Tile { at, live: self.first(n - at) });
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
    fn bisect(self, hint: Scalar, need: Scalar, mut count: impl FnMut(Scalar) -> Scalar) -> Scalar {
        if need.0 <= 0 {
            return Scalar(-128);
        }
        // Invariant: count(low) < need, and count(high) >= need or high = 127. The last step's
        // answer is nearly always within one of this step's, so gallop from it.
        let (mut low, mut high) = (-129, 127);
        let (mut t, mut stride) = (hint.0.clamp(-128, 127), 1);
        while high - low > 1 {
            if count(Scalar(t)).0 >= need.0 {
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
    fn iota(self, t: Self::Tile) -> C::V {
        Cpu::iota(self, t.at as i32)
    }
    #[inline(always)]
    fn splat(self, value: i32) -> C::V {
        Cpu::splat(self, value)
    }
    #[inline(always)]
    fn shr(self, v: C::V, bits: u32) -> C::V {
        Cpu::shr(self, v, bits)
    }
    #[inline(always)]
    fn select(self, mask: C::K, yes: C::V, no: C::V) -> C::V {
        Cpu::select(self, mask, yes, no)
    }
    #[inline(always)]
    fn eq(self, a: C::V, b: C::V) -> C::K {
        Cpu::eq(self, a, b)
    }
    #[inline(always)]
    fn eq_to(self, a: C::V, b: i32) -> C::K {
        Cpu::eq(self, a, Cpu::splat(self, b))
    }
    #[inline(always)]
    fn neg(self, v: C::V) -> C::K {
        Cpu::neg(self, v)
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
    fn gather(self, column: &Column<'_>, index: C::V) -> C::V {
        Cpu::gather(self, column, index)
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
        for (column, v) in list.columns.iter_mut().zip(values) {
            self.compress(column.data, list.len, v, mask);
        }
        list.len += self.count(mask);
    }
    #[inline(always)]
    fn take<'a, const W: usize>(self, to: &mut List<'a, W>, from: &mut List<'a, W>) {
        // Field by field: a swap of whole lists is a call.
        for (a, b) in to.columns.iter_mut().zip(&mut from.columns) {
            core::mem::swap(&mut a.data, &mut b.data);
            core::mem::swap(&mut a.mask, &mut b.mask);
        }
        to.len = from.len;
        from.len = 0;
    }

    #[inline(always)]
    fn age(self, life: &mut Life<'_>, by: Scalar, settle: bool) {
        Cpu::age(self, life.slots_mut(), by.0.clamp(0, 128) as u8, settle);
    }
    #[inline(always)]
    fn count_le(self, life: &Life<'_>, t: Scalar) -> Scalar {
        Scalar(Cpu::count_le(self, life.slots(), t.0 as i8) as i32)
    }
    #[inline(always)]
    fn append_lt(self, list: &mut List<'_, 1>, life: &Life<'_>, t: Scalar, limit: Scalar) {
        let [to] = &mut list.columns;
        let limit = limit.0.max(0) as usize;
        list.len = self.append_life(to.data, list.len, life.slots(), t.0 as i8, false, limit);
    }
    #[inline(always)]
    fn append_eq(self, list: &mut List<'_, 1>, life: &Life<'_>, t: Scalar, limit: Scalar) {
        let [to] = &mut list.columns;
        let limit = limit.0.max(0) as usize;
        list.len = self.append_life(to.data, list.len, life.slots(), t.0 as i8, true, limit);
    }
    #[inline(always)]
    fn life_at(self, life: &Life<'_>, slot: C::V) -> C::V {
        Cpu::life_at(self, life, slot)
    }
    #[inline(always)]
    fn set_life(self, t: Self::Tile, life: &mut Life<'_>, slot: C::V, value: i8, mask: C::K) {
        Cpu::set_life(self, life, slot, value, mask & t.live);
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
        Cpu::step_life(self, life, slot, rule, mask & t.live);
    }

    #[inline(always)]
    fn get(self, from: &&[i32], at: Scalar) -> Scalar {
        Scalar(from[at.0 as usize])
    }
    #[inline(always)]
    fn peek(self, from: &&mut [i32], at: Scalar) -> Scalar {
        Scalar(from[at.0 as usize])
    }
    #[inline(always)]
    fn put(self, to: &mut &mut [i32], at: Scalar, value: Scalar) {
        to[at.0 as usize] = value.0;
    }
    #[inline(always)]
    fn fetch(self, column: &mut Column<'_>, from: &&[i32], at: Scalar, n: Scalar) {
        let (at, n) = (at.0 as usize, n.0 as usize);
        column.data[..n].copy_from_slice(&from[at..at + n]);
    }
    #[inline(always)]
    fn publish(self, to: &mut &mut [i32], at: Scalar, column: &Column<'_>, n: Scalar) {
        let (at, n) = (at.0 as usize, n.0 as usize);
        to[at..at + n].copy_from_slice(&column.data[..n]);
    }
    #[inline(always)]
    fn publish_list<const W: usize>(
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
        // Misses only: a stack round trip per register is nothing beside the cache misses.
        let mut index_words = [-1i32; 64];
        let masked = Cpu::select(self, mask & t.live, index, Cpu::splat(self, -1));
        let all = self.first(C::LANES);
        Cpu::store(self, &mut index_words, 0, masked, all);
        for word in &mut index_words[..C::LANES] {
            *word = usize::try_from(*word).ok().and_then(|i| window.get(i)).map_or(-1, |&b| b);
        }
        Cpu::load(self, &index_words, 0, all)
    }
}
