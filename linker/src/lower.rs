//! From a tape to calls of one vector core: what every op becomes on a 910B.
//!
//! A sweep is a loop over tiles of `TILE` lanes, or of `WIDE` where it needs few registers ([`widths`]). A load is a view of its column, arithmetic one call on
//! exactly the live lanes, a compare one over whole repeats, whose junk bits behind the live lanes
//! nothing looks at. What the core lacks, helpers make of what it has ([`crate::ascendc::helpers`]):
//! appends at any length, scatters, lifetimes, look-ups.

mod alias;
mod lanes;
mod madd;
mod names;
mod registers;
mod scatters;
mod schedule;
mod search;
mod signs;
mod simplify;
mod whole;
mod widths;

use crate::aiv::{Call, Expr, If, Length, Loop, Node, Operation, Place, Tensor, Width};
use crate::ascendc::helpers::basic;
use crate::check::{Refused, ranges};
use crate::tape::{Block, Column, ColumnId, Kind, Op, OpCode, Range, Tape, Value};
pub use registers::Register;
use registers::Temp;
use std::collections::{BTreeMap, BTreeSet};
pub use widths::{WIDE_VECTORS, count};

/// A kernel as calls, and what they need to be placed and written.
#[derive(Debug)]
pub struct Lowered {
    /// The tape that was lowered: simplified.
    pub tape: Tape,
    /// Stage One of one request, without the table's way in and out.
    pub body: Vec<Node>,
    /// Vector and mask registers of a tile.
    pub registers: Vec<Register>,
    /// Vector and mask registers of sweeps that take `WIDE` lanes per round.
    pub wide: Vec<Register>,
    /// Words that calls take from blocks of their own.
    pub words: BTreeSet<u32>,
    /// Lists that share another one's storage.
    pub alias: BTreeMap<ColumnId, ColumnId>,
    /// Columns that may begin where another one ends, though both are touched then.
    pub overlays: Vec<[String; 2]>,
}

/// Names that the text has besides those of columns: buffers of helpers, and variables.
const FIXED: [&str; 21] = [
    "header", "record", "word", "keep", "iota", "stage", "packed", "scratch", "rule", "lives",
    "cells", "bytes", "lanes", "whole", "base", "token", "round", "probe", "again", "gm", "q",
];

struct Lower<'t> {
    tape: &'t Tape,
    ranges: Vec<Range>,
    uses: BTreeMap<Value, usize>,
    defs: BTreeMap<Value, Op>,
    scalars: BTreeMap<Value, Expr>,
    /// Vectors and masks.
    at: BTreeMap<Value, Tensor>,
    halves: BTreeSet<Value>,
    /// Masks that hold for all lanes. They are made only if somebody needs one.
    all: BTreeSet<Value>,
    /// Signs, spread over the word, of the tile's vectors.
    signs: BTreeMap<Value, Tensor>,
    /// What the tile's values are called.
    called: BTreeMap<Value, String>,
    temps: Vec<Temp>,
    registers: registers::Names,
    /// The registers of wide sweeps.
    wide: registers::Names,
    /// Lists that are empty where the next op runs.
    empty: BTreeSet<ColumnId>,
    /// Names of scalars that are taken.
    taken: BTreeSet<String>,
    alias: BTreeMap<ColumnId, ColumnId>,
    overlays: Vec<[String; 2]>,
    out: Vec<Node>,
    depth: usize,
}

/// Lowers a checked tape of Stage One.
///
/// # Errors
/// If the tape breaks a law, or moves a list that cannot share its storage.
pub fn lower(tape: &Tape) -> Result<Lowered, Refused> {
    let ranges = ranges::of_values(tape)?;
    let tape = simplify::simplify(tape);
    let alias = alias::find(&tape)?;
    let mut uses = BTreeMap::new();
    tape.body.all().flat_map(|op| &op.args).for_each(|&a| *uses.entry(a).or_default() += 1);
    let def = |op: &Op| Some((op.out?, Op { body: None, ..op.clone() }));
    let params = tape.params.iter().map(|p| (p.value, Expr::field(camel(&p.name))));
    let mut l = Lower {
        ranges,
        uses,
        defs: tape.body.all().filter_map(def).collect(),
        scalars: params.collect(),
        at: BTreeMap::new(),
        halves: BTreeSet::new(),
        all: BTreeSet::new(),
        signs: BTreeMap::new(),
        called: BTreeMap::new(),
        temps: Vec::new(),
        registers: registers::Names::default(),
        wide: registers::Names::default(),
        empty: BTreeSet::new(),
        taken: FIXED.iter().map(|name| (*name).into()).collect(),
        alias,
        overlays: Vec::new(),
        out: Vec::new(),
        depth: 0,
        tape: &tape,
    };
    for c in &tape.columns {
        let width = if let Kind::List { width } = c.kind { width } else { 1 };
        l.taken.extend((0..width).map(|n| buffer_name(c, n)));
        l.taken.insert(format!("{}Len", camel(&c.name)));
    }
    let names = |pair: [(ColumnId, usize); 2]| pair.map(|(list, column)| l.storage(list, column));
    l.overlays = alias::overlays(&tape).into_iter().map(names).collect();
    l.block(&tape.body);
    registers::drop_unused(&mut l.out);
    let calls = l.out.iter().flat_map(Node::all).filter_map(Node::call);
    let words = calls.flat_map(Call::words).collect();
    let Lower { registers, wide, alias, overlays, out, .. } = l;
    let (registers, wide) = (registers.registers(), wide.registers());
    Ok(Lowered { body: out, registers, wide, words, alias, overlays, tape })
}

/// The name of a column's storage, or of one column of a list.
pub fn buffer_name(c: &Column, column: usize) -> String {
    match c.kind {
        Kind::List { width } if width > 1 => format!("{}{column}", camel(&c.name)),
        _ => camel(&c.name),
    }
}

/// `ids_stride` as `idsStride`.
pub fn camel(name: &str) -> String {
    let mut up = false;
    let letter = |c: char| {
        let c = (c != '_').then(|| if up { c.to_ascii_uppercase() } else { c });
        up = c.is_none();
        c
    };
    name.chars().filter_map(letter).collect()
}

impl Lower<'_> {
    fn block(&mut self, block: &Block) {
        for (n, op) in block.ops.iter().enumerate() {
            if let OpCode::Phase(phase, does) = op.code {
                self.out.push(Node::Note(format!("{phase}: {does}")));
                continue;
            }
            match (op.code, &op.body) {
                (OpCode::Sweep, Some(body)) => self.sweep(op, body),
                (OpCode::Repeat { .. }, Some(body)) => self.repeat(op, body),
                (OpCode::When, Some(body)) => self.when(op, body),
                _ => self.whole(op, &block.ops[n + 1..]),
            }
            self.track_empty(op);
        }
    }

    fn repeat(&mut self, op: &Op, body: &Block) {
        let variable = ["token", "round", "probe"].get(self.depth).copied().unwrap_or("again");
        let bound = self.scalar(op.args[0]);
        self.scalars.extend(body.binds.map(|b| (b, Expr::name(variable))));
        let outer = std::mem::take(&mut self.out);
        self.depth += 1;
        // A later round begins with what an earlier one left.
        self.empty.clear();
        self.block(body);
        self.empty.clear();
        self.depth -= 1;
        let body = std::mem::replace(&mut self.out, outer);
        self.push_loop(op, variable, (bound, None), body);
    }

    fn when(&mut self, op: &Op, body: &Block) {
        let condition = self.scalar(op.args[0]);
        let outer = std::mem::take(&mut self.out);
        let empty = self.empty.clone();
        self.block(body);
        // What the body cleared is empty only if the body ran.
        self.empty.retain(|list| empty.contains(list));
        let body = std::mem::replace(&mut self.out, outer);
        if let (Some(Node::If(before)), Expr::Not(same)) = (self.out.last_mut(), &condition)
            && before.otherwise.is_empty()
            && before.condition == **same
        {
            before.otherwise = body;
            return;
        }
        self.out.push(Node::If(If { condition, body, otherwise: Vec::new() }));
    }

    fn sweep(&mut self, op: &Op, body: &Block) {
        let mut n = self.scalar(op.args[0]);
        if !n.is_atom() {
            let column = body.ops.iter().find_map(|op| op.columns.first());
            let column = column.map_or("", |&c| &self.tape.column(c).name);
            let name = self.fresh_name(op.args[0], &format!("{column}Lanes"));
            self.call(Call::from(Operation::Let(name.clone(), n)));
            n = Expr::Name(name);
        }
        let outer = std::mem::take(&mut self.out);
        self.called = names::of(self.tape, &self.defs, body);
        self.temps.clear();
        self.signs.clear();
        let lanes = Expr::min(n.clone() - Expr::name("base"), Width::Tile.constant());
        self.call(Call::from(Operation::Let("lanes".into(), lanes)));
        for op in &body.ops {
            self.lane(op);
        }
        let mut inner = std::mem::replace(&mut self.out, outer);
        registers::drop_unread(&mut inner);
        inner = schedule::by_level(inner, &|a, b| {
            let (Place::Ub(x, _), Place::Ub(y, _)) = (a, b) else { return a == b };
            let over = |x, y| self.overlays.iter().any(|[p, q]| p == x && q == y);
            x == y || over(x, y) || over(y, x)
        });
        let width = self.fit_width(op, &mut inner);
        let mut lengths = inner.iter().filter_map(Node::call).flat_map(Call::lengths);
        if lengths.any(Length::whole_repeats) {
            inner.insert(1, Node::Call(basic::whole()));
        }
        self.push_loop(op, "base", (n, Some(width)), inner);
    }

    fn push_loop(
        &mut self,
        op: &Op,
        variable: &'static str,
        (bound, width): (Expr, Option<Width>),
        body: Vec<Node>,
    ) {
        let count = self.defs.get(&op.args[0]).map(|op| op.code);
        let always = matches!(count, Some(OpCode::Constant(n)) if n > 0);
        let sync = Vec::new();
        self.out.push(Node::Loop(Loop { variable, bound, width, always, sync, body }));
    }

    /// The name of a column's storage.
    fn storage(&self, id: ColumnId, column: usize) -> String {
        buffer_name(self.tape.column(*self.alias.get(&id).unwrap_or(&id)), column)
    }

    fn len_name(&self, id: ColumnId) -> String {
        format!("{}Len", camel(&self.tape.column(id).name))
    }

    /// A scalar as an operand.
    fn scalar(&self, value: Value) -> Expr {
        self.scalars.get(&value).cloned().unwrap_or(Expr::Number(0))
    }

    /// A name for a scalar that no other one has.
    fn fresh_name(&mut self, value: Value, name: &str) -> String {
        let numbered = (2..).map(|n| format!("{name}{n}"));
        let mut all = std::iter::once(name.to_string()).chain(numbered);
        let name = all.find(|name| !self.taken.contains(name)).unwrap_or_default();
        self.taken.insert(name.clone());
        self.scalars.insert(value, Expr::name(&name));
        name
    }
}
