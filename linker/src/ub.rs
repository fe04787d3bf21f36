//! Where everything lies in the unified buffer.
//!
//! What lives while a request runs has a place of its own. A working column lives from the first op that
//! touches it to the last within a token; columns that never live at once share bytes. Every buffer is a
//! whole number of 32-byte blocks and starts at one.

use crate::lower::Lowered;
use crate::sync::Overlap;
use crate::tape::{Block, Code, Column, Kind, Op};
use crate::{aiv::Place, lower::buffer_name};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

/// One buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its name in the text.
    pub name: String,
    /// C++ type of an element.
    pub element: &'static str,
    /// Elements.
    pub len: u32,
    /// First byte.
    pub at: u32,
    /// Bytes.
    pub bytes: u32,
    /// The ops of a token between which it lives; `None`: always.
    pub live: Option<(usize, usize)>,
}

/// All buffers of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Lanes of a tile.
    pub tile: u32,
    /// Slots that are numbered at once.
    pub run: u32,
    /// Slots that are counted at once.
    pub pass: u32,
    /// By name.
    pub buffers: Vec<Buffer>,
    /// The first byte behind them.
    pub bytes: u32,
}

impl Overlap for Plan {
    fn overlap(&self, a: &Place, b: &Place) -> bool {
        let (Place::Ub(x), Place::Ub(y)) = (a, b) else { return a == b };
        let ways = [x.split_once('['), y.split_once('[')].map(|way| way.unwrap_or(("", "")));
        if ways[0].0 == ways[1].0 && [ways[0].1, ways[1].1].iter().all(|w| !w.is_empty()) {
            // One column: this round's tile is not an earlier one's.
            return ways[0].1 == ways[1].1;
        }
        let whole = |name: &str| name.split('[').next().unwrap_or(name).to_string();
        let (x, y) = (&whole(x), &whole(y));
        let find = |name: &str| self.buffers.iter().find(|b| b.name == name);
        let (Some(x), Some(y)) = (find(x), find(y)) else { return x == y };
        x.at < y.at + y.bytes && y.at < x.at + x.bytes
    }
}

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "tile of {} lanes; {} bytes", self.tile, self.bytes)?;
        for Buffer { name, element, len, at, bytes, live } in &self.buffers {
            let live = live.map_or("always".into(), |(a, b)| format!("ops {a}..={b} of a token"));
            writeln!(f, "{at:>7} {bytes:>6} B  {name:<14} {element} x {len}, {live}")?;
        }
        Ok(())
    }
}

/// A geometry that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Stage One of this geometry takes {needs} bytes of unified buffer, and there are {limit}; \
     choose fewer slots, less spread or a smaller K"
)]
pub struct TooLarge {
    /// Bytes that it takes with the smallest tile.
    pub needs: u32,
    /// Bytes that there are.
    pub limit: u32,
}

/// Places a kernel's buffers below `limit`, with the widest tile that fits.
///
/// # Errors
/// If even the narrowest does not.
pub fn plan(kernel: &Lowered, limit: u32) -> Result<Plan, TooLarge> {
    let slots = kernel.tape.columns.iter().find(|c| c.kind == Kind::Life).map_or(256, |c| c.len);
    let tiles = [2048, 1024, 512, 256, 128].into_iter().filter(|&tile| tile <= slots.max(128));
    let plans = tiles.map(|tile| place(kernel, tile, slots));
    let mut needs = 0;
    for plan in plans {
        if plan.bytes <= limit {
            return Ok(plan);
        }
        needs = plan.bytes;
    }
    Err(TooLarge { needs, limit })
}

fn place(kernel: &Lowered, tile: u32, slots: u32) -> Plan {
    // What passes over whole columns use: all that tiles do, between two sweeps.
    let words = kernel.registers.iter().filter(|r| !r.mask).map(|r| r.number as u32 + 1).max();
    let scratch = 4 * (2 * (256 + tile) + words.unwrap_or(0) * tile);
    let run = (1 << ((scratch - 1024) / 4).ilog2()).min(slots);
    let pass = (2 * run).min(slots);
    let mut plan = Plan { tile, run, pass, buffers: Vec::new(), bytes: 0 };
    let put = |plan: &mut Plan, name: &str, element: &'static str, len: u32| {
        let size = match element {
            "half" => 2,
            "uint8_t" | "int8_t" => 1,
            _ => 4,
        };
        let bytes = (len * size).next_multiple_of(32);
        let at = plan.bytes;
        plan.bytes += bytes;
        plan.buffers.push(Buffer { name: name.into(), element, len, at, bytes, live: None });
    };
    put(&mut plan, "header", "int32_t", 16);
    put(&mut plan, "record", "int32_t", 16);
    put(&mut plan, "word", "int32_t", 8);
    for word in &kernel.words {
        put(&mut plan, &format!("WORD_{word:X}"), "int32_t", 8);
    }
    put(&mut plan, "keep", "uint8_t", 32 + pass / 8);
    let registers = |plan: &mut Plan, mask: bool, element: &'static str, len: u32| {
        let start = plan.bytes;
        for r in kernel.registers.iter().filter(|r| r.mask == mask) {
            let size = if mask { len } else { 4 * len };
            plan.bytes = start + r.number as u32 * size.next_multiple_of(32);
            put(plan, &r.name, element, len);
        }
    };
    registers(&mut plan, true, "uint8_t", tile / 8);
    put(&mut plan, "iota", "int32_t", tile);
    put(&mut plan, "stage", "int32_t", 256 + tile);
    put(&mut plan, "packed", "int32_t", 256 + tile);
    registers(&mut plan, false, "int32_t", tile);
    let stage = plan.buffers.iter().find(|b| b.name == "stage").map_or(0, |b| b.at);
    let (name, element) = ("scratch".into(), "int16_t");
    let len = scratch / 2;
    plan.buffers.push(Buffer { name, element, len, at: stage, bytes: scratch, live: None });
    if !kernel.tape.rules.is_empty() {
        put(&mut plan, "rule", "half", 256);
        put(&mut plan, "lives", "half", tile);
    }
    if mentions(&kernel.tape.body, Code::Lookup) {
        put(&mut plan, "cells", "int32_t", 64 * 8);
    }
    put(&mut plan, "id", "int32_t", slots);
    put(&mut plan, "life", "half", slots);
    let links = kernel.tape.columns.iter().find(|c| c.name == "link").map_or(0, |c| c.len);
    put(&mut plan, "link", "int32_t", links);
    let work = plan.bytes;
    plan.bytes += slots;
    share(&mut plan, work, columns(kernel), &kernel.overlays);
    // Before and after the tokens: over the columns that a token is done with first.
    let at = (plan.bytes - slots) / 32 * 32;
    let (name, element) = ("bytes".into(), "int8_t");
    plan.buffers.push(Buffer { name, element, len: slots, at, bytes: slots, live: None });
    plan
}

fn mentions(block: &Block, code: Code) -> bool {
    let deep = |op: &Op| op.body.as_ref().is_some_and(|b| mentions(b, code));
    block.ops.iter().any(|op| op.code == code || deep(op))
}

/// Lays columns out from `start` on, in the order in which they begin: where one may close up another
/// one's lanes, there; else at the least address where none that lives with it is.
fn share(
    plan: &mut Plan,
    start: u32,
    columns: BTreeMap<String, (u32, (usize, usize))>,
    overlays: &[[String; 2]],
) {
    let mut placed: Vec<Buffer> = Vec::new();
    let mut order: Vec<_> = columns.into_iter().collect();
    order.sort_by_key(|(name, (len, live))| (live.0, std::cmp::Reverse(*len), name.clone()));
    for (name, (len, live)) in order {
        let bytes = (len * 4).next_multiple_of(32);
        let lives = |b: &&Buffer| b.live.is_none_or(|(a, z)| a <= live.1 && live.0 <= z);
        let under = |b: &&Buffer| {
            let may = |[x, y]: &[String; 2]| *x == name && *y == b.name;
            b.bytes >= bytes && b.live.is_some_and(|l| l.1 == live.0) && overlays.iter().any(may)
        };
        let free = |at: u32, except: &str| {
            let beside = placed.iter().filter(lives).filter(|b| b.name != except);
            beside.into_iter().all(|b| at + bytes <= b.at || b.at + b.bytes <= at)
        };
        let over = placed.iter().filter(under).find(|b| free(b.at, &b.name)).map(|b| b.at);
        let ends = placed.iter().map(|b| b.at + b.bytes).chain([start]);
        let gap = || ends.filter(|&at| free(at, "")).min().unwrap_or(start);
        let at = over.unwrap_or_else(gap);
        placed.push(Buffer { name, element: "int32_t", len, at, bytes, live: Some(live) });
    }
    placed.sort_by_key(|b| (b.at, b.live));
    plan.bytes = placed.iter().map(|b| b.at + b.bytes).fold(plan.bytes, u32::max);
    plan.buffers.extend(placed);
}

/// Every working column: its length, and the ops of a token that it lives through.
fn columns(kernel: &Lowered) -> BTreeMap<String, (u32, (usize, usize))> {
    let mut found = BTreeMap::new();
    let tokens = kernel.tape.body.ops.iter().find(|op| matches!(op.code, Code::Repeat { .. }));
    let ops = tokens.and_then(|op| op.body.as_ref()).map_or(&[][..], |body| &body.ops);
    for (n, op) in ops.iter().enumerate() {
        touched(kernel, op, &mut |column, at| {
            let len = column.len.next_multiple_of(128);
            let name = buffer_name(column, at);
            let (_, live) = found.entry(name).or_insert((len, (n, n)));
            live.1 = n;
        });
    }
    found
}

fn touched(kernel: &Lowered, op: &Op, run: &mut impl FnMut(&Column, usize)) {
    for &id in &op.columns {
        let column = kernel.tape.column(*kernel.alias.get(&id).unwrap_or(&id));
        match (column.kind, op.code) {
            (Kind::List { .. }, Code::Len | Code::Clear | Code::Take) => {}
            (Kind::List { .. }, Code::Item(c) | Code::PublishList(c)) => run(column, c),
            (Kind::List { width }, _) => (0..width).for_each(|c| run(column, c)),
            (Kind::Words, _) if !["id", "link"].contains(&column.name.as_str()) => run(column, 0),
            _ => {}
        }
    }
    if let Some(body) = &op.body {
        body.ops.iter().for_each(|op| touched(kernel, op, run));
    }
}
