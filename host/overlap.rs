//! Whether rows and slots in memory of the caller share bytes.
//!
//! The rows of one layer and segment are a few distances apart ([`Strides`]), and those of several layers
//! may lie between each other in any way. So they are compared by their distances, and never listed.

use std::fmt;

use crate::rows::Strides;
use crate::{Error, Result, ensure, invalid};

/// What is in the memory of a [`Grid`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Rows of the host pool or slots of the device buffer, of a layer and a segment.
    Of(&'static str, [usize; 2]),
    /// The caller's table of blocks.
    BlockTable,
    /// A region of a pool's layout.
    Region(usize),
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(what, [layer, segment]) => {
                write!(f, "{what} of layer {layer}, segment {segment}")
            }
            Self::BlockTable => f.pad("entries of the table of blocks"),
            Self::Region(index) => write!(f, "bytes of region {index}"),
        }
    }
}

/// A distance, and the number of parts that are this distance apart.
#[derive(Debug, Clone, Copy)]
struct Level {
    count: usize,
    stride: usize,
}

/// Rows without blocks, or the rows of whole blocks. None of them overlap, and all are in the address
/// space.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    content: Content,
    start: usize,
    /// The larger distance is first, and a level of one part is last.
    levels: [Level; 2],
    bytes: usize,
}

/// The grids of the rows of one layer and segment: those of whole blocks, and those of the last block.
pub(crate) type Grids = heapless::Vec<Grid, 2>;

impl Grid {
    /// Returns the grids of `count` rows of `bytes` bytes, of which the first begins at the address
    /// `start`.
    ///
    /// # Errors
    /// If the rows of a block are no power of two, two rows of one grid overlap, or a row is beyond the
    /// address space.
    pub fn of(
        content: Content,
        start: usize,
        strides: Strides,
        [count, bytes]: [usize; 2],
    ) -> Result<Grids> {
        let Strides { block_rows, block, row } = strides;
        ensure!(block_rows == 0 || block_rows.is_power_of_two(), "block rows" is block_rows, but
            "it must be 0 or a power of two"; "pass 0 without blocks");
        let in_block = if block_rows == 0 { count.max(1) } else { block_rows };
        let (blocks, rest) = (count / in_block, count % in_block);
        let beyond = || {
            invalid!("memory" is format!("{content} from {start:#x} on"), but
                "it must fit the address space";
                "pass an address and strides of memory that exists")
        };
        let mut grids = Grids::new();
        for (first, blocks, rows) in [(0, blocks, in_block), (blocks, 1, rest)] {
            if blocks == 0 || rows == 0 {
                continue;
            }
            let mut levels = [("block stride", blocks, block), ("row stride", rows, row)];
            // The blocks may lie between the rows of a block.
            levels.sort_unstable_by_key(|&(_, _, stride)| stride);
            let mut reach = bytes;
            for (what, count, stride) in levels {
                if count > 1 && stride < reach {
                    let limit = match reach == bytes {
                        true => format!("the segment holds {bytes} bytes"),
                        false => format!("what is at the smaller stride takes {reach} bytes"),
                    };
                    return Err(invalid!(what is stride, but "{limit}";
                        "pass a stride that covers them"));
                }
                let others = (count - 1).checked_mul(stride);
                reach = others.and_then(|at| at.checked_add(reach)).ok_or_else(beyond)?;
            }
            let start = first.checked_mul(block).and_then(|at| start.checked_add(at));
            let start = start.filter(|start| {
                start.checked_add(reach).is_some_and(|end| end <= isize::MAX as usize)
            });
            let start = start.ok_or_else(beyond)?;
            let [inner, outer] = levels.map(|(_, count, stride)| Level { count, stride });
            let levels = if outer.count > 1 { [outer, inner] } else { [inner, outer] };
            // This cannot fail: the loop makes at most two.
            let _ = grids.push(Self { content, start, levels, bytes });
        }
        Ok(grids)
    }

    /// Returns the address behind the last byte.
    pub fn end(&self) -> usize {
        let others = self.levels.iter().map(|level| (level.count - 1) * level.stride);
        self.start + others.sum::<usize>() + self.bytes
    }

    /// Returns the outer level, and the first of the equal parts that it consists of; `None` for a single row.
    fn split(self) -> Option<(Level, Self)> {
        let [outer, inner] = self.levels;
        let levels = [inner, Level { count: 1, stride: 0 }];
        (outer.count > 1).then_some((outer, Self { levels, ..self }))
    }

    fn behind(self, bytes: usize) -> Self {
        Self { start: self.start + bytes, ..self }
    }

    /// Returns whether the two have a byte in common.
    fn meets(self, other: Self) -> bool {
        if self.end() <= other.start || other.end() <= self.start {
            return false;
        }
        match (self.split(), other.split()) {
            (None, None) => true,
            (Some((a, mine)), Some((b, theirs))) if a.stride == b.stride => {
                // Part i of this one and part i + d of the other are as far apart for every i. Only
                // at the d of this range do they begin before the other ends.
                let (stride, signed) = (a.stride.cast_signed(), usize::cast_signed);
                let first = (signed(mine.start) - signed(theirs.end())).div_euclid(stride) + 1;
                let last = (signed(mine.end()) - signed(theirs.start) - 1).div_euclid(stride);
                let mut apart = first.max(1 - signed(a.count))..=last.min(signed(b.count) - 1);
                apart.any(|d| {
                    let [back, ahead] = [-d, d].map(|parts| parts.max(0).unsigned_abs() * a.stride);
                    mine.behind(back).meets(theirs.behind(ahead))
                })
            }
            (Some((a, mine)), Some((b, _))) if a.stride > b.stride => mine.any_meets(a, other),
            (Some((a, mine)), None) => mine.any_meets(a, other),
            (_, Some((b, theirs))) => theirs.any_meets(b, self),
        }
    }

    /// Returns whether one of the parts of a level, of which this is the first, meets `other`.
    fn any_meets(self, level: Level, other: Self) -> bool {
        let first = (other.start + 1).saturating_sub(self.end()).div_ceil(level.stride);
        let parts = (first..level.count).map(|index| self.behind(index * level.stride));
        parts.take_while(|part| part.start < other.end()).any(|part| part.meets(other))
    }
}

/// Returns an error if two of the grids have a byte in common, and the first error among them.
pub(crate) fn check(grids: impl Iterator<Item = Result<Grids>>) -> Result<()> {
    let mut all = Vec::<Grid>::new();
    for grids in grids {
        let (grids, what) = (grids?, "list of rows and slots");
        let bytes = size_of_val(&*all) + size_of_val(&*grids);
        all.try_reserve(grids.len()).map_err(|_| Error::OutOfMemory { what, bytes })?;
        all.extend(grids);
    }
    all.sort_unstable_by_key(|grid| grid.start);
    for (index, grid) in all.iter().enumerate() {
        let end = grid.end();
        let mut near = all[index + 1..].iter().take_while(|other| other.start < end);
        if let Some(other) = near.find(|other| grid.meets(**other)) {
            return Err(invalid!(
                "address" is format!("{:#x} for {}", other.start, other.content), but
                "{} from {:#x} on have the same bytes", grid.content, grid.start;
                "give each memory of its own"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
