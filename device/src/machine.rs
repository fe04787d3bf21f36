//! The kernel language: the operations that a machine provides to the kernels of this crate.
//!
//! A kernel is generic over [`Machine`], and its code contains no vector width. CPU machines run a kernel by
//! monomorphisation ([`cpu`]); the recorder of `avsg-linker` writes it down as a tape, from which AscendC text is
//! emitted. Both give the same bits, because every kernel keeps these laws. Rust's types enforce the first two,
//! `avsg_linker::check` and the recorder laws 3 to 9, and the linker's model of a vector core and [`emu`] law 10.
#![doc = ""]
#![doc = include_str!("machine/laws.md")]

use core::ops::{Add, BitAnd, BitOr, Mul, Not, Sub};
pub use cpu::Kernel;
use links::Links;
use phase::Phase;

mod columns;
pub(crate) mod control;
pub mod cpu;
pub mod declare;
pub mod emu;
pub mod links;
mod lower;
pub mod phase;
pub mod search;
mod vector;

#[cfg(target_arch = "x86_64")]
#[expect(clippy::unused_self, reason = "self proves that the instructions exist")]
#[cfg_attr(not(test), expect(clippy::wildcard_imports, reason = "intrinsics"))]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
#[expect(clippy::unused_self, reason = "self proves that the instructions exist")]
#[cfg_attr(not(test), expect(clippy::wildcard_imports, reason = "intrinsics"))]
pub mod avx512;
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
#[cfg_attr(not(test), expect(clippy::wildcard_imports, reason = "intrinsics"))]
pub mod neon;
#[cfg(target_arch = "x86_64")]
mod x86;

/// A vector of 32-bit lanes with its operators, of which some take a constant or a run-time scalar `S`.
pub trait Lanes<S>:
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
    + Add<S, Output = Self>
    + Sub<S, Output = Self>
    + Mul<S, Output = Self>
{
}

/// The kinds of fast memory that a machine has.
pub trait Memory {
    /// A column of 32-bit words.
    type Column<'a>;
    /// The lifetime column: S signed bytes, one per slot.
    type Life<'a>;
    /// `W` columns that grow together. A list with `W` = 0 is a counter.
    type List<'a, const W: usize>;
}

/// A vector machine. A value of the type proves that the CPU has the instructions.
///
/// A back end must know the required methods, for the reason that stands at the head of each group
/// or at the method. The other methods derive from them. A machine defines one of those itself
/// where that is faster.
pub trait Machine: Memory + Copy {
    /// A vector of 32-bit lanes. `+`, `-` and `*` must not overflow (law 6). Arithmetic with a
    /// constant or a run-time scalar is a separate form, because a broadcast takes 8 KB of unified
    /// buffer on Ascend. One instruction each; `&` and `|` take twice as many repeats, since they
    /// work on 16-bit lanes.
    type V: Lanes<Self::Scalar>;
    /// One bit per lane. One instruction on 16-bit words of the mask for each of `&`, `|` and `!`.
    type Mask: Copy
        + BitAnd<Output = Self::Mask>
        + BitOr<Output = Self::Mask>
        + Not<Output = Self::Mask>;
    /// A 32-bit number that is known only at run time and is the same in all lanes. Its arithmetic
    /// runs on the scalar unit.
    type Scalar: Copy
        + Add<Output = Self::Scalar>
        + Sub<Output = Self::Scalar>
        + Mul<Output = Self::Scalar>
        + Add<i32, Output = Self::Scalar>;
    /// The position of a tile in a sweep: a run of lanes, of which those past the length of the
    /// sweep are not live.
    type Tile: Copy;
    /// A read-only array of 32-bit words in global memory.
    type Input<'a>;
    /// An array of 32-bit words in global memory that a kernel writes and reads back.
    type Output<'a>;

    // ---- run-time scalars: each is an instruction of the scalar unit -------------------------

    /// Returns the constant `value` as a run-time scalar: an immediate operand, which only a machine
    /// can give this type.
    fn scalar(self, value: i32) -> Self::Scalar;
    /// Returns the larger scalar. One scalar instruction.
    fn max(self, a: Self::Scalar, b: Self::Scalar) -> Self::Scalar;
    /// Returns the smaller scalar. One scalar instruction.
    fn min(self, a: Self::Scalar, b: Self::Scalar) -> Self::Scalar;
    /// Returns the condition a != b: 1 if it holds, else 0. One scalar instruction.
    fn ne(self, a: Self::Scalar, b: Self::Scalar) -> Self::Scalar;
    /// Returns the condition a > b: 1 if it holds, else 0. One scalar instruction.
    fn gt(self, a: Self::Scalar, b: Self::Scalar) -> Self::Scalar;
    /// Returns 1 - c, the opposite of the condition `c`. One scalar instruction.
    #[inline(always)]
    fn not(self, c: Self::Scalar) -> Self::Scalar {
        self.scalar(1) - c
    }

    // ---- control: a recorder writes a body down once ------------------------------------------

    /// Runs `body` once per tile over the lanes `0..n`, in order; a negative `n` counts as 0. A tile
    /// has the machine's width. The kernels here call it by `sweep!` (`control`). A loop of the
    /// scalar unit.
    fn sweep(self, n: Self::Scalar, body: impl FnMut(Self::Tile));
    /// Runs `body` for r = 0, 1, … below min(n, max). `max` is known when the kernel is recorded. A
    /// loop of the scalar unit.
    fn repeat(self, max: u32, n: Self::Scalar, body: impl FnMut(Self::Scalar));
    /// Runs `body` if `condition`, a scalar that is 0 or 1, is 1. A branch of the scalar unit.
    #[inline(always)]
    fn when(self, condition: Self::Scalar, mut body: impl FnMut()) {
        self.when_else(
            condition,
            &mut (),
            #[inline(always)]
            |()| body(),
            #[inline(always)]
            |()| {},
        );
    }
    /// Runs `body` if `condition`, a scalar that is 0 or 1, is 1, else `otherwise`. Both get what
    /// they both change. A branch of the scalar unit.
    fn when_else<C>(
        self,
        condition: Self::Scalar,
        both: &mut C,
        body: impl FnMut(&mut C),
        otherwise: impl FnMut(&mut C),
    );
    /// Declares that a phase of the algorithm begins here. `does` says in words what it does. Both
    /// become a heading of the emitted text; a CPU ignores them.
    #[inline(always)]
    fn phase(self, _phase: Phase, _does: &'static str) {}
    /// Gives a vector the name that it has in the emitted text.
    #[inline(always)]
    fn name_vector(self, _name: &'static str, v: Self::V) -> Self::V {
        v
    }
    /// Gives a mask the name that it has in the emitted text.
    #[inline(always)]
    fn name_mask(self, _name: &'static str, mask: Self::Mask) -> Self::Mask {
        mask
    }
    /// Gives a run-time scalar the name that it has in the emitted text.
    #[inline(always)]
    fn name_scalar(self, _name: &'static str, value: Self::Scalar) -> Self::Scalar {
        value
    }

    // ---- lanes: each is an instruction of some machine ----------------------------------------

    /// Returns the lane numbers 0, 1, 2, …, counted from the start of the sweep, which only a
    /// machine can tell of its tile. Made from a vector that stays resident.
    fn iota(self, t: Self::Tile) -> Self::V;
    /// Returns a vector with `value` in every lane. One instruction.
    fn splat(self, value: i32) -> Self::V;
    /// Shifts each lane right by a constant 0..=31, filling with zeros. One instruction.
    fn shr(self, v: Self::V, bits: u32) -> Self::V;
    /// Returns the low `bits` bits of each lane, 0..=31 of them. One AND on 16-bit lanes.
    #[inline(always)]
    fn low_bits(self, v: Self::V, bits: u32) -> Self::V {
        v & (((1u32 << bits) - 1) as i32)
    }
    /// Returns v. The kernel states that every live lane is in 0..n: the checker takes this
    /// range. No instruction.
    #[inline(always)]
    fn below(self, v: Self::V, _n: u32) -> Self::V {
        v
    }
    /// Shifts each lane left by a constant 0..=30; no live lane may overflow. One multiplication.
    #[inline(always)]
    fn shl(self, v: Self::V, bits: u32) -> Self::V {
        v * (1 << bits)
    }
    /// Returns v·s for lanes and a scalar `s` that are each in 0..2^15. One multiplication. On x86,
    /// a 16-bit multiplication costs half as much as a 32-bit one, and wide 32-bit ones lower the
    /// clock of the core for about a millisecond.
    #[inline(always)]
    fn mul_scalar(self, v: Self::V, s: Self::Scalar) -> Self::V {
        v * s
    }
    /// Returns (x mod 2^16 - 2^15)·p + (x div 2^16 mod 2^8)·q for constants `p` and `q` in 0..2^15:
    /// the sum of products of a hash. No x overflows. Six or seven instructions; two on a CPU with
    /// a multiply-add of 16-bit halves.
    fn madd(self, x: Self::V, p: i32, q: i32) -> Self::V;
    /// Returns, in each lane, `yes` where `mask` is set and `no` elsewhere. One Select on float
    /// views.
    fn select(self, mask: Self::Mask, yes: Self::V, no: Self::V) -> Self::V;
    /// Returns the lanes where a = b. One Compare; equality is the only comparison of int32 lanes
    /// that a 910B has.
    fn eq(self, a: Self::V, b: Self::V) -> Self::Mask;
    /// Returns the lanes that equal the constant `b`. One CompareScalar.
    #[inline(always)]
    fn eq_to(self, a: Self::V, b: i32) -> Self::Mask {
        self.eq(a, self.splat(b))
    }
    /// Returns the lanes that are < 0. Two instructions: an arithmetic shift and a comparison with
    /// -1; it is one on x86, and the checker learns ranges from it.
    fn is_negative(self, v: Self::V) -> Self::Mask;

    // ---- columns: only a machine knows where its memory is ------------------------------------

    /// Reads the lanes of the tile from a streamed column; others are undefined. No instruction.
    fn load(self, t: Self::Tile, column: &Self::Column<'_>) -> Self::V;
    /// Writes the lanes of the tile to a streamed column. Words past the length of the sweep become
    /// undefined. At most one copy.
    fn store(self, t: Self::Tile, column: &mut Self::Column<'_>, v: Self::V);
    /// Returns column\[index mod n\] in each lane, where n is the length of the column if that is a power
    /// of two: an undefined index reads an undefined word and faults nowhere. If the length is none, every
    /// live index is in the column (law 9). About one cycle per lane.
    fn gather(self, column: &Self::Column<'_>, index: Self::V) -> Self::V;
    /// Writes v to column\[index mod n\] in the live lanes where `mask` is set. Of two lanes with
    /// one index the later one wins. n is as for [`Machine::gather`]. Ascend has no scatter
    /// instruction: a scalar loop.
    fn scatter(
        self,
        t: Self::Tile,
        column: &mut Self::Column<'_>,
        index: Self::V,
        v: Self::V,
        mask: Self::Mask,
    );

    // ---- lists: a machine keeps their lengths, and no column contains them --------------------

    /// Returns the length of a list in entries. A scalar variable.
    fn len<const W: usize>(self, list: &Self::List<'_, W>) -> Self::Scalar;
    /// Empties a list. A scalar assignment.
    fn clear<const W: usize>(self, list: &mut Self::List<'_, W>);
    /// Reads the lanes of the tile from one column of a list, 0 to W - 1. It is no
    /// [`Machine::load`], because the length of the list bounds what is defined. No instruction.
    fn item<const W: usize>(
        self,
        t: Self::Tile,
        list: &Self::List<'_, W>,
        column: usize,
    ) -> Self::V;
    /// Appends the live lanes where `mask` is set to a list, in lane order. No other operation moves
    /// a word to another lane. One GatherMask per column, and a wait for the count.
    fn append<const W: usize>(
        self,
        t: Self::Tile,
        list: &mut Self::List<'_, W>,
        mask: Self::Mask,
        values: [Self::V; W],
    );
    /// Moves the entries of `from` to `to`, replacing its entries, and leaves `from` empty. No
    /// copy: the two lists exchange their storage.
    fn move_list<'a, const W: usize>(
        self,
        to: &mut Self::List<'a, W>,
        from: &mut Self::List<'a, W>,
    );

    // ---- all links at once: a vector core examines them in one pass ---------------------------

    /// Runs its definition [`search::find`] on `n` entries. `queries` are probe sequences and ids,
    /// `table` the links and the ids of slots. About 40 instructions on all links of some ids at
    /// once, two of them gathers.
    fn find(
        self,
        links: &Links,
        slot: &mut Self::Column<'_>,
        queries: [&Self::Column<'_>; 2],
        n: Self::Scalar,
        table: [&Self::Column<'_>; 2],
    );
    /// Runs its definition [`search::find_free`] on `n` probe sequences. The cost is that of
    /// [`Self::find`].
    fn find_free(
        self,
        links: &Links,
        position: &mut Self::Column<'_>,
        sequence: &Self::Column<'_>,
        n: Self::Scalar,
        table: [&Self::Column<'_>; 2],
    );

    // ---- the lifetime column: it has bytes, and all other operations work on words ------------

    /// Subtracts `by`, 0..=128, from all lifetimes that are at least `from`, saturating at -128. Four
    /// instructions over all S lifetimes.
    fn age(self, life: &mut Self::Life<'_>, by: Self::Scalar, from: Self::Scalar);
    /// Replaces to\[s\] by table\[life\[s\] + 128\] - 128 for all S slots. The table has 256 words in
    /// 0..=255. One Gather of half-precision numbers.
    fn map_life(self, to: &mut Self::Life<'_>, life: &Self::Life<'_>, table: &Self::Column<'_>);
    /// Returns the smallest t in -128..=127 such that at least `need` slots have a lifetime <= t, or 127
    /// if there is none; -128 if `need` <= 0. `hint`, a guess of the result, changes the cost only: each
    /// t that is tried costs one comparison over all S lifetimes, and a wait for the count.
    fn threshold(
        self,
        life: &Self::Life<'_>,
        hint: Self::Scalar,
        need: Self::Scalar,
    ) -> Self::Scalar;
    /// Appends the slots with a lifetime < t, or = t if `equal`, in the order of their indices, until
    /// the list has `limit` entries. A pass over the lifetimes, which ends when the list is full.
    fn append_life(
        self,
        list: &mut Self::List<'_, 1>,
        life: &Self::Life<'_>,
        t: Self::Scalar,
        limit: Self::Scalar,
        equal: bool,
    );
    /// Returns life\[slot mod n\] in each lane, sign-extended. n and the cost are as for [`Self::gather`].
    fn gather_life(self, life: &Self::Life<'_>, slot: Self::V) -> Self::V;
    /// Writes `value` to life\[slot mod n\] in the live lanes where `mask` is set. It is no
    /// [`Self::step_life`] by a constant rule, because a rule takes memory. A scalar loop, as a scatter.
    fn set_life(
        self,
        t: Self::Tile,
        life: &mut Self::Life<'_>,
        slot: Self::V,
        value: i8,
        mask: Self::Mask,
    );
    /// Replaces life\[slot mod n\] by rule\[life\[slot mod n\] + 128\] in the live lanes where `mask` is
    /// set. The rule must be idempotent (a second step changes nothing), so that a slot which two lanes
    /// hit ends alike for every tile width. A scalar loop, as for [`Self::scatter`].
    fn step_life(
        self,
        t: Self::Tile,
        life: &mut Self::Life<'_>,
        slot: Self::V,
        rule: &[i8; 256],
        mask: Self::Mask,
    );

    // ---- global memory: only a machine reaches it ---------------------------------------------

    /// Reads the word of an output that this kernel wrote last or found there. A scalar load.
    fn read_output(self, from: &Self::Output<'_>, at: Self::Scalar) -> Self::Scalar;
    /// Writes one word of an output. A scalar store.
    fn write_output(self, to: &mut Self::Output<'_>, at: Self::Scalar, value: Self::Scalar);
    /// Copies `n` words of global memory, from `at` on, to the front of a column. One DMA.
    fn copy_in(
        self,
        column: &mut Self::Column<'_>,
        from: &Self::Input<'_>,
        at: Self::Scalar,
        n: Self::Scalar,
    );
    /// Copies the first `n` words of a column to global memory at `at`. One DMA.
    fn copy_out(
        self,
        to: &mut Self::Output<'_>,
        at: Self::Scalar,
        column: &Self::Column<'_>,
        n: Self::Scalar,
    );
    /// Returns an output for [`Self::copy_in`]: the words that this kernel or, before a
    /// [`Self::synchronise`], another core wrote.
    fn written<'a>(self, output: &'a Self::Output<'_>) -> Self::Input<'a>;
    /// Waits until all cores of the request are here: what they have copied out before can be
    /// copied in. Cores that do not own the request stop here. A CPU machine has no other cores and
    /// does not wait. SyncAll.
    fn synchronise(self) {}
    /// Copies one column of a list to global memory at `at`: as many words as the list is long,
    /// which no column knows. One DMA.
    fn copy_out_list<const W: usize>(
        self,
        to: &mut Self::Output<'_>,
        at: Self::Scalar,
        list: &Self::List<'_, W>,
        column: usize,
    );
    /// Returns from\[base + index\] in the live lanes where `mask` is set and index is in 0..n, and
    /// -1 in all other lanes. One small DMA per lane.
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
