//! The memory of the working columns on a CPU.

use super::schedule::{Schedule, Work};
use crate::machine::cpu::{Column, Cpu, List, SLACK};
use crate::machine::declare::Columns;
use crate::table::params::Params;
use core::ops::RangeInclusive;

/// Words of the working columns of a core that runs this schedule on a CPU.
pub fn work_words<S: Schedule>(p: &Params) -> usize {
    column_words(p) * (COLUMNS + S::EXTRA_COLUMNS)
}

/// Columns of [`Work`], each of a list's counted.
const COLUMNS: usize = 2 + 2 + 2 + 3 + 1 + 3 + 1;

/// K, rounded up to a power of two: a scatter reaches no further than the largest one that fits. And
/// slack for a register stored at the end.
fn column_words(p: &Params) -> usize {
    (p.k as usize).next_power_of_two() + SLACK
}

/// Splits the working words of a CPU's core.
///
/// # Panics
/// If there are fewer than [`work_words`].
#[inline(always)]
pub fn split_work<'a, C: Cpu, S: Schedule>(p: &Params, words: &'a mut [i32]) -> Work<'a, C, S> {
    Work::declare(p, &mut Cut { words, len: column_words(p) })
}

/// Memory that is cut into columns of one length.
struct Cut<'a> {
    words: &'a mut [i32],
    len: usize,
}

impl<'a> Cut<'a> {
    #[inline(always)]
    fn cut(&mut self) -> &'a mut [i32] {
        let (column, rest) = core::mem::take(&mut self.words).split_at_mut(self.len);
        self.words = rest;
        column
    }
}

impl<'a, C: Cpu> Columns<'a, C> for Cut<'a> {
    #[inline(always)]
    fn column(&mut self, _: &'static str, _: u32, _: RangeInclusive<i32>) -> Column<'a> {
        Column::new(self.cut())
    }
    #[inline(always)]
    fn list<const W: usize>(
        &mut self,
        _: &'static str,
        _: u32,
        _: [(&'static str, RangeInclusive<i32>); W],
    ) -> List<'a, W> {
        List::new([(); W].map(|()| self.cut()))
    }
}
