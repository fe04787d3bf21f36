//! The kernel language: what a machine must offer for the kernels of this crate to run on it.
//!
//! A kernel is generic over [`Machine`] and never learns its width. The trait holds only what a
//! kernel calls. Control is structured ([`Machine::sweep`], [`Machine::repeat`], [`Machine::when`],
//! [`Machine::bisect`]); masks and run-time scalars are opaque, so a data-dependent `if` cannot
//! type-check. A branch is uniform: its condition is a scalar, the same for all lanes. Early exit is a
//! list that got short: a sweep over an empty list is a no-op.
//!
//! **In one sweep every column has exactly one role**: streamed (`load`, `store`, `item`), gathered,
//! scattered, or appended. Then the width of a tile cannot matter, and every machine gives the same
//! bits. Where two lanes scatter to one index, the later lane (list order) wins. The one exception
//! is [`Machine::step_life`], which reads and writes one column, and is safe because its update is
//! idempotent.
//!
//! **No vector operation may overflow** 32 bits: nothing public says whether a 910B wraps or
//! saturates. `Emu` and replay fault when one does.
//!
//! Costs below are per vector of 64 lanes on Ascend (one repeat, about one cycle, unless said) and
//! per register on a CPU.

use core::ops::{Add, BitAnd, BitOr, Mul, Not, Sub};
use links::Links;
use phase::Phase;

mod columns;
pub mod cpu;
pub mod declare;
pub mod emu;
pub mod links;
mod lower;
pub mod phase;
pub mod search;

#[cfg(target_arch = "x86_64")]
#[expect(clippy::unused_self, reason = "self is the proof")]
#[cfg_attr(not(test), expect(clippy::wildcard_imports, reason = "intrinsics"))]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
#[expect(clippy::unused_self, reason = "self is the proof")]
#[cfg_attr(not(test), expect(clippy::wildcard_imports, reason = "intrinsics"))]
pub mod avx512;
#[cfg(target_arch = "x86_64")]
mod cpuid;
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
#[expect(clippy::unused_self, reason = "self is the proof")]
#[cfg_attr(not(test), expect(clippy::wildcard_imports, reason = "intrinsics"))]
pub mod neon;

/// A kernel, as a value that any CPU machine can run: a closure could not be generic. The bound is
/// [`cpu::Cpu`], because a body has to know that a column is a slice before it can make one.
pub trait Kernel {
    /// What it returns.
    type Out;
    /// The body. Mark it `#[inline(always)]`, so that the machine's instructions reach it.
    fn run<M: cpu::Cpu>(self, m: M) -> Self::Out;
}

/// A vector machine. The value is a token: holding it proves that the instructions exist.
pub trait Machine: Copy {
    /// A vector of 32-bit lanes. Arithmetic with a constant or a run-time scalar is a form of its
    /// own, because a broadcast costs 8 KB of unified buffer on Ascend.
    type V: Copy
        + Add<Output = Self::V>
        + Sub<Output = Self::V>
        + Mul<Output = Self::V>
        + BitAnd<Output = Self::V>
        + BitOr<Output = Self::V>
        + Add<i32, Output = Self::V>
        + Mul<i32, Output = Self::V>
        + BitAnd<i32, Output = Self::V>
        + BitOr<i32, Output = Self::V>
        + Add<Self::Scalar, Output = Self::V>
        + Sub<Self::Scalar, Output = Self::V>
        + Mul<Self::Scalar, Output = Self::V>;
    /// One bit a lane; opaque.
    type Mask: Copy
        + BitAnd<Output = Self::Mask>
        + BitOr<Output = Self::Mask>
        + Not<Output = Self::Mask>;
    /// A 32-bit number that is known only at run time; opaque.
    type Scalar: Copy
        + Add<Output = Self::Scalar>
        + Sub<Output = Self::Scalar>
        + Mul<Output = Self::Scalar>
        + Add<i32, Output = Self::Scalar>;
    /// Where a sweep stands: a run of lanes, of which those past the sweep's length are dead.
    type Tile: Copy;
    /// A column of 32-bit words in fast memory.
    type Column<'a>;
    /// The narrow lifetime column: one signed byte per slot.
    type Life<'a>;
    /// `W` columns that grow together. A list of no columns is a counter.
    type List<'a, const W: usize>;
    /// An array of 32-bit words in global memory, read only.
    type Input<'a>;
    /// An array of 32-bit words in global memory, to write and to read back.
    type Output<'a>;

    // ---- run-time scalars -------------------------------------------------------------------

    /// A scalar of known value.
    fn scalar(self, value: i32) -> Self::Scalar;
    /// The larger of the two. Scalar unit; free.
    fn max(self, a: Self::Scalar, b: Self::Scalar) -> Self::Scalar;
    /// The smaller of the two. Scalar unit; free.
    fn min(self, a: Self::Scalar, b: Self::Scalar) -> Self::Scalar;
    /// 1 where a != b, else 0: a condition.
    fn ne(self, a: Self::Scalar, b: Self::Scalar) -> Self::Scalar;
    /// 1 where a > b, else 0: a condition.
    fn gt(self, a: Self::Scalar, b: Self::Scalar) -> Self::Scalar;
    /// 1 - c: the opposite of a condition.
    fn not(self, c: Self::Scalar) -> Self::Scalar;

    // ---- control ------------------------------------------------------------------------------

    /// Runs `body` once per tile over lanes `0..n`. Mark the closure `#[inline(always)]`.
    fn sweep(self, n: Self::Scalar, body: impl FnMut(Self::Tile));
    /// Runs `body` for r = 0..n. `max` bounds n at record time.
    fn repeat(self, max: u32, n: Self::Scalar, body: impl FnMut(Self::Scalar));
    /// Runs `body` if the condition, 0 or 1, is 1. Ascend: an `if` of the scalar unit.
    fn when(self, condition: Self::Scalar, body: impl FnMut());
    /// Says which step of the algorithm begins here, and what it does: a heading of the emitted text, nothing to
    /// a CPU.
    #[inline(always)]
    fn phase(self, _phase: Phase, _does: &'static str) {}
    /// Says what a vector is called in the emitted text.
    #[inline(always)]
    fn called(self, _name: &'static str, v: Self::V) -> Self::V {
        v
    }
    /// Says what a mask is called in the emitted text.
    #[inline(always)]
    fn called_mask(self, _name: &'static str, mask: Self::Mask) -> Self::Mask {
        mask
    }
    /// Says what a run-time scalar is called in the emitted text.
    #[inline(always)]
    fn named(self, _name: &'static str, value: Self::Scalar) -> Self::Scalar {
        value
    }
    /// The smallest t in -128..=127 with `count(t)` >= `need`, or 127. `count` is monotone in t;
    /// `hint` is where to look first and changes the cost only. `need` <= 0 gives -128 uncounted.
    fn bisect(
        self,
        hint: Self::Scalar,
        need: Self::Scalar,
        count: impl FnMut(Self::Scalar) -> Self::Scalar,
    ) -> Self::Scalar;

    // ---- lanes --------------------------------------------------------------------------------

    /// Lane numbers: 0, 1, 2, … counted from the start of the sweep. Ascend: kept resident.
    fn iota(self, t: Self::Tile) -> Self::V;
    /// Every lane the same.
    fn splat(self, value: i32) -> Self::V;
    /// Logical shift right by a constant 0..=31.
    fn shr(self, v: Self::V, bits: u32) -> Self::V;
    /// The low `bits` bits, 1..=31.
    #[inline(always)]
    fn low_bits(self, v: Self::V, bits: u32) -> Self::V {
        v & (((1u32 << bits) - 1) as i32)
    }
    /// Shift left by a constant 0..=30; no lane may overflow. Ascend: one multiplication.
    #[inline(always)]
    fn shl(self, v: Self::V, bits: u32) -> Self::V {
        v * (1 << bits)
    }
    /// v·s for lanes and a scalar in 0..2^15. Ascend: one multiplication. On x86 a full one costs twice
    /// as much, and wide ones slow the whole core down for a millisecond.
    #[inline(always)]
    fn mul_scalar(self, v: Self::V, s: Self::Scalar) -> Self::V {
        v * s
    }
    /// (x mod 2^16 - 2^15)·p + (x div 2^16 mod 2^6)·q, for `p` and `q` in 0..2^15: a hash's sum of
    /// products. Nothing overflows for any x. Ascend: six or seven operations; a CPU with a multiply-add of
    /// 16-bit halves needs two.
    #[inline(always)]
    fn madd(self, x: Self::V, p: i32, q: i32) -> Self::V {
        let (low, high) = (self.low_bits(x, 16), self.low_bits(self.shr(x, 16), 6));
        low * p + -32768 * p + high * q
    }
    /// Lane-wise choice. Ascend: Select on float views.
    fn select(self, mask: Self::Mask, yes: Self::V, no: Self::V) -> Self::V;
    /// Lanes that are equal. Ascend: the only int32 compare that a 910B has.
    fn eq(self, a: Self::V, b: Self::V) -> Self::Mask;
    /// Lanes equal to a constant.
    fn eq_to(self, a: Self::V, b: i32) -> Self::Mask;
    /// Lanes < 0: a sign test. Ascend: arithmetic shift, then EQ -1.
    fn is_negative(self, v: Self::V) -> Self::Mask;

    // ---- columns ------------------------------------------------------------------------------

    /// The tile's lanes of a streamed column. Lanes past the sweep's length are undefined.
    fn load(self, t: Self::Tile, column: &Self::Column<'_>) -> Self::V;
    /// Writes the tile's lanes of a streamed column. Lanes past the length become undefined.
    fn store(self, t: Self::Tile, column: &mut Self::Column<'_>, v: Self::V);
    /// column\[index mod length\], the length rounded down to a power of two, so that an undefined
    /// index is harmless. Ascend: Gather, byte offsets; about one lane per cycle.
    fn gather(self, column: &Self::Column<'_>, index: Self::V) -> Self::V;
    /// column\[index mod length\] = v under the mask; the later lane wins. Ascend has no scatter: a
    /// scalar loop of about 10 cycles a lane.
    fn scatter(
        self,
        t: Self::Tile,
        column: &mut Self::Column<'_>,
        index: Self::V,
        v: Self::V,
        mask: Self::Mask,
    );

    // ---- lists --------------------------------------------------------------------------------

    /// The list's length.
    fn len<const W: usize>(self, list: &Self::List<'_, W>) -> Self::Scalar;
    /// Empties the list.
    fn clear<const W: usize>(self, list: &mut Self::List<'_, W>);
    /// The tile's lanes of one column of the list.
    fn item<const W: usize>(
        self,
        t: Self::Tile,
        list: &Self::List<'_, W>,
        column: usize,
    ) -> Self::V;
    /// Appends the live lanes under the mask, in lane order. Ascend: GatherMask per column.
    fn append<const W: usize>(
        self,
        t: Self::Tile,
        list: &mut Self::List<'_, W>,
        mask: Self::Mask,
        values: [Self::V; W],
    );
    /// Moves `from` onto `to` and leaves `from` empty. CPU: swaps pointers.
    fn take<'a, const W: usize>(self, to: &mut Self::List<'a, W>, from: &mut Self::List<'a, W>);

    // ---- all links at once --------------------------------------------------------------------------

    /// `of` are probe sequences and ids: see [`search::find`]. Ascend: all links of some ids at once, in about 40 ops; two gathers a link.
    fn find(
        self,
        links: &Links,
        slot: &mut Self::Column<'_>,
        of: [&Self::Column<'_>; 2],
        n: Self::Scalar,
        table: [&Self::Column<'_>; 2],
    );
    /// [`search::find_free`]. Ascend: as [`Self::find`].
    fn find_free(
        self,
        links: &Links,
        position: &mut Self::Column<'_>,
        sequence: &Self::Column<'_>,
        n: Self::Scalar,
        table: [&Self::Column<'_>; 2],
    );

    // ---- the lifetime column --------------------------------------------------------------------

    /// life -= by for every slot, saturating at -128; `by` in 0..=128. With `settle`, a slot in use
    /// (life >= 0) first falls by 128.
    fn age(self, life: &mut Self::Life<'_>, by: Self::Scalar, settle: bool);
    /// How many slots have life <= t.
    fn count_le(self, life: &Self::Life<'_>, t: Self::Scalar) -> Self::Scalar;
    /// Appends the slots with life < t in index order, until the list holds `limit`.
    fn append_lt(
        self,
        list: &mut Self::List<'_, 1>,
        life: &Self::Life<'_>,
        t: Self::Scalar,
        limit: Self::Scalar,
    );
    /// Appends the slots with life = t in index order, until the list holds `limit`.
    fn append_eq(
        self,
        list: &mut Self::List<'_, 1>,
        life: &Self::Life<'_>,
        t: Self::Scalar,
        limit: Self::Scalar,
    );
    /// life\[slot mod S\], sign-extended.
    fn gather_life(self, life: &Self::Life<'_>, slot: Self::V) -> Self::V;
    /// life\[slot mod S\] = value under the mask.
    fn set_life(
        self,
        t: Self::Tile,
        life: &mut Self::Life<'_>,
        slot: Self::V,
        value: i8,
        mask: Self::Mask,
    );
    /// life\[slot mod S\] = rule\[life\[slot mod S\]\] under the mask, the table indexed by the byte as
    /// unsigned. The rule must be idempotent (rule\[rule\[x\]\] = rule\[x\]): a slot hit twice in one
    /// sweep then ends alike whatever the tile width.
    fn step_life(
        self,
        t: Self::Tile,
        life: &mut Self::Life<'_>,
        slot: Self::V,
        rule: &[i8; 256],
        mask: Self::Mask,
    );

    // ---- global memory --------------------------------------------------------------------------

    /// Reads one word. Ascend: scalar read, after an invalidate of its line.
    fn get(self, from: &Self::Input<'_>, at: Self::Scalar) -> Self::Scalar;
    /// Reads one word of an output, as it was when the kernel started or was last `put`.
    fn peek(self, from: &Self::Output<'_>, at: Self::Scalar) -> Self::Scalar;
    /// Writes one word.
    fn put(self, to: &mut Self::Output<'_>, at: Self::Scalar, value: Self::Scalar);
    /// Copies `n` words from global memory at `at` into a column. One DMA.
    fn fetch(
        self,
        column: &mut Self::Column<'_>,
        from: &Self::Input<'_>,
        at: Self::Scalar,
        n: Self::Scalar,
    );
    /// Copies the first `n` words of a column to global memory at `at`. One DMA.
    fn publish(
        self,
        to: &mut Self::Output<'_>,
        at: Self::Scalar,
        column: &Self::Column<'_>,
        n: Self::Scalar,
    );
    /// Publishes the first `part` words of a column at `at + first`, waits until all cores of the request
    /// have, and takes the `n` words at `at`; cores that do not own the request stop here. A machine alone waits
    /// for nobody. Ascend: a DMA, SyncAll, another DMA.
    fn share(
        self,
        column: &mut Self::Column<'_>,
        with: &mut Self::Output<'_>,
        at: Self::Scalar,
        first: Self::Scalar,
        part: Self::Scalar,
        n: Self::Scalar,
    );
    /// Copies one column of a list to global memory at `at`. One DMA.
    fn publish_list<const W: usize>(
        self,
        to: &mut Self::Output<'_>,
        at: Self::Scalar,
        list: &Self::List<'_, W>,
        column: usize,
    );
    /// from\[base + index\] under the mask, -1 in other lanes and where base + index is outside
    /// `base..base + n`. Ascend: small DMAs, one per lane, or a preloaded table.
    fn lookup(
        self,
        t: Self::Tile,
        from: &Self::Input<'_>,
        base: Self::Scalar,
        n: Self::Scalar,
        index: Self::V,
        mask: Self::Mask,
    ) -> Self::V;
}
