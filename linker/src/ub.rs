//! Where everything lies in the unified buffer.
//!
//! What lives while a request runs has a place of its own. A working column lives from the first op that
//! touches it to the last within a token; columns that never live at once share bytes. Every buffer is a
//! whole number of 32-byte blocks and starts at one.

use crate::aiv::{Element, Part, Place, word};
use crate::lower::{Lowered, Register, WIDE_VECTORS, buffer_name, count};
use crate::sync::Overlap;
use crate::tape::{Block, Kind, Op, OpCode};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

/// One buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its name in the text.
    pub name: String,
    /// What its elements are.
    pub element: Element,
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
    /// Lanes per round of a sweep that needs few registers.
    pub wide: u32,
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
        let (Place::Ub(x, one), Place::Ub(y, other)) = (a, b) else { return a == b };
        let tiles = *one != Part::Whole && *other != Part::Whole;
        let find = |name: &str| self.buffers.iter().find(|b| b.name == name);
        let (Some(a), Some(b)) = (find(x), find(y)) else { return x == y };
        if tiles && a.at == b.at && a.element.size() == b.element.size() {
            // One column, or two that lie in one place: this round's tile is not an earlier one's.
            return one == other;
        }
        a.at < b.at + b.bytes && b.at < a.at + a.bytes
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

/// Words of a search's column in so many bytes of scratch memory.
fn span(scratch: u32) -> u32 {
    scratch / (3 * 4) / 256 * 256
}

fn place(kernel: &Lowered, tile: u32, slots: u32) -> Plan {
    // What passes over whole columns use: all that tiles do, between two sweeps.
    let words = count(&kernel.registers, false) * tile;
    let scratch = 4 * (2 * (256 + tile) + words);
    let wide = (words / WIDE_VECTORS as u32 / 64 * 64).max(tile);
    let run = (1 << ((scratch - 1024) / 4).ilog2()).min(slots);
    let pass = (2 * run).min(slots);
    let mut plan = Plan { tile, wide, run, pass, buffers: Vec::new(), bytes: 0 };
    plan.put("header", Element::Word, 16);
    plan.put("record", Element::Word, 16);
    plan.put("word", Element::Word, 8);
    for bits in &kernel.words {
        plan.put(&word(*bits), Element::Word, 8);
    }
    plan.put("keep", Element::Mask, 32 + pass.max(span(scratch)) / 8);
    plan.registers(&kernel.registers, true, tile);
    plan.registers(&kernel.wide, true, wide);
    plan.put("iota", Element::Word, tile);
    let stage = plan.bytes;
    plan.put("stage", Element::Word, 256 + tile);
    plan.put("packed", Element::Word, 256 + tile);
    let vectors = plan.bytes;
    plan.registers(&kernel.registers, false, tile);
    let end = std::mem::replace(&mut plan.bytes, vectors);
    plan.registers(&kernel.wide, false, wide);
    plan.bytes = plan.bytes.max(end);
    plan.lay("scratch", Element::Short, scratch / 2, stage);
    if !kernel.tape.rules.is_empty() {
        plan.put("rule", Element::Half, 256);
        plan.put("lives", Element::Half, tile);
    }
    if kernel.tape.body.all().any(|op| op.code == OpCode::Lookup) {
        plan.put("cells", Element::Word, 64 * 8);
    }
    for plane in kernel.tape.columns.iter().filter(|c| c.resident) {
        match plane.kind {
            Kind::Words => plan.put(&plane.name, Element::Word, plane.len),
            Kind::Life => plan.put(&plane.name, Element::Half, plane.len),
            Kind::List { .. } | Kind::Input | Kind::Output => {}
        }
    }
    let work = plan.bytes;
    plan.bytes += slots;
    share(&mut plan, work, columns(kernel), &kernel.overlays);
    // Before and after the tokens: over the columns that a token is done with first.
    plan.lay("bytes", Element::Byte, slots, (plan.bytes - slots) / 32 * 32);
    plan
}

impl Plan {
    fn scratch(&self) -> u32 {
        self.buffers.iter().find(|b| b.name == "scratch").map_or(0, |b| b.bytes)
    }

    /// Words of one of a search's three columns. All of them lie in the scratch memory.
    pub fn span(&self) -> u32 {
        span(self.scratch())
    }

    /// How many ids of so many links each a search takes at once.
    pub fn chunk(&self, links: u32) -> u32 {
        self.span() / links / 8 * 8
    }

    /// A buffer at an address; gives its end.
    fn lay(&mut self, name: &str, element: Element, len: u32, at: u32) -> u32 {
        let bytes = (len * element.size()).next_multiple_of(32);
        self.buffers.push(Buffer { name: name.into(), element, len, at, bytes, live: None });
        at + bytes
    }

    /// A buffer behind all others.
    fn put(&mut self, name: &str, element: Element, len: u32) {
        self.bytes = self.lay(name, element, len, self.bytes);
    }

    /// The masks or the vectors of so many lanes, by number: names that share one lie at one address.
    fn registers(&mut self, registers: &[Register], mask: bool, lanes: u32) {
        let (element, len) = if mask { (Element::Mask, lanes / 8) } else { (Element::Word, lanes) };
        let (start, size) = (self.bytes, (len * element.size()).next_multiple_of(32));
        for r in registers.iter().filter(|r| r.mask == mask) {
            self.lay(&r.name, element, len, start + r.number as u32 * size);
        }
        self.bytes = start + count(registers, mask) * size;
    }
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
            // It ends where this one begins.
            let ends = b.live.is_some_and(|l| l.0 < live.0 && l.1 == live.0);
            b.bytes >= bytes && ends && overlays.iter().any(may)
        };
        let free = |at: u32, except: &str| {
            let beside = placed.iter().filter(lives).filter(|b| b.name != except);
            beside.into_iter().all(|b| at + bytes <= b.at || b.at + b.bytes <= at)
        };
        let over = placed.iter().filter(under).find(|b| free(b.at, &b.name)).map(|b| b.at);
        let ends = placed.iter().map(|b| b.at + b.bytes).chain([start]);
        let gap = || ends.filter(|&at| free(at, "")).min().unwrap_or(start);
        let at = over.unwrap_or_else(gap);
        placed.push(Buffer { name, element: Element::Word, len, at, bytes, live: Some(live) });
    }
    placed.sort_by_key(|b| (b.at, b.live));
    plan.bytes = placed.iter().map(|b| b.at + b.bytes).fold(plan.bytes, u32::max);
    plan.buffers.extend(placed);
}

/// The ops of a block in the order in which they run; those of a branch, which runs once at most, one by one.
fn in_turn<'t>(block: &'t Block, ops: &mut Vec<&'t Op>) {
    for op in &block.ops {
        match &op.body {
            Some(body) if op.code == OpCode::When => in_turn(body, ops),
            _ => ops.push(op),
        }
    }
}

/// Every working column: its length, and the ops of a token that it lives through.
fn columns(kernel: &Lowered) -> BTreeMap<String, (u32, (usize, usize))> {
    let mut found = BTreeMap::new();
    let tokens = kernel.tape.body.ops.iter().find(|op| matches!(op.code, OpCode::Repeat { .. }));
    let mut ops = Vec::new();
    tokens.iter().filter_map(|op| op.body.as_ref()).for_each(|body| in_turn(body, &mut ops));
    for (n, op) in ops.into_iter().enumerate() {
        for (op, &id) in op.all().flat_map(|op| op.columns.iter().map(move |id| (op, id))) {
            let column = kernel.tape.column(*kernel.alias.get(&id).unwrap_or(&id));
            let touched = match (column.kind, op.code) {
                (Kind::List { .. }, OpCode::Len | OpCode::Clear | OpCode::Take) => 0..0,
                (Kind::List { .. }, OpCode::Item(c) | OpCode::PublishList(c)) => c..c + 1,
                (Kind::List { width }, _) => 0..width,
                (Kind::Words, _) if !column.resident => 0..1,
                _ => 0..0,
            };
            for at in touched {
                let len = column.len.next_multiple_of(128);
                let (_, live) = found.entry(buffer_name(column, at)).or_insert((len, (n, n)));
                live.1 = n;
            }
        }
    }
    found
}
