//! The memory that an operation on lanes touches, and which thread touches a word.

use crate::tape::code::Role;
use crate::tape::{ColumnId, Op, OpCode, Range as Bounds, Tape, Value};
use avsg_device::machine::Indices;
use std::collections::BTreeSet;
use std::ops::Range;

/// Which thread touches a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// The thread that has the lane with the number of the word, counted from a constant first one.
    Lane(i32),
    /// The thread that has the lane with a quarter of the number of the byte.
    Quarter,
    /// Any thread.
    Any,
}

/// An access to a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The column.
    pub column: ColumnId,
    /// The columns of a list that are accessed; the first of any other.
    pub parts: Range<usize>,
    /// Which thread.
    pub by: By,
    /// Whether it changes words.
    pub write: bool,
}

/// Returns the accesses of an operation in a sweep. `ranges` are those of all values, by number.
pub fn accesses(op: &Op, ranges: &[Bounds]) -> Vec<Access> {
    const LANE: By = By::Lane(0);
    // Copies that begin at a constant word of global memory.
    let copied = || {
        let first = |at: &Value| ranges.get(at.0 as usize).copied();
        let first = op.args.first().and_then(first).filter(|range| range.lo == range.hi);
        first.map_or(By::Any, |range| By::Lane(range.lo))
    };
    let written: &[(usize, By)] = match op.code {
        OpCode::Find(_) | OpCode::FindFree(_) | OpCode::CopyIn | OpCode::Store => &[(0, LANE)],
        OpCode::CopyOut | OpCode::CopyOutList(_) => &[(0, copied())],
        _ if op.code.writes() => &[(0, By::Any)],
        _ => &[],
    };
    let read: &[(usize, By)] = match op.code {
        OpCode::Load | OpCode::Item(_) => &[(0, LANE)],
        OpCode::Find(_) => &[(1, LANE), (2, LANE), (3, By::Any), (4, By::Any)],
        OpCode::FindFree(_) => &[(1, LANE), (2, By::Any), (3, By::Any)],
        OpCode::CopyOut | OpCode::CopyOutList(_) => &[(1, LANE)],
        OpCode::CopyIn => &[(1, copied())],
        _ if op.code.signature().columns().any(|(_, role)| role == Role::Gathered) => {
            &[(0, By::Any)]
        }
        _ => &[],
    };
    let parts = match op.code {
        OpCode::Item(n) | OpCode::CopyOutList(n) => n..n + 1,
        // As many values are appended as the list has columns.
        OpCode::Append => 0..op.args.len() - 2,
        _ => 0..1,
    };
    let access = |&(n, by): &(usize, By), write| {
        // The first column of a publication is an array in global memory.
        let parts = if write && op.code != OpCode::Append { 0..1 } else { parts.clone() };
        Access { column: op.columns[n], parts, by, write }
    };
    let written = written.iter().map(|of| access(of, true));
    written.chain(read.iter().map(|of| access(of, false))).collect()
}

/// Returns whether an operation scatters words at indices that may repeat.
pub fn repeats(op: &Op) -> bool {
    op.code == OpCode::Scatter(Indices::Repeated)
}

/// Returns whether a sweep has threads wait for each other: where a list is made, or a winner found.
pub fn waits(op: &Op) -> bool {
    op.code == OpCode::Append || repeats(op)
}

/// Returns the lists that exchange their memory with a list, and the list itself; none if it keeps its own.
pub fn exchanged(tape: &Tape, id: ColumnId) -> BTreeSet<ColumnId> {
    let moves = tape.body.all().filter(|op| op.code == OpCode::MoveList);
    moves.filter(|op| op.columns.contains(&id)).flat_map(|op| op.columns.clone()).collect()
}

/// Returns whether two accesses to one column, each of at most `lanes` words, touch no word from two threads.
pub fn apart(a: By, b: By, lanes: i32) -> bool {
    match (a, b) {
        (By::Lane(a), By::Lane(b)) => a == b || a.abs_diff(b) >= lanes.unsigned_abs(),
        _ => a == b && a != By::Any,
    }
}
