//! The memory of the CPU machines: columns, lifetimes and lists are slices, a run-time scalar is an
//! `i32`, and a tile is a position in a sweep.

use core::ops::{Add, Mul, Sub};

/// The least number of words of a column, and the number of words by which a list is longer than
/// its content, because a whole register may be stored at its end.
pub const SLACK: usize = 64;

/// A run-time scalar. It has no `PartialEq` and no `Ord`, so that a kernel cannot branch on it.
#[derive(Clone, Copy)]
pub struct Scalar(pub(crate) i32);

impl Scalar {
    /// Wraps a number. Only code outside of kernels calls it.
    pub fn new(value: i32) -> Self {
        Self(value)
    }

    /// Returns the number. Only code outside of kernels calls it.
    pub fn value(self) -> i32 {
        self.0
    }
}

/// Implements operators of scalars.
macro_rules! operators {
    ($($operator:ident<$right:ty> $f:ident |$a:ident, $b:ident| $e:expr;)*) => {$(
        impl $operator<$right> for Scalar {
            type Output = Self;
            #[inline(always)]
            fn $f(self, $b: $right) -> Self {
                let $a = self;
                Self($e)
            }
        }
    )*};
}
operators! {
    Add<Self> add |a, b| a.0 + b.0;
    Add<i32> add |a, b| a.0 + b;
    Sub<Self> sub |a, b| a.0 - b.0;
    Mul<Self> mul |a, b| a.0 * b.0;
}

/// A position in a sweep.
#[derive(Clone, Copy)]
pub struct Tile<K> {
    /// The number of the first lane.
    pub at: usize,
    /// The live lanes: those before the end of the sweep.
    pub live: K,
}

/// A column of words. An index is reduced by `mask`, so a gather or scatter cannot leave the
/// column.
pub struct Column<'a> {
    pub(super) data: &'a mut [i32],
    /// The largest index that a reduction gives; it is less than the number of words.
    pub(super) mask: u32,
}

impl<'a> Column<'a> {
    /// Wraps memory of at least [`SLACK`] words. Gathers and scatters reach the largest power of
    /// two of words that fits.
    ///
    /// # Panics
    /// If `data` is shorter.
    pub fn new(data: &'a mut [i32]) -> Self {
        assert!(data.len() >= SLACK, "a column needs {SLACK} words");
        let mask = ((1u64 << data.len().ilog2()) - 1) as u32;
        Self { data, mask }
    }

    /// Returns the words.
    #[inline(always)]
    pub fn words(&self) -> &[i32] {
        self.data
    }

    /// Returns the words for writing.
    #[inline(always)]
    pub fn words_mut(&mut self) -> &mut [i32] {
        self.data
    }
}

/// The lifetime column: S bytes, more bytes up to the next power of two, which are never used, and
/// [`SLACK`] bytes that take the writes of lanes that are not live.
pub struct Life<'a> {
    pub(super) data: &'a mut [i8],
    slots: usize,
    /// The largest index that a reduction gives: the pad of [`SLACK`] bytes follows it.
    pub(super) mask: u32,
}

impl<'a> Life<'a> {
    /// Wraps the lifetimes of S slots: `data` has [`SLACK`] bytes more than the least power of two that is
    /// not below S.
    ///
    /// # Panics
    /// If S is no multiple of 64, or the length is another.
    pub fn new(data: &'a mut [i8], slots: usize) -> Self {
        assert!(
            slots >= 64 && slots.is_multiple_of(64),
            "a lifetime column needs a multiple of 64 slots"
        );
        let places = slots.next_power_of_two();
        assert_eq!(data.len(), places + SLACK, "a lifetime column needs 2^m + 64 bytes");
        Self { data, slots, mask: (places - 1) as u32 }
    }

    /// Returns the S lifetimes.
    #[inline(always)]
    pub fn slots(&self) -> &[i8] {
        &self.data[..self.slots]
    }

    /// Returns the S lifetimes for writing.
    #[inline(always)]
    pub fn slots_mut(&mut self) -> &mut [i8] {
        &mut self.data[..self.slots]
    }

    /// Returns all bytes.
    #[inline(always)]
    pub fn all(&self) -> &[i8] {
        self.data
    }
}

/// `W` columns, and the number of entries in each.
pub struct List<'a, const W: usize> {
    pub(super) columns: [Column<'a>; W],
    pub(super) len: usize,
}

impl<'a, const W: usize> List<'a, W> {
    /// Returns an empty list. Each column has [`SLACK`] words more than the list has entries at
    /// most.
    pub fn new(columns: [&'a mut [i32]; W]) -> Self {
        Self { columns: columns.map(Column::new), len: 0 }
    }

    /// Returns the words of one column.
    #[inline(always)]
    pub fn column(&self, column: usize) -> &[i32] {
        &self.columns[column].data[..self.len]
    }
}
