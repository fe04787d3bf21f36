//! The declarations of a kernel's memory and arguments.
//!
//! A kernel names each column and argument once. A CPU answers with slices of its memory, the
//! recorder writes down names and ranges, and a test answers with values by name.

use super::{Machine, Memory};
use core::ops::RangeInclusive;

/// The source of the working columns of a core.
pub trait Columns<'a, M: Memory> {
    /// Returns a column of at least `len` words, all of which are in `range`.
    fn column(&mut self, name: &'static str, len: u32, range: RangeInclusive<i32>)
    -> M::Column<'a>;
    /// Returns a list of at most `len` entries; each column has a name and a range.
    fn list<const W: usize>(
        &mut self,
        name: &'static str,
        len: u32,
        columns: [(&'static str, RangeInclusive<i32>); W],
    ) -> M::List<'a, W>;
    /// Returns a column of `slots` bytes.
    fn life(&mut self, name: &'static str, slots: u32) -> M::Life<'a>;
}

/// The source of the arguments of a kernel.
pub trait Arguments<'a, M: Machine> {
    /// Returns a scalar in `range`.
    fn scalar(
        &mut self,
        name: &'static str,
        doc: &'static str,
        range: RangeInclusive<i32>,
    ) -> M::Scalar;
    /// Returns a read-only array in global memory.
    fn input(&mut self, name: &'static str) -> M::Input<'a>;
    /// Returns an array in global memory that the kernel writes and reads back. The words that it
    /// writes are in `range`.
    fn output(&mut self, name: &'static str, range: RangeInclusive<i32>) -> M::Output<'a>;
    /// Returns an array in global memory of which a kernel writes and reads back one line of 64
    /// bytes, from word `at` on. `words` names some of them.
    fn line(
        &mut self,
        name: &'static str,
        at: M::Scalar,
        words: &'static [(i32, &'static str)],
    ) -> M::Output<'a>;
}
