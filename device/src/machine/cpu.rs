//! The core of a CPU machine: what an instruction set does with one register.
//!
//! An instruction set implements the required methods of [`Cpu`], each of which is an instruction or two: their
//! comments name those of AVX2 and, where it has others, AVX-512, and behind the semicolon those of NEON. The
//! other methods derive from these, and an instruction set that has an instruction for one replaces it. The
//! blanket implementation in `lower` makes a [`Machine`](super::Machine) of it, whose vectors have
//! [`REGISTERS`] registers.

pub use super::columns::{Column, Life, List, SLACK, Scalar, Tile};

/// The number of registers in a vector. One id costs two dependent gathers; with more registers in flight
/// their latencies overlap. With more lanes in a vector, fewer vectors have a lane that a list takes and
/// others that have none, so that the branch over an empty append is predicted.
pub const REGISTERS: usize = 4;

/// A kernel as a value that any CPU machine can run. It is a trait because a closure cannot be
/// generic. The bound is [`Cpu`] and not [`Machine`](super::Machine), because a body makes columns
/// from slices.
pub trait Kernel {
    /// The result of the kernel.
    type Out;
    /// Runs the kernel on a machine. Mark it `#[inline(always)]`, so that it is compiled with the
    /// vector instructions of the machine.
    fn run<M: Cpu>(self, m: M) -> Self::Out;
}

/// The instructions of a CPU machine, on one register.
///
/// # Safety
/// Each method computes what its comment says, because other methods reduce indices by it and then read
/// memory without a check.
pub unsafe trait Cpu: Copy {
    /// The number of lanes of a register: a power of two up to 16.
    const LANES: usize;
    /// A register of 32-bit lanes.
    type R: Copy;
    /// A mask of a register's lanes.
    type K: Copy;
    /// The lanes of a register as words. They have no sign, so that an index needs no extension.
    type Words: Copy + AsRef<[u32]> + AsMut<[u32]>;

    /// Returns `value` in every lane. `vpbroadcastd`; `dup`.
    fn splat(self, value: i32) -> Self::R;
    /// Returns the lanes 0, 1, 2, …: a constant.
    fn numbers(self) -> Self::R;
    /// Returns a + b; no lane may overflow. `vpaddd`; `add`.
    fn add(self, a: Self::R, b: Self::R) -> Self::R;
    /// Returns a - b; no lane may overflow. `vpsubd`; `sub`.
    fn sub(self, a: Self::R, b: Self::R) -> Self::R;
    /// Returns a · b; no lane may overflow. `vpmulld`; `mul`.
    fn mul(self, a: Self::R, b: Self::R) -> Self::R;
    /// Returns the bits of both. `vpand`; `and`.
    fn and(self, a: Self::R, b: Self::R) -> Self::R;
    /// Returns the bits of either. `vpor`; `orr`.
    fn or(self, a: Self::R, b: Self::R) -> Self::R;
    /// Shifts each lane right by a constant, filling with zeros. `vpsrld`; `ushl`.
    fn shr(self, a: Self::R, bits: u32) -> Self::R;
    /// Returns the lanes where a = b. `vpcmpeqd`; `cmeq`.
    fn eq(self, a: Self::R, b: Self::R) -> Self::K;
    /// Returns the lanes that are < 0. None on AVX2, `vpcmpd`; `cmlt`.
    fn is_negative(self, a: Self::R) -> Self::K;
    /// Returns `yes` in the lanes of `k` and `no` in the others. `vblendvps`, `vpblendmd`; `bsl`.
    fn select(self, k: Self::K, yes: Self::R, no: Self::R) -> Self::R;
    /// Returns the lanes of both masks. `vpand`, `kandw`; `and`.
    fn both(self, a: Self::K, b: Self::K) -> Self::K;
    /// Returns the lanes of either mask. `vpor`, `korw`; `orr`.
    fn either(self, a: Self::K, b: Self::K) -> Self::K;
    /// Returns the other lanes. `vpxor`, `knotw`; `mvn`.
    fn others(self, k: Self::K) -> Self::K;
    /// Returns the mask with one bit per lane. `vmovmskps`, `kmovw`; `and` and `addv`.
    fn bits(self, k: Self::K) -> u32;
    /// Reads LANES words. A lane that is not in `live` is either the word or 0. `vmovdqu`; `ld1`.
    fn load(self, from: &[i32], live: Self::K) -> Self::R;
    /// Writes LANES words. `vmovdqu`; `st1`.
    fn store(self, to: &mut [i32], a: Self::R);
    /// Returns the lanes as words. `vmovq` and `vpextrq` for each two lanes; `st1`.
    fn words(self, a: Self::R) -> Self::Words;
    /// Returns words as a register. `vpinsrd`, `vmovdqu`; `ld1`.
    fn register(self, words: Self::Words) -> Self::R;
    /// Stores the lanes in the low bits of `set` next to each other; it writes LANES words. `vpermd` by a
    /// table, `vpcompressd`; `tbl` by a table.
    fn pack(self, to: &mut [i32], a: Self::R, set: u32);
    /// Returns which of 64 lifetimes are < t, or = t if `equal`. `vpcmpgtb` or `vpcmpeqb` and `vpmovmskb`,
    /// `vpcmpb`; `cmlt` or `cmeq` and `addp`.
    fn chosen(self, life: &[i8; 64], t: i8, equal: bool) -> u64;

    // ---- what derives from these; x86 has `vpslld` and `vpmaddwd` for the first three ------------

    /// See [`Machine::shl`](super::Machine::shl).
    #[inline(always)]
    fn shl(self, a: Self::R, bits: u32) -> Self::R {
        self.mul(a, self.splat(1 << bits))
    }
    /// See [`Machine::mul_scalar`](super::Machine::mul_scalar).
    #[inline(always)]
    fn mul_scalar(self, a: Self::R, s: i32) -> Self::R {
        self.mul(a, self.splat(s))
    }
    /// See [`Machine::madd`](super::Machine::madd).
    #[inline(always)]
    fn madd(self, x: Self::R, p: i32, q: i32) -> Self::R {
        let low = self.sub(self.and(x, self.splat(0xFFFF)), self.splat(0x8000));
        let high = self.and(self.shr(x, 16), self.splat(0xFF));
        self.add(self.mul(low, self.splat(p)), self.mul(high, self.splat(q)))
    }
    /// Returns the lanes from, from + 1, …
    #[inline(always)]
    fn count_up(self, from: i32) -> Self::R {
        self.add(self.numbers(), self.splat(from))
    }
    /// Returns the words of a column at the reduced indices. A machine that gathers by `vpgatherdd` does so.
    #[inline(always)]
    fn gather(self, column: &Column<'_>, index: Self::R) -> Self::R {
        gather_by_loads(self, column, index)
    }
    /// Writes the lanes of `k` at the reduced indices, in lane order. AVX-512 has `vpscatterdd`.
    #[inline(always)]
    fn scatter(self, column: &mut Column<'_>, index: Self::R, a: Self::R, k: Self::K) {
        let set = self.bits(k);
        // The last registers of a short list have no set lane.
        if set == 0 {
            return;
        }
        let (at, a) = (self.words(reduced(self, index, column.mask)), self.words(a));
        // This loop has no branch: a lane that is not set writes back the word that it reads.
        for n in 0..Self::LANES {
            // SAFETY: `reduced` made the index at most the column's mask, which `Column::new` made
            // smaller than the length of the column.
            let word = unsafe { column.data.get_unchecked_mut(at.as_ref()[n] as usize) };
            *word = if set >> n & 1 == 1 { a.as_ref()[n] as i32 } else { *word };
        }
    }
    /// Returns life\[slot\] in each lane, sign-extended. AVX-512 gathers it by `vpgatherdd`.
    #[inline(always)]
    fn gather_life(self, life: &Life<'_>, slot: Self::R) -> Self::R {
        let mut words = self.words(reduced(self, slot, life.mask));
        for word in words.as_mut() {
            // SAFETY: `reduced` made the index at most the column's mask, and SLACK more bytes follow.
            *word = i32::from(unsafe { *life.data.get_unchecked(*word as usize) }) as u32;
        }
        self.register(words)
    }
    /// Replaces life\[slot\] by what `rule` makes of it for the lanes of `k`. A lane that is not in `k`
    /// writes to the pad, so that there is no branch; a bit scan over the mask was slower. Each such lane has
    /// a byte of its own, because a store to one common byte would wait for the previous one.
    #[inline(always)]
    fn change_life(self, life: &mut Life<'_>, slot: Self::R, k: Self::K, rule: impl Fn(i8) -> i8) {
        let pad = self.count_up(life.mask as i32 + 1);
        let at = self.words(self.select(k, reduced(self, slot, life.mask), pad));
        for &at in at.as_ref() {
            // SAFETY: the index is at most LANES above the column's mask, and SLACK bytes follow the mask.
            let byte = unsafe { life.data.get_unchecked_mut(at as usize) };
            *byte = rule(*byte);
        }
    }

    /// See [`Machine::age`](super::Machine::age). LLVM makes it `vpsubsb` and `vpblendvb`; `sqsub` and `bsl`.
    #[inline(always)]
    fn age(self, life: &mut [i8], by: u8, from: i8) {
        // 128 is not a signed byte, so it is subtracted in two steps of 64.
        let (half, rest) = ((by / 2) as i8, (by - by / 2) as i8);
        for l in life {
            let aged = l.saturating_sub(half).saturating_sub(rest);
            *l = if *l >= from { aged } else { *l };
        }
    }
    /// See [`Machine::map_life`](super::Machine::map_life); the table has the results as bytes. The
    /// instruction sets look several bytes up at once.
    #[inline(always)]
    fn map_life(self, to: &mut [i8], life: &[i8], table: &[i8; 256]) {
        for (to, &l) in to.iter_mut().zip(life) {
            *to = table[index(l)];
        }
    }
    /// Returns the number of bytes that are <= t.
    #[inline(always)]
    fn count_le(self, life: &[i8], t: i8) -> usize {
        let Some(above) = t.checked_add(1) else { return life.len() };
        let mut n = 0;
        for word in life.as_chunks::<64>().0 {
            n += self.chosen(word, above, false).count_ones() as usize;
        }
        n
    }
    /// Appends the indices of bytes < t, or = t if `equal`, to `to` from `len` on, until it holds
    /// `limit`. Returns the new length. `to` has [`SLACK`] words more than `limit`.
    ///
    /// Victims are sparse: few words of 64 bytes have more than four. So the first four of a word are written
    /// without a branch on their number; what follows the last one is overwritten by the next word's.
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
        // A branch over the empty words pays where nearly all are empty, so that it is predicted.
        let few = limit < life.len() / 256;
        for (w, word) in life.as_chunks::<64>().0.iter().enumerate() {
            if len >= limit {
                return limit;
            }
            let set = self.chosen(word, t, equal);
            if few && set == 0 {
                continue;
            }
            let (first, count) = ((64 * w) as i32, set.count_ones() as usize);
            if count <= 8 {
                let words = &mut to[len..len + 8];
                let rest = write_four(&mut words[..4], first, set);
                if count > 4 {
                    write_four(&mut words[4..], first, rest);
                }
            } else {
                let (words, mut done) = (&mut to[len..len + 64], 0);
                for part in 0..64 / Self::LANES {
                    let from = Self::LANES * part;
                    let set = (set >> from) as u32 & ((1 << Self::LANES) - 1);
                    self.pack(&mut words[done..], self.count_up(first + from as i32), set);
                    done += set.count_ones() as usize;
                }
            }
            len += count;
        }
        len.min(limit)
    }
}

/// Returns the words of a column at the reduced indices by a load for each.
#[inline(always)]
pub(super) fn gather_by_loads<C: Cpu>(m: C, column: &Column<'_>, index: C::R) -> C::R {
    let mut words = m.words(reduced(m, index, column.mask));
    for word in words.as_mut() {
        // SAFETY: `reduced` made the index at most the column's mask, which `Column::new` made smaller
        // than the length of the column.
        *word = unsafe { *column.data.get_unchecked(*word as usize) } as u32;
    }
    m.register(words)
}

/// Returns indices reduced into 0..=mask.
#[inline(always)]
pub(super) fn reduced<C: Cpu>(m: C, index: C::R, mask: u32) -> C::R {
    m.and(index, m.splat(mask as i32))
}

/// Writes `first` + the numbers of the four lowest bits of a set, and returns the set without them. A
/// set of fewer bits leaves the last words with a number that means nothing.
#[inline(always)]
fn write_four(to: &mut [i32], first: i32, mut set: u64) -> u64 {
    for word in to {
        *word = first + set.trailing_zeros() as i32;
        set &= set.wrapping_sub(1);
    }
    set
}

/// Returns the index of a lifetime in a table of 256 entries.
#[inline(always)]
pub fn index(life: i8) -> usize {
    usize::from(life as u8 ^ 0x80)
}

/// Calls instructions in a function that holds the value of their machine.
macro_rules! intrinsic {
    ($e:expr) => {
        // SAFETY: the value exists only because detection has found all instructions of its machine. An
        // access to memory is justified by the comment at its place.
        unsafe { $e }
    };
}

/// Defines methods of [`Cpu`] that are an expression of instructions.
macro_rules! instructions {
    ($($name:ident($self:ident $(, $arg:ident: $ty:ty)*) -> $out:ty = $e:expr;)*) => {$(
        #[inline(always)]
        fn $name($self $(, $arg: $ty)*) -> $out {
            intrinsic!($e)
        }
    )*};
}
pub(super) use {instructions, intrinsic};
