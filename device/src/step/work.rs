//! The working columns of a core in the memory of a CPU.

use super::schedule::{Schedule, Work};
use crate::machine::cpu::{Column, Cpu, List, SLACK};
use crate::machine::declare::Columns;
use crate::table::params::Params;
use core::ops::RangeInclusive;

/// Returns the number of words of the working columns of a core that runs this schedule on a CPU.
pub fn work_words<S: Schedule>(p: &Params) -> usize {
    column_words(p) * (COLUMNS + S::EXTRA_COLUMNS)
}

/// The number of columns of [`Work`], including each column of a list.
const COLUMNS: usize = 2 + 2 + 2 + 3 + 1 + 3 + 1;

/// Returns the length of a column: K rounded up to a power of two, because a scatter reaches the
/// largest power of two that fits, and SLACK words for a register that is stored at the end.
fn column_words(p: &Params) -> usize {
    (p.k as usize).next_power_of_two() + SLACK
}

/// Divides the working words of a CPU's core into columns.
///
/// # Panics
/// If there are fewer words than [`work_words`].
#[inline(always)]
pub fn split_work<'a, C: Cpu, S: Schedule>(p: &Params, words: &'a mut [i32]) -> Work<'a, C, S> {
    Work::declare(p, &mut ColumnSplitter { words, len: column_words(p) })
}

/// Memory that is divided into columns of one length.
struct ColumnSplitter<'a> {
    words: &'a mut [i32],
    len: usize,
}

impl<'a> ColumnSplitter<'a> {
    #[inline(always)]
    fn next_column(&mut self) -> &'a mut [i32] {
        let (column, rest) = core::mem::take(&mut self.words).split_at_mut(self.len);
        self.words = rest;
        column
    }
}

impl<'a, C: Cpu> Columns<'a, C> for ColumnSplitter<'a> {
    #[inline(always)]
    fn column(&mut self, _: &'static str, _: u32, _: RangeInclusive<i32>) -> Column<'a> {
        Column::new(self.next_column())
    }
    #[inline(always)]
    fn list<const W: usize>(
        &mut self,
        _: &'static str,
        _: u32,
        _: [(&'static str, RangeInclusive<i32>); W],
    ) -> List<'a, W> {
        List::new([(); W].map(|()| self.next_column()))
    }
}
