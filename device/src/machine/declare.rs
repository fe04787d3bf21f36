//! Declarations: how a kernel's memory and arguments come to it.
//!
//! A kernel names each column and argument once. A CPU answers with slices of its memory, the recorder writes
//! names and ranges down, and a test answers with values by name.

use super::Machine;
use core::ops::RangeInclusive;

/// Who has the working columns of a core.
pub trait Columns<'a, M: Machine> {
    /// A column of at least `len` words, all of which are in `range`.
    fn column(&mut self, name: &'static str, len: u32, range: RangeInclusive<i32>)
    -> M::Column<'a>;
    /// A list of at most `len` entries, with the name and range of each of its columns.
    fn list<const W: usize>(
        &mut self,
        name: &'static str,
        len: u32,
        columns: [(&'static str, RangeInclusive<i32>); W],
    ) -> M::List<'a, W>;
}

/// Who has the arguments of a kernel.
pub trait Arguments<'a, M: Machine> {
    /// A scalar in `range`.
    fn scalar(
        &mut self,
        name: &'static str,
        doc: &'static str,
        range: RangeInclusive<i32>,
    ) -> M::Scalar;
    /// An array in global memory, to read.
    fn input(&mut self, name: &'static str) -> M::Input<'a>;
    /// An array in global memory, to write and to read back.
    fn output(&mut self, name: &'static str) -> M::Output<'a>;
    /// An array in global memory of which a kernel writes and reads back one line of 64 bytes.
    fn line(&mut self, name: &'static str) -> M::Output<'a>;
}
