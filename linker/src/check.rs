//! Verifies a tape before anything uses it. A back-end may assume of each tape that passes:
//!
//! - values are defined once, before their use, in a block around it, and have the right types (law
//!   4 of `avsg_device::machine`);
//! - ops on lanes are inside of sweeps, ops on whole columns and control ops are outside (law 3);
//! - constants are in range, and rules are idempotent (law 8);
//! - [`roles`]: in one sweep every column has one role (law 5);
//! - [`ranges`]: no vector op overflows (law 6), no column leaves its declared range (law 7), and indices of
//!   a column whose length is no power of two are in it (law 9).
//!
//! Law 10 is checked at run time: on a CPU in tests, and by the shim. That lanes are below what the kernel says of them is
//! only seen in wrong results.

pub mod ranges;
pub mod roles;

use avsg_device::machine::links::Links;
use avsg_device::params::MAX_RETRIES;

use crate::tape::code::{Need, Operand, Role};
use crate::tape::{Block, ColumnId, Kind, Op, OpCode, Range, Rule, Tape, Type, Value};

/// The error of a tape that breaks a law: the op, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel {tape}, `{op}`: {why}")]
pub struct Refused {
    /// The name of the kernel.
    pub tape: String,
    /// The op as it prints.
    pub op: String,
    /// The reason.
    pub why: Why,
}

/// The reason why an op is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Why {
    #[error(
        "a second run of the body records something else: \
         the body carries a value or a list from round to round in a Rust variable; \
         carry it in a column"
    )]
    Carried,
    #[error("two columns or parameters are called `{0}`")]
    Name(String),
    #[error("{0} is used before its definition or outside of the block that defines it")]
    Undefined(String),
    #[error("the number or the types of its operands or results are wrong")]
    Operands,
    #[error("`{0}` is the wrong kind of memory for this op")]
    Memory(String),
    #[error("an op on lanes must be inside of a sweep")]
    OutsideSweep,
    #[error(
        "the op must be outside of sweeps: in one it would run once per tile, and depend on the tile width"
    )]
    InsideSweep,
    #[error("a shift takes 0 to 31 bits, and a mask of low bits has 1 to 31")]
    Bits,
    #[error(
        "madd takes multipliers in 0..=32767, so that no lane overflows; these are {0} and {1}"
    )]
    Multipliers(i32, i32),
    #[error("column {0} does not exist in a list of {1} columns")]
    ListColumn(usize, usize),
    #[error(
        "the length of `{0}` is {1}, which is no power of two, so indices must be below it, but this one may be in {2}"
    )]
    Index(String, u32, Range),
    #[error("the rule is not idempotent: it maps byte {0} to {1}, and that to {2}")]
    Rule(i8, i8, i8),
    #[error(
        "in this sweep `{0}` is {1:?} by an earlier op and {2:?} by this one; a column has one role"
    )]
    TwoRoles(String, Role, Role),
    #[error(
        "in this sweep `{0}` is {1:?} by two ops, whose order depends on the tile width; use two sweeps"
    )]
    TwoWriters(String, Role),
    #[error("may overflow: its result is in {0}..={1}")]
    Overflow(i64, i64),
    #[error("the words of `{0}` are in {1}, but this word may be in {2}")]
    Range(String, Range, Range),
    #[error("the operand must be in {0}, but it may be in {1}")]
    Argument(Range, Range),
    #[error("may reach word {1} of `{0}`, which has {2} words")]
    TooLong(String, i32, u32),
    #[error("the moved list cannot share the storage of its destination")]
    Storage,
    #[error("the text has another variable or buffer `{0}`: rename the column")]
    TextName(String),
    #[error("a second rule: a vector core has memory for one")]
    SecondRule,
    #[error("a vector core has no call for this op")]
    NoCall,
}

impl Refused {
    pub(crate) fn declarations(tape: &Tape, why: Why) -> Self {
        Self { tape: tape.name.clone(), op: "its declarations".into(), why }
    }

    pub(crate) fn new(tape: &Tape, op: &Op, why: Why) -> Self {
        Self { tape: tape.name.clone(), op: tape.line(op), why }
    }
}

/// Checks the structure of a tape, the roles of its columns, and all ranges.
///
/// # Errors
/// Returns the first op that breaks a law.
pub fn check(tape: &Tape) -> Result<(), Refused> {
    structure(tape)?;
    ranges::check(tape)
}

/// Checks all but [`ranges`].
fn structure(tape: &Tape) -> Result<(), Refused> {
    names(tape)?;
    let mut scope = Scope { tape, defined: vec![false; tape.types.len()] };
    for p in &tape.params {
        let bound = scope.bind(Some(p.value)).and_then(|()| scope.used(p.value, Type::Scalar));
        bound.map_err(|why| Refused::declarations(tape, why))?;
    }
    scope.block(&tape.body, false)
}

fn names(tape: &Tape) -> Result<(), Refused> {
    let columns = tape.columns.iter().map(|c| &c.name);
    let mut names: Vec<&String> = columns.chain(tape.params.iter().map(|p| &p.name)).collect();
    names.sort();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    twice.map_or(Ok(()), |pair| Err(Refused::declarations(tape, Why::Name(pair[0].clone()))))
}

struct Scope<'t> {
    tape: &'t Tape,
    /// Whether each value may be used at this point.
    defined: Vec<bool>,
}

impl Scope<'_> {
    fn block(&mut self, block: &Block, in_sweep: bool) -> Result<(), Refused> {
        let tape = self.tape;
        for op in &block.ops {
            let refused = |why| Refused::new(tape, op, why);
            self.op(op, in_sweep).map_err(refused)?;
            for body in &op.blocks {
                let outer = self.defined.clone();
                self.bind(body.binds).map_err(refused)?;
                self.block(body, op.code == OpCode::Sweep)?;
                self.defined = outer;
                if op.code == OpCode::Sweep {
                    roles::check(tape, body)?;
                }
            }
            self.bind(op.out).map_err(refused)?;
        }
        Ok(())
    }

    /// Makes a value usable; it must not be defined already.
    fn bind(&mut self, value: Option<Value>) -> Result<(), Why> {
        let Some(value) = value else { return Ok(()) };
        let defined = self.defined.get_mut(value.0 as usize).ok_or(Why::Operands)?;
        if std::mem::replace(defined, true) { Err(Why::Operands) } else { Ok(()) }
    }

    fn used(&self, value: Value, ty: Type) -> Result<(), Why> {
        match self.defined.get(value.0 as usize) {
            Some(true) if self.tape.type_of(value) == ty => Ok(()),
            Some(true) => Err(Why::Operands),
            _ => Err(Why::Undefined(format!("value {}", value.0))),
        }
    }

    fn op(&self, op: &Op, in_sweep: bool) -> Result<(), Why> {
        let signature = op.code.signature();
        let typed = |value: Option<Value>| value.map(|v| self.tape.type_of(v));
        if signature.columns().count() != op.columns.len()
            || typed(op.out) != signature.out
            || op.blocks.iter().any(|b| typed(b.binds) != signature.binds)
            || op.blocks.len() != op.code.blocks()
        {
            return Err(Why::Operands);
        }
        for (&id, (need, _)) in op.columns.iter().zip(signature.columns()) {
            memory(self.tape, id, need)?;
        }
        let more = if signature.operands.contains(&Operand::Values) { self.width(op) } else { 0 };
        if op.args.len() != signature.args().count() + more {
            return Err(Why::Operands);
        }
        let types = signature.args().chain(std::iter::repeat(Type::Vector));
        for (&value, ty) in op.args.iter().zip(types) {
            self.used(value, ty)?;
        }
        let whole = |(_, role)| matches!(role, Role::WholeRead | Role::WholeWrite);
        let one = op.code == OpCode::Synchronise || op.code.blocks() > 0;
        if in_sweep && (one || signature.columns().any(whole)) {
            return Err(Why::InsideSweep);
        }
        if !in_sweep && op.code.on_lanes() {
            return Err(Why::OutsideSweep);
        }
        self.constants(op)
    }

    fn width(&self, op: &Op) -> usize {
        match op.columns.last().map(|&id| self.tape.column(id).kind) {
            Some(Kind::List { width }) => width,
            _ => 0,
        }
    }

    /// Checks the constants of a search, whose last columns are the links and the ids of slots.
    fn links(&self, op: &Op, links: Links) -> Result<(), Why> {
        let planes = op.columns.iter().rev().map(|&id| self.tape.column(id).len);
        let fits = planes.take(2).eq([links.slots, 1 << links.position_bits]);
        if fits && links.retries <= MAX_RETRIES { Ok(()) } else { Err(Why::Operands) }
    }

    fn constants(&self, op: &Op) -> Result<(), Why> {
        let column = || self.tape.column(op.columns[0]);
        match op.code {
            OpCode::Shr(bits) if bits > 31 => Err(Why::Bits),
            // `low_bits` of 32 bits becomes this mask where overflow is not checked.
            OpCode::AndTo(0) => Err(Why::Bits),
            OpCode::Madd(p, q) if [p, q].iter().any(|n| !(0..1 << 15).contains(n)) => {
                Err(Why::Multipliers(p, q))
            }
            OpCode::Item(n) | OpCode::CopyOutList(n) if n >= self.width(op) => {
                Err(Why::ListColumn(n, self.width(op)))
            }
            OpCode::MapLife if column().len != self.tape.column(op.columns[1]).len => {
                Err(Why::Operands)
            }
            OpCode::Find(links) | OpCode::FindFree(links) => self.links(op, links),
            OpCode::StepLife(rule) => idempotent(&rule),
            _ => Ok(()),
        }
    }
}

fn memory(tape: &Tape, id: ColumnId, need: Need) -> Result<(), Why> {
    let column = tape.columns.get(id.0 as usize).ok_or(Why::Operands)?;
    let ranges = match (need, column.kind) {
        (Need::Life, Kind::Life) => Some(0),
        (Need::Words, Kind::Words) | (Need::Single, Kind::List { width: 1 }) => Some(1),
        (Need::Input, Kind::Input | Kind::Output) | (Need::Output, Kind::Output) => Some(1),
        (Need::List, Kind::List { width }) => Some(width),
        _ => None,
    };
    let fits = ranges == Some(column.ranges.len());
    fits.then_some(()).ok_or_else(|| Why::Memory(column.name.clone()))
}

fn idempotent(rule: &Rule) -> Result<(), Why> {
    let next = |byte| rule.next(byte);
    let broken = (i8::MIN..=i8::MAX).find(|&byte| next(next(byte)) != next(byte));
    broken.map_or(Ok(()), |byte| Err(Why::Rule(byte, next(byte), next(next(byte)))))
}
