//! Places the buffers of a kernel in the unified buffer.
//!
//! A buffer that is live while a request runs has memory of its own. A working column is live from
//! the first to the last operation of a token that accesses it, or during all tokens if it carries
//! words from one to the next; columns that are not live at the same time share bytes. Every buffer starts on a 32-byte block and consists of whole blocks.

use crate::ascend::aiv::{Part, Place, Type, word};
use crate::ascend::live::{Live, columns, phases};
use crate::ascend::lower::{Lowered, Register, WIDE_VECTORS, buffer_name, count};
use crate::ascend::names::camel;
use crate::ascend::sync::Overlap;
use crate::tape::{Kind, OpCode};
use std::cmp::Reverse;
use std::fmt::{Display, Formatter};

/// One buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its name in the emitted text.
    pub name: String,
    /// The type of its elements.
    pub element: Type,
    /// Number of elements.
    pub len: u32,
    /// Address of its first byte; a multiple of 32.
    pub at: u32,
    /// Length in bytes; a multiple of 32.
    pub bytes: u32,
    /// The first and the last operation between which it keeps its contents; `None`: all of them.
    pub live: Option<(usize, usize)>,
}

/// All buffers of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Lanes of a tile.
    pub tile: u32,
    /// Lanes of a tile in sweeps that need few registers.
    pub wide: u32,
    /// Slots per iteration of `AppendSlots`.
    pub slot_tile: u32,
    /// Slots per iteration over lifetimes.
    pub life_tile: u32,
    /// Slots per iteration of `MapLifetimes`, whose offsets and entries lie in the scratch memory.
    pub map_tile: u32,
    /// Words of each of a search's three columns, which are all in the scratch memory.
    pub search_words: u32,
    /// The buffers. Several may have the same address.
    pub buffers: Vec<Buffer>,
    /// Address of the first byte behind all buffers.
    pub bytes: u32,
    /// The names of the operations' phases.
    pub phases: Vec<String>,
}

impl Overlap for Plan {
    fn overlap(&self, a: &Place, b: &Place) -> bool {
        let (Place::Ub(x, one), Place::Ub(y, other)) = (a, b) else { return a == b };
        let tile = |part: &Part| matches!(part, Part::Tile | Part::Past);
        let find = |name: &str| self.buffers.iter().find(|b| b.name == name);
        let (Some(a), Some(b)) = (find(x), find(y)) else { return x == y };
        if tile(one) && tile(other) && a.at == b.at && a.element.size() == b.element.size() {
            // Two columns at one address, or one column: the tiles of different iterations do not
            // overlap.
            return one == other;
        }
        let bytes = |b: &Buffer, part: &Part| match *part {
            Part::Bytes(from, to) => [b.at + from, b.at + to.min(b.bytes)],
            _ => [b.at, b.at + b.bytes],
        };
        let ([a, a_end], [b, b_end]) = (bytes(a, one), bytes(b, other));
        a < b_end && b < a_end
    }
}

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "Tiles of {} lanes, {} bytes of UB. Columns keep their words in the phases beside them; all",
            self.tile, self.bytes
        )?;
        writeln!(
            f,
            "other buffers that share bytes are in use by turns, each in a statement or a round."
        )?;
        writeln!(f, "  first  bytes  type     phases                      buffers")?;
        let mut buffers: Vec<&Buffer> = self.buffers.iter().collect();
        buffers.sort_by_key(|b| (b.at, b.live.is_some(), b.live, b.bytes));
        let same = |a: &&Buffer, b: &&Buffer| {
            (a.at, a.element, a.bytes, a.live) == (b.at, b.element, b.bytes, b.live)
        };
        for shared in buffers.chunk_by(same) {
            let Buffer { element, at, bytes, live, .. } = shared[0];
            let element = element.to_string();
            let phase = |n: &usize| self.phases[*n].as_str();
            let phases = live.as_ref().map_or(String::new(), |(a, b)| match [phase(a), phase(b)] {
                [a, b] if a == b => a.into(),
                [a, b] => format!("{a} - {b}"),
            });
            let names: Vec<_> = shared.iter().map(|b| b.name.as_str()).collect();
            for (line, some) in names.chunks(5).enumerate() {
                let names = some.join(" ");
                match line {
                    0 => writeln!(f, "{at:>7} {bytes:>6}  {element:<8} {phases:<27} {names}")?,
                    _ => writeln!(f, "{:52}{names}", "")?,
                }
            }
        }
        Ok(())
    }
}

/// The error that a geometry does not fit the unified buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Stage One of this geometry needs {needs} bytes of unified buffer, and there are {limit}; \
     choose fewer slots, less spread or a smaller K"
)]
pub struct TooLarge {
    /// Bytes that Stage One needs with the narrowest tile.
    pub needs: u32,
    /// Bytes that are available.
    pub limit: u32,
}

/// Places a kernel's buffers below `limit`, with the widest tile that fits.
///
/// # Errors
/// If the kernel does not fit even with the narrowest tile.
pub fn plan(kernel: &Lowered, limit: u32) -> Result<Plan, TooLarge> {
    let slots = kernel.tape.columns.iter().find(|c| c.kind == Kind::Life).map_or(256, |c| c.len);
    let tiles =
        [2048, 1024, 512, 256, 128].into_iter().filter(|&tile| tile <= unit(slots).max(128));
    // More memory than the registers of a tile need lets wide sweeps take a whole column at once.
    let live = columns(&kernel.tape, &kernel.alias).into_values();
    let words = live.filter(|live| element(live) == Type::I32).map(|live| live.len);
    let whole = WIDE_VECTORS as u32 * words.max().unwrap_or(0);
    let words = |tile| count(&kernel.registers, false) * tile;
    let plans = tiles.flat_map(|tile| {
        [words(tile).max(whole), words(tile)].map(|words| place(kernel, tile, slots, words))
    });
    let mut needs = 0;
    for plan in plans {
        if plan.bytes <= limit {
            return Ok(plan);
        }
        needs = plan.bytes;
    }
    Err(TooLarge { needs, limit })
}

/// Returns the largest power of two that divides the number of slots. Passes over all slots take so many of
/// them, or a smaller power of two, at once.
fn unit(slots: u32) -> u32 {
    1 << slots.trailing_zeros()
}

/// Returns the elements that the source of a Gather of `count` 16-bit numbers is declared with, of which it reads `len`.
/// CANN's check on a CPU counts a block for each repeat but the last and 64 elements for that one, whatever the offsets.
fn gathered(len: u32, count: u32) -> u32 {
    len.max(16 * (count / 128) + 48)
}

/// Places all buffers, with `words` words for the vector registers.
fn place(kernel: &Lowered, tile: u32, slots: u32, words: u32) -> Plan {
    // Passes over whole columns run between sweeps, and their scratch memory is all that tiles use.
    let scratch = 4 * (2 * (256 + tile) + words);
    // Compares process whole repeats of 128 lanes.
    let wide = (words / WIDE_VECTORS as u32 / 128 * 128).max(tile);
    let slot_tile = (1 << ((scratch - 1024) / 4).ilog2()).min(unit(slots));
    let life_tile = (2 * slot_tile).min(unit(slots));
    let search_words = scratch / (3 * 4) / 256 * 256;
    let (buffers, bytes, phases) = (Vec::new(), 0, phases(&kernel.tape));
    // A count of a Gather is below 2^14.
    let map_tile = slot_tile.min(1 << 13);
    let fits = 4 * map_tile + 2 * gathered(512, map_tile) <= scratch;
    let map_tile = if fits { map_tile } else { map_tile / 2 };
    let mut plan =
        Plan { tile, wide, slot_tile, life_tile, map_tile, search_words, buffers, bytes, phases };
    for line in kernel.tape.columns.iter().filter(|c| c.resident && c.kind == Kind::Output) {
        plan.append(&camel(line.array()), Type::I32, 16);
    }
    plan.append("word", Type::I32, 8);
    for bits in &kernel.words {
        plan.append(&word(*bits), Type::I32, 8);
    }
    let masks = plan.bytes;
    plan.append("mask_scratch", Type::U8, 32 + life_tile.max(search_words) / 8);
    // The first block is the mask of a list's last block, whose unused bits stay 0.
    plan.insert("life_mask", Type::U8, life_tile / 8, masks + 32);
    plan.insert("link_mask", Type::U8, search_words / 8, masks + 32);
    plan.registers(&kernel.registers, true, tile);
    plan.registers(&kernel.wide, true, wide);
    plan.append("iota", Type::I32, tile);
    let scratch_at = plan.bytes;
    plan.append("lane_scratch", Type::I32, 256 + tile);
    plan.append("packed", Type::I32, 256 + tile);
    let vectors = plan.bytes;
    plan.registers(&kernel.registers, false, tile);
    let end = std::mem::replace(&mut plan.bytes, vectors);
    plan.registers(&kernel.wide, false, wide);
    let scratch_end = plan.insert("scratch", Type::I16, scratch / 2, scratch_at);
    plan.bytes = plan.bytes.max(end).max(scratch_end);
    let numbers = 256 + slot_tile;
    let packed = plan.insert("slot_numbers", Type::I16, numbers, scratch_at);
    plan.insert("packed_slots", Type::I16, numbers, packed);
    for (n, column) in ["search0", "search1", "search2"].into_iter().enumerate() {
        plan.insert(column, Type::I32, search_words, scratch_at + n as u32 * 4 * search_words);
    }
    if kernel.tape.body.all().any(|op| matches!(op.code, OpCode::StepLife(_))) {
        plan.append("rule", Type::F16, plan.rule());
        plan.append("lifetimes", Type::F16, tile);
    }
    if kernel.tape.body.all().any(|op| op.code == OpCode::MapLife) {
        let entries_at = plan.insert("map_offsets", Type::I32, map_tile, scratch_at);
        plan.insert("map_entries", Type::F16, plan.map_entries(), entries_at);
    }
    if kernel.tape.body.all().any(|op| op.code == OpCode::Lookup) {
        plan.append("entry_blocks", Type::I32, 64 * 8);
    }
    for plane in kernel.tape.columns.iter().filter(|c| c.resident) {
        match plane.kind {
            Kind::Words => plan.append(&plane.name, Type::I32, plane.len),
            Kind::Life => plan.append(&plane.name, Type::F16, plane.len),
            Kind::List { .. } | Kind::Input | Kind::Output => {}
        }
    }
    let work = plan.bytes;
    plan.bytes += slots;
    place_columns(&mut plan, work, kernel);
    // The bytes are used before and after the kernel, and so they lie over its columns.
    plan.insert("bytes", Type::I8, slots, (plan.bytes - slots) / 32 * 32);
    plan
}

impl Plan {
    /// Returns the elements of the rule of lifetimes as the source of a Gather.
    pub fn rule(&self) -> u32 {
        gathered(256, self.tile)
    }

    /// Returns the elements of the source of the Gather of `MapLifetimes`.
    pub fn map_entries(&self) -> u32 {
        gathered(512, self.map_tile)
    }

    /// Returns the ids per iteration of a search, with `links` links for each id; a multiple of 8.
    pub fn search_ids(&self, links: u32) -> u32 {
        self.search_words / links / 8 * 8
    }

    /// Adds a buffer at an address, and returns the address of its end.
    fn insert(&mut self, name: &str, element: Type, len: u32, at: u32) -> u32 {
        let bytes = (len * element.size()).next_multiple_of(32);
        self.buffers.push(Buffer { name: name.into(), element, len, at, bytes, live: None });
        at + bytes
    }

    /// Adds a buffer behind all others.
    fn append(&mut self, name: &str, element: Type, len: u32) {
        self.bytes = self.insert(name, element, len, self.bytes);
    }

    /// Adds the mask or the vector registers, each of `lanes` lanes. Names of one register have one
    /// address.
    fn registers(&mut self, registers: &[Register], mask: bool, lanes: u32) {
        let (element, len) = if mask { (Type::U8, lanes / 8) } else { (Type::I32, lanes) };
        let (start, size) = (self.bytes, (len * element.size()).next_multiple_of(32));
        for r in registers.iter().filter(|r| r.mask == mask) {
            self.insert(&r.name, element, len, start + r.number as u32 * size);
        }
        self.bytes = start + count(registers, mask) * size;
    }
}

/// Returns the type of a column's elements.
fn element(live: &Live) -> Type {
    if live.kind == Kind::Life { Type::F16 } else { Type::I32 }
}

/// Places columns from the address `start` on, in the order of their first operations, and of two with
/// one such operation the longer one first, or the one that is declared later. A column
/// that may be written while another one is read for the last time gets that one's address; any
/// other column gets the smallest address that is free while it is live.
fn place_columns(plan: &mut Plan, start: u32, kernel: &Lowered) {
    let mut placed: Vec<Buffer> = Vec::new();
    let mut order: Vec<_> = columns(&kernel.tape, &kernel.alias).into_iter().collect();
    let size = |live: &Live| (live.len * element(live).size()).next_multiple_of(32);
    order.sort_by_key(|((id, column), live)| {
        (live.from_to.0, Reverse(size(live)), Reverse(*id), *column)
    });
    for ((id, column), of) in order {
        let name = buffer_name(kernel.tape.column(id), column);
        let (element, len, bytes, live) = (element(&of), of.len, size(&of), of.from_to);
        let overlaps = |b: &&Buffer| b.live.is_none_or(|(a, z)| a <= live.1 && live.0 <= z);
        let replaceable = |b: &&Buffer| {
            let may = |[x, y]: &[String; 2]| *x == name && *y == b.name;
            // The last operation of `b` is the first one of this column.
            let ends = b.live.is_some_and(|l| l.0 < live.0 && l.1 == live.0);
            b.bytes >= bytes && ends && kernel.overlays.iter().any(may)
        };
        let free = |at: u32, except: &str| {
            let others = placed.iter().filter(overlaps).filter(|b| b.name != except);
            others.into_iter().all(|b| at + bytes <= b.at || b.at + b.bytes <= at)
        };
        let replaced =
            placed.iter().filter(replaceable).find(|b| free(b.at, &b.name)).map(|b| b.at);
        let ends = placed.iter().map(|b| b.at + b.bytes).chain([start]);
        let gap = || ends.filter(|&at| free(at, "")).min().unwrap_or(start);
        let at = replaced.unwrap_or_else(gap);
        placed.push(Buffer { name, element, len, at, bytes, live: Some(live) });
    }
    placed.sort_by_key(|b| (b.at, b.live));
    plan.bytes = placed.iter().map(|b| b.at + b.bytes).fold(plan.bytes, u32::max);
    plan.buffers.extend(placed);
}
