//! Lowers a tape to calls of one vector core of a 910B.
//!
//! A sweep becomes a loop over tiles of `TILE` lanes, or of `WIDE` lanes if it needs few registers
//! ([`widths`]). A load becomes a view of its column, an arithmetic operation calls on the live
//! lanes, and a compare a call on whole repeats: the mask bits behind the live lanes are undefined, and
//! only operations on masks read them. Operations that the core does not have become calls of emitted functions
//! ([`crate::ascend::functions`]): appends at any length, scatters, lifetimes and look-ups.

mod alias;
mod lanes;
mod madd;
mod names;
mod registers;
mod scatters;
mod schedule;
mod signs;
mod whole;
mod widths;

use crate::ascend::aiv::{
    self, Call, Expr, Loop, Node, Operation, Place, Set, Step, TILE, Tensor, Use, Width, lanes,
    names_read,
};
use crate::ascend::names::{camel, fresh};
use crate::ascend::simplify::simplify;
use crate::check::{Refused, Why, ranges};
use crate::tape::{Block, Column, ColumnId, Kind, Op, OpCode, Range, Tape, Value};
pub use registers::Register;
use std::collections::{BTreeMap, BTreeSet};
pub use widths::{WIDE_VECTORS, count};

/// A kernel as calls, with the facts that placing and printing it need.
#[derive(Debug)]
pub struct Lowered {
    /// The tape that was lowered, after simplification.
    pub tape: Tape,
    /// Stage One of one request, without the copies of the table in and out.
    pub body: Vec<Node>,
    /// Vector and mask registers of a tile.
    pub registers: Vec<Register>,
    /// Vector and mask registers of sweeps that take `WIDE` lanes per iteration.
    pub wide: Vec<Register>,
    /// Words that calls read from blocks, which contain nothing else.
    pub words: BTreeSet<u32>,
    /// Lists that use the storage of another list.
    pub alias: BTreeMap<ColumnId, ColumnId>,
    /// Pairs of columns of which the first may use the address of the second: it is written while
    /// the second is read for the last time.
    pub overlays: Vec<[String; 2]>,
}

/// Variables and buffers of every kernel.
const KERNEL_NAMES: &str = "\
    again alignedLanes base bytes cores gm iota lanes lifetimes packed probe q round rule scratch \
    search0 search1 search2 token word";

struct Lower<'t> {
    tape: &'t Tape,
    ranges: Vec<Range>,
    uses: BTreeMap<Value, usize>,
    defs: BTreeMap<Value, Op>,
    scalars: BTreeMap<Value, Expr>,
    /// The tensors of vectors and masks.
    at: BTreeMap<Value, Tensor>,
    /// Vectors of lifetimes, which are halfs.
    halves: BTreeSet<Value>,
    /// Masks that are set in all lanes. A call writes one only if another call reads it.
    all: BTreeSet<Value>,
    /// Vectors whose lanes are the signs, 0 or -1, of the tile's vectors.
    signs: BTreeMap<Value, Tensor>,
    /// Names for the tile's values.
    called: BTreeMap<Value, String>,
    /// The number of temporaries.
    temps: usize,
    /// Lists that are empty before the next operation.
    empty: BTreeSet<ColumnId>,
    /// Names that are in use.
    taken: BTreeSet<String>,
    alias: BTreeMap<ColumnId, ColumnId>,
    overlays: Vec<[String; 2]>,
    out: Vec<Node>,
    depth: usize,
}

/// Lowers a checked tape of Stage One.
///
/// # Errors
/// If the tape breaks a rule of the kernel language, or moves a list that cannot share its storage.
pub fn lower(tape: &Tape) -> Result<Lowered, Refused> {
    let ranges = ranges::of_values(tape)?;
    let tape = simplify(tape, &ranges);
    one_rule(&tape)?;
    let alias = alias::find(&tape)?;
    let mut uses = BTreeMap::new();
    tape.body.all().flat_map(|op| &op.args).for_each(|&a| *uses.entry(a).or_default() += 1);
    let def = |op: &Op| Some((op.out?, Op { blocks: Vec::new(), ..op.clone() }));
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
        temps: 0,
        empty: BTreeSet::new(),
        taken: KERNEL_NAMES.split_whitespace().map(String::from).collect(),
        alias,
        overlays: Vec::new(),
        out: Vec::new(),
        depth: 0,
        tape: &tape,
    };
    for name in tape.columns.iter().flat_map(text_names) {
        if !l.taken.insert(name.clone()) {
            return Err(Refused::declarations(&tape, Why::TextName(name)));
        }
    }
    let names = |pair: [(ColumnId, usize); 2]| pair.map(|(list, column)| l.storage(list, column));
    l.overlays = alias::overlays(&tape).into_iter().map(names).collect();
    l.block(&tape.body)?;
    registers::drop_unused(&mut l.out);
    let word = |used| if let Use::Word(bits) = used { Some(bits) } else { None };
    let words = aiv::uses(&l.out).into_iter().filter_map(word).collect();
    let Lower { mut taken, alias, overlays, out: mut body, .. } = l;
    let [registers, wide] = registers::assign(&mut body, &mut taken);
    Ok(Lowered { body, registers, wide, words, alias, overlays, tape })
}

/// Checks that all steps of lifetimes have one rule, which has one buffer.
fn one_rule(tape: &Tape) -> Result<(), Refused> {
    let mut steps = tape.body.all().filter(|op| matches!(op.code, OpCode::StepLife(_)));
    let first = steps.next();
    let other = steps.find(|op| Some(op.code) != first.map(|op| op.code));
    other.map_or(Ok(()), |op| Err(Refused::new(tape, op, Why::SecondRule)))
}

/// Returns the names of a column's buffers and variables.
fn text_names(c: &Column) -> Vec<String> {
    match c.kind {
        Kind::List { width } => {
            let length = format!("{}Len", camel(&c.name));
            (0..width).map(|n| buffer_name(c, n)).chain([length]).collect()
        }
        Kind::Words | Kind::Life => vec![buffer_name(c, 0)],
        Kind::Output if c.resident => vec![camel(c.array())],
        Kind::Input | Kind::Output => Vec::new(),
    }
}

/// Returns the name of a column's buffer, or of the buffer of one column of a list.
pub fn buffer_name(c: &Column, column: usize) -> String {
    match c.kind {
        Kind::List { width } if width > 1 => format!("{}{column}", camel(&c.name)),
        _ => camel(&c.name),
    }
}

impl Lower<'_> {
    fn block(&mut self, block: &Block) -> Result<(), Refused> {
        for (n, op) in block.ops.iter().enumerate() {
            if let OpCode::Phase(phase, does) = op.code {
                self.out.push(Node::Note(format!("{phase}: {does}")));
                continue;
            }
            match &op.blocks[..] {
                [body] if op.code == OpCode::Sweep => self.sweep(op, body)?,
                [body] => self.repeat(op, body)?,
                [yes, no] => self.when(op, yes, no)?,
                _ => {
                    let done = self.whole(op, &block.ops[n + 1..]);
                    done.map_err(|why| Refused::new(self.tape, op, why))?;
                }
            }
            self.track_empty(op);
        }
        Ok(())
    }

    fn repeat(&mut self, op: &Op, body: &Block) -> Result<(), Refused> {
        let variable = ["token", "round", "probe"].get(self.depth).copied().unwrap_or("again");
        let bound = self.scalar(op.args[0]);
        // A loop of one round is a branch, after which no other round follows.
        let once = op.code == OpCode::Repeat(1);
        let round = if once { 0.into() } else { Expr::name(variable) };
        self.scalars.extend(body.binds.map(|b| (b, round.clone())));
        self.depth += 1;
        // A later iteration starts with the lists of the one before.
        self.empty.clear();
        let body = self.branch(body)?;
        self.depth -= 1;
        if once {
            let condition = Expr::above(bound, 0);
            self.out.push(Node::If { condition, body, otherwise: Vec::new() });
        } else {
            self.push_loop(op, variable, (bound, None), body);
        }
        Ok(())
    }

    fn when(&mut self, op: &Op, yes: &Block, no: &Block) -> Result<(), Refused> {
        let condition = self.scalar(op.args[0]);
        let empty = self.empty.clone();
        let body = self.branch(yes)?;
        self.empty = empty;
        let otherwise = self.branch(no)?;
        self.out.push(Node::If { condition, body, otherwise });
        Ok(())
    }

    fn branch(&mut self, block: &Block) -> Result<Vec<Node>, Refused> {
        let outer = std::mem::take(&mut self.out);
        self.block(block)?;
        Ok(std::mem::replace(&mut self.out, outer))
    }

    fn sweep(&mut self, op: &Op, body: &Block) -> Result<(), Refused> {
        let mut n = self.scalar(op.args[0]);
        if !n.is_atom() {
            let column = body.ops.iter().find_map(|op| op.columns.first());
            let column = column.map_or("", |&c| &self.tape.column(c).name);
            let name = self.fresh_name(op.args[0], &format!("{column}Lanes"));
            self.set(Set::Let, name.clone(), n);
            n = Expr::Name(name);
        }
        let outer = std::mem::take(&mut self.out);
        self.called = names::of(self.tape, body);
        self.signs.clear();
        let count = Expr::min(n.clone() - Expr::name("base"), TILE);
        self.set(Set::Let, "lanes".into(), count);
        for op in &body.ops {
            self.lane(op).map_err(|why| Refused::new(self.tape, op, why))?;
        }
        let mut inner = std::mem::replace(&mut self.out, outer);
        registers::drop_unread(&mut inner);
        inner = schedule::by_level(inner, &|a, b| {
            let (Place::Ub(x, _), Place::Ub(y, _)) = (a, b) else { return a == b };
            let over = |x, y| self.overlays.iter().any(|[p, q]| p == x && q == y);
            x == y || over(x, y) || over(y, x)
        });
        let width = self.fit_width(op, &inner);
        if names_read(&inner).contains("alignedLanes") {
            // Compares process whole 256-byte repeats.
            let aligned = (lanes() + 127) / 128 * 128;
            let aligned = Operation::Set(Set::Let, "alignedLanes".into(), aligned);
            inner.insert(1, Node::Call(Call::from(aligned)));
        }
        self.push_loop(op, "base", (n, Some(width)), inner);
        Ok(())
    }

    fn push_loop(
        &mut self,
        op: &Op,
        variable: &'static str,
        (bound, width): (Expr, Option<Width>),
        body: Vec<Node>,
    ) {
        let always = self.ranges[op.args[0].0 as usize].lo > 0;
        let step = width.map_or(Step::By(1.into()), Step::Sweep);
        let head = Loop::over(variable, bound).step(step);
        self.out.push(Node::Loop(Loop { always, body, ..head }));
    }

    /// Returns the name of the buffer of a column, or of the list that shares its storage.
    fn storage(&self, id: ColumnId, column: usize) -> String {
        buffer_name(self.tape.column(*self.alias.get(&id).unwrap_or(&id)), column)
    }

    fn len_name(&self, id: ColumnId) -> String {
        format!("{}Len", camel(&self.tape.column(id).name))
    }

    /// Returns a scalar as an operand.
    fn scalar(&self, value: Value) -> Expr {
        self.scalars.get(&value).cloned().unwrap_or(Expr::Number(0))
    }

    /// Gives a scalar a name that is not in use, and returns it.
    fn fresh_name(&mut self, value: Value, name: &str) -> String {
        let name = fresh(&mut self.taken, name);
        self.scalars.insert(value, Expr::name(&name));
        name
    }
}
