//! The working columns of a core in the memory of a CPU.

use super::schedule::{Schedule, Work};
use crate::machine::cpu::{Column, Cpu, Life, List, SLACK};
use crate::machine::declare::Columns;
use crate::table::learned::{self, LIFETIMES};
use crate::table::memory::as_bytes;
use crate::table::params::{Lifetime, Params};
use core::ops::RangeInclusive;

/// Returns the number of words of the working columns of a core that runs this schedule on a CPU.
pub fn work_words<S: Schedule>(p: &Params) -> usize {
    let order = match p.lifetime {
        Lifetime::Constant(_) => 0,
        Lifetime::Learned => {
            let columns = [LIFETIMES, LIFETIMES, learned::sample_slots(p)].map(column_words);
            columns.into_iter().sum::<usize>() + life_words(p.slots)
        }
    };
    column_words(p.k as usize) * (COLUMNS + S::EXTRA_COLUMNS) + order
}

/// The number of columns of [`Work`] with a word for each id, including each column of a list.
const COLUMNS: usize = 2 + 2 + 2 + 3 + 1 + 3 + 1;

/// Returns the words of a column: its length rounded up to a power of two, because a scatter reaches the
/// largest power of two that fits, and SLACK words for a register that is stored at the end.
fn column_words(len: usize) -> usize {
    len.next_power_of_two() + SLACK
}

/// Returns the words of a lifetime column.
fn life_words(slots: u32) -> usize {
    (slots.next_power_of_two() as usize + SLACK) / 4
}

/// Divides the working words of a CPU's core into columns.
///
/// # Panics
/// If there are fewer words than [`work_words`].
#[inline(always)]
pub fn split_work<'a, C: Cpu, S: Schedule>(p: &Params, words: &'a mut [i32]) -> Work<'a, C, S> {
    Work::declare(p, &mut ColumnSplitter(words))
}

/// Memory that is divided into columns.
struct ColumnSplitter<'a>(&'a mut [i32]);

impl<'a> ColumnSplitter<'a> {
    #[inline(always)]
    fn take(&mut self, words: usize) -> &'a mut [i32] {
        let (column, rest) = core::mem::take(&mut self.0).split_at_mut(words);
        self.0 = rest;
        column
    }
}

impl<'a, C: Cpu> Columns<'a, C> for ColumnSplitter<'a> {
    #[inline(always)]
    fn column(&mut self, _: &'static str, len: u32, _: RangeInclusive<i32>) -> Column<'a> {
        Column::new(self.take(column_words(len as usize)))
    }
    #[inline(always)]
    fn list<const W: usize>(
        &mut self,
        _: &'static str,
        len: u32,
        _: [(&'static str, RangeInclusive<i32>); W],
    ) -> List<'a, W> {
        List::new([(); W].map(|()| self.take(column_words(len as usize))))
    }
    #[inline(always)]
    fn life(&mut self, _: &'static str, slots: u32) -> Life<'a> {
        Life::new(as_bytes(self.take(life_words(slots))), slots as usize)
    }
}
