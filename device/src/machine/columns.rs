//! What the CPU machines keep in memory: columns, lifetimes and lists are slices, a run-time scalar is
//! an `i32`, and a tile is a position in a sweep.

use core::ops::{Add, Mul, Sub};

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
    pub(super) data: &'a mut [i32],
    pub(super) mask: u32,
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
    pub(super) data: &'a mut [i8],
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
    pub(super) columns: [Column<'a>; W],
    pub(super) len: usize,
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
