//! Places the table, the working columns and the scratch memory of a block in shared memory.
//!
//! The planes of a table are in shared memory in the order of a table, so that they are loaded in one copy.
//! Where they do not fit, ids and links stay in global memory, and only lifetimes are loaded. Working columns
//! that are not live at once share bytes; those whose words stay in registers have none.

use super::Options;
use super::access::exchanged;
use super::fuse::in_registers;
use crate::live::{self, Live};
use crate::tape::{ColumnId, Kind, Op, OpCode, Tape, Value};
use avsg_device::memory::{life_at, life_words};
use avsg_device::params::Params;
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::ops::Range;

/// The threads of a warp.
pub const WARP: u32 = 32;
/// Bytes of the plan of the copies of rows (`avsg_copies.cuh`), which lies behind that of Stage One.
pub const PLAN_BYTES: u32 = 2432;
/// Bytes that the table leaves to rows at least, so that copies begin while Stage One runs.
const MIN_ROWS_BYTES: u32 = 16 * 1024;
/// Bytes of the counts of lifetimes, one word for each.
const BINS_BYTES: u32 = 256 * 4;

/// The addresses of a block's shared memory, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The table, or its lifetimes if ids and links are in global memory.
    pub table: Range<u32>,
    /// Whether ids and links are in shared memory.
    pub whole_table: bool,
    /// The counts of lifetimes, and behind them two buffers for the totals of warps.
    pub scratch: Range<u32>,
    /// The words of one of these two buffers.
    pub totals: u32,
    /// The columns of working columns and lists.
    pub columns: BTreeMap<(ColumnId, usize), Range<u32>>,
    /// The names of these columns, for a reader.
    names: BTreeMap<(ColumnId, usize), String>,
    /// Bytes in all.
    pub bytes: u32,
}

/// The error of a geometry that does not fit the shared memory of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Stage One of this geometry needs {needs} bytes of shared memory with ids and links in global memory, \
     and a block may use {limit}; choose fewer slots or a smaller K"
)]
pub struct TooLarge {
    /// Bytes that Stage One needs.
    pub needs: u32,
    /// Bytes that a block may use.
    pub limit: u32,
}

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let table = if self.whole_table { "table" } else { "lifetimes" };
        writeln!(f, "{} bytes of shared memory", self.bytes)?;
        let mut line = |name: &str, at: &Range<u32>| {
            writeln!(f, "{:>7} {:>6} B  {name}", at.start, at.end - at.start)
        };
        line(table, &self.table)?;
        line("scratch", &self.scratch)?;
        let mut columns: Vec<_> = self.columns.iter().collect();
        columns.sort_by_key(|(_, at)| at.start);
        columns.into_iter().try_for_each(|(id, at)| line(&self.names[id], at))
    }
}

/// Places the memory of a fused tape. `rounds` is the number of lanes of a thread in a sweep by its length.
///
/// # Errors
/// If it does not fit even with ids and links in global memory.
pub fn place(
    p: &Params,
    tape: &Tape,
    options: Options,
    rounds: &dyn Fn(Value) -> u32,
) -> Result<Plan, TooLarge> {
    let whole = with_table(p, tape, options, rounds, true);
    let copies = |plan: &Plan| plan.bytes.next_multiple_of(128) + PLAN_BYTES;
    if copies(&whole) + MIN_ROWS_BYTES <= options.shared_bytes {
        return Ok(whole);
    }
    let part = with_table(p, tape, options, rounds, false);
    let (needs, limit) = (copies(&part), options.shared_bytes);
    if needs <= limit { Ok(part) } else { Err(TooLarge { needs, limit }) }
}

fn with_table(
    p: &Params,
    tape: &Tape,
    options: Options,
    rounds: &dyn Fn(Value) -> u32,
    whole: bool,
) -> Plan {
    let planes = 4 * (life_at(p) as u32 + p.links());
    // The lifetimes are there with their padding.
    let table = 0..4 * life_words(p) as u32 + if whole { planes } else { 0 };
    let warps = options.threads / WARP;
    let words = |sweep: &Op| {
        let lists =
            sweep.blocks[0].ops.iter().filter(|op| op.code == OpCode::Append).count() as u32;
        lists.div_ceil(2) * rounds(sweep.args[0]) * warps
    };
    let sweeps = tape.body.all().filter(|op| op.code == OpCode::Sweep);
    // A threshold counts two words, and a search for victims one.
    let totals = sweeps.map(words).fold(2 * warps, u32::max);
    let scratch = table.end..table.end + BINS_BYTES + 2 * 4 * totals;
    let (columns, end) = place_columns(tape, scratch.end.next_multiple_of(16));
    let name = |&(id, n): &(ColumnId, usize)| {
        let column = tape.column(id);
        let list = matches!(column.kind, Kind::List { .. });
        let number = if list { n.to_string() } else { String::new() };
        ((id, n), format!("{}{number}", column.name))
    };
    let names = columns.keys().map(name).collect();
    Plan { table, whole_table: whole, scratch, totals, columns, names, bytes: end }
}

/// The bytes of each working column, and of each column of a working list.
type Places = BTreeMap<(ColumnId, usize), Range<u32>>;

/// A placed column, with the first and the last operation between which it is live.
struct Placed {
    live: (usize, usize),
    key: (ColumnId, usize),
    at: Range<u32>,
}

/// Places the working columns from byte `start` on: each at the lowest address that is free while it is
/// live, in the order of their first operations. Returns their end too.
fn place_columns(tape: &Tape, start: u32) -> (Places, u32) {
    let mut order: Vec<_> = live::columns(tape, &BTreeMap::new())
        .into_iter()
        .filter(|((id, _), _)| !in_registers(tape, *id))
        .map(|(key, Live { kind, len, from_to, .. })| {
            // Lists that exchange their memory keep it.
            let live = if exchanged(tape, key.0).is_empty() { from_to } else { (0, usize::MAX) };
            (live, key, if kind == Kind::Life { len } else { 4 * len })
        })
        .collect();
    order.sort();
    let mut placed: Vec<Placed> = Vec::new();
    for (live, key, bytes) in order {
        let bytes = bytes.next_multiple_of(16);
        let beside = |other: &&Placed| other.live.0 <= live.1 && live.0 <= other.live.1;
        let free = |at: u32| {
            let mut others = placed.iter().filter(beside);
            others.all(|other| at + bytes <= other.at.start || other.at.end <= at)
        };
        let ends = placed.iter().map(|other| other.at.end).chain([start]);
        let at = ends.filter(|&at| free(at)).min().unwrap_or(start);
        placed.push(Placed { live, key, at: at..at + bytes });
    }
    let end = placed.iter().map(|column| column.at.end).fold(start, u32::max);
    (placed.into_iter().map(|column| (column.key, column.at)).collect(), end)
}
