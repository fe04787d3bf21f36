//! Verifies a tape before anything uses it. What passes, every back-end may assume:
//!
//! - values are defined once, before their use, in a block around it, and have the right types;
//! - ops on lanes stand in a sweep, ops on whole columns outside, no control op inside one, and a
//!   bisection's block has no effect, so that how often it runs cannot matter;
//! - constants are in range: shifts, `low`, `dot`, columns of lists; lifetime rules are idempotent;
//! - [`roles`]: in one sweep every column has one role, so the tile width cannot matter;
//! - [`ranges`]: no vector op overflows, and no column leaves its declared range.
//!
//! Left to replay: that run-time scalars do not overflow, that lists do not outgrow their columns,
//! that accesses to global memory are in bounds, and that nothing undefined is used.

pub mod ranges;
pub mod roles;

use avsg_device::params::MAX_RETRIES;

use crate::tape::code::{Need, Role, Signature};
use crate::tape::{Block, Column, ColumnId, Kind, Op, OpCode, Range, Tape, Type, Value};

/// A tape that breaks a law: which op, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel {tape}, `{op}`: {why}")]
pub struct Refused {
    /// The kernel.
    pub tape: String,
    /// The op as it prints.
    pub op: String,
    /// What is wrong with it.
    pub why: Why,
}

/// What is wrong with an op.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Why {
    #[error(
        "the body records something else the second time: \
         it carries a value or a list round the loop in a Rust variable"
    )]
    Carried,
    #[error("two columns or parameters are called `{0}`")]
    Name(String),
    #[error("{0} is not defined here: it left the block that defines it, or comes later")]
    Undefined(String),
    #[error("its operands or results do not fit the op")]
    Operands,
    #[error("`{0}` is the wrong kind of memory for it")]
    Memory(String),
    #[error("an op on lanes stands outside of any sweep")]
    OutsideSweep,
    #[error("inside a sweep it would run once per tile, and so depend on the tile width")]
    InsideSweep,
    #[error("a bisection's block may run any number of times, and must have no effect")]
    EffectInBisect,
    #[error("shifts go from 0 to 31, `low` takes 1 to 31 bits")]
    Bits,
    #[error(
        "madd takes multipliers from 0 to 32767, so that nothing overflows; these are {0} and {1}"
    )]
    Multipliers(i32, i32),
    #[error("column {0} of a list of {1}")]
    ListColumn(usize, usize),
    #[error("indices into `{0}` are reduced by a mask, but its {1} words are no power of two")]
    NotPowerOfTwo(String, u32),
    #[error("rule {0} is not idempotent: byte {1} becomes {2}, then {3}")]
    Rule(usize, i8, i8, i8),
    #[error("in this sweep `{0}` was {1:?} already and is now {2:?}; a column has one role")]
    TwoRoles(String, Role, Role),
    #[error(
        "in this sweep `{0}` was {1:?} already by another op; their order depends on the width"
    )]
    TwoWriters(String, Role),
    #[error("may overflow: its result may be {0}, up to {1}")]
    Overflow(i64, i64),
    #[error("`{0}` holds words in {1}, but this may be in {2}")]
    Range(String, Range, Range),
    #[error("takes {0}, but this may be in {1}")]
    Argument(Range, Range),
    #[error("may reach word {1} of `{0}`, which has {2}")]
    TooLong(String, i32, u32),
    #[error("the list it moves cannot share the storage of the one that takes it")]
    Storage,
}

impl Refused {
    pub(crate) fn new(tape: &Tape, op: &Op, why: Why) -> Self {
        Self { tape: tape.name.clone(), op: tape.line(op), why }
    }
}

/// Checks everything.
///
/// # Errors
/// The first op that breaks a law.
pub fn check(tape: &Tape) -> Result<(), Refused> {
    structure(tape)?;
    ranges::check(tape)
}

/// Checks all but [`ranges`]: what the interpreter needs, which faults on overflow by itself.
///
/// # Errors
/// The first op that breaks a law.
pub fn structure(tape: &Tape) -> Result<(), Refused> {
    names(tape)?;
    let mut scope = Scope { tape, defined: vec![false; tape.types.len()] };
    for p in &tape.params {
        let bound = scope.bind(Some(p.value)).and_then(|()| scope.used(p.value, Type::Scalar));
        bound.map_err(|why| declarations(tape, why))?;
    }
    scope.block(&tape.body, Within::Kernel)
}

fn declarations(tape: &Tape, why: Why) -> Refused {
    Refused { tape: tape.name.clone(), op: "its declarations".into(), why }
}

fn names(tape: &Tape) -> Result<(), Refused> {
    let columns = tape.columns.iter().map(|c| &c.name);
    let mut names: Vec<&String> = columns.chain(tape.params.iter().map(|p| &p.name)).collect();
    names.sort();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    twice.map_or(Ok(()), |pair| Err(declarations(tape, Why::Name(pair[0].clone()))))
}

/// What an op stands in.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Kernel,
    Sweep,
    Bisect,
}

struct Scope<'t> {
    tape: &'t Tape,
    /// Which values may be used at this place.
    defined: Vec<bool>,
}

impl Scope<'_> {
    fn block(&mut self, block: &Block, within: Within) -> Result<(), Refused> {
        let tape = self.tape;
        for op in &block.ops {
            let refused = |why| Refused::new(tape, op, why);
            self.op(op, within).map_err(refused)?;
            if let Some(body) = &op.body {
                let inner = match op.code {
                    OpCode::Sweep => Within::Sweep,
                    OpCode::Bisect => Within::Bisect,
                    _ => within,
                };
                let outer = self.defined.clone();
                self.bind(body.binds).map_err(refused)?;
                self.block(body, inner)?;
                let end = body.yields.map_or(Ok(()), |y| self.used(y, Type::Scalar));
                end.map_err(refused)?;
                self.defined = outer;
                if op.code == OpCode::Sweep {
                    roles::check(tape, body)?;
                }
            }
            self.bind(op.out).map_err(refused)?;
        }
        Ok(())
    }

    /// Makes a value usable; each is defined once.
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

    fn op(&self, op: &Op, within: Within) -> Result<(), Why> {
        let Signature { args, columns, out, binds } = op.code.signature();
        if columns.len() != op.columns.len() {
            return Err(Why::Operands);
        }
        for (&id, &(need, _)) in op.columns.iter().zip(columns) {
            memory(self.tape, id, need)?;
        }
        let more = if op.code == OpCode::Append { self.width(op) } else { 0 };
        if op.args.len() != args.len() + more {
            return Err(Why::Operands);
        }
        let types = args.iter().copied().chain(std::iter::repeat(Type::Vector));
        for (&value, ty) in op.args.iter().zip(types) {
            self.used(value, ty)?;
        }
        let body = op.body.as_ref();
        let typed = |value: Option<Value>| value.map(|v| self.tape.type_of(v));
        if typed(op.out) != out
            || typed(body.and_then(|b| b.binds)) != binds
            || body.is_some() != op.code.controls()
            || body.is_some_and(|b| b.yields.is_some()) != (op.code == OpCode::Bisect)
        {
            return Err(Why::Operands);
        }
        let whole = columns.iter().any(|c| matches!(c.1, Role::WholeRead | Role::WholeWrite));
        match within {
            Within::Sweep if whole || op.code.controls() => return Err(Why::InsideSweep),
            Within::Kernel | Within::Bisect if op.code.on_lanes() => return Err(Why::OutsideSweep),
            Within::Bisect if op.code.writes() || op.code.controls() => {
                return Err(Why::EffectInBisect);
            }
            _ => {}
        }
        self.constants(op)
    }

    fn width(&self, op: &Op) -> usize {
        match op.columns.last().map(|&id| self.tape.column(id).kind) {
            Some(Kind::List { width }) => width,
            _ => 0,
        }
    }

    fn constants(&self, op: &Op) -> Result<(), Why> {
        let column = || self.tape.column(op.columns[0]);
        match op.code {
            OpCode::Shr(bits) if bits > 31 => Err(Why::Bits),
            OpCode::Madd(p, q) if [p, q].iter().any(|n| !(0..1 << 15).contains(n)) => {
                Err(Why::Multipliers(p, q))
            }
            OpCode::LowBits(bits) if !(1..=31).contains(&bits) => Err(Why::Bits),
            OpCode::Item(n) | OpCode::PublishList(n) if n >= self.width(op) => {
                Err(Why::ListColumn(n, self.width(op)))
            }
            OpCode::Gather | OpCode::Scatter | OpCode::GatherLife | OpCode::SetLife(_) => {
                power(column())
            }
            OpCode::Find(retries) | OpCode::FindFree(retries) if retries > MAX_RETRIES => {
                Err(Why::Operands)
            }
            OpCode::Find(_) => power(self.tape.column(op.columns[3]))
                .and_then(|()| power(self.tape.column(op.columns[4]))),
            OpCode::FindFree(_) => power(self.tape.column(op.columns[2]))
                .and_then(|()| power(self.tape.column(op.columns[3]))),
            OpCode::StepLife(n) => {
                power(column())?;
                idempotent(n, self.tape.rules.get(n).ok_or(Why::Operands)?)
            }
            _ => Ok(()),
        }
    }
}

fn memory(tape: &Tape, id: ColumnId, need: Need) -> Result<(), Why> {
    let column = tape.columns.get(id.0 as usize).ok_or(Why::Operands)?;
    let ranges = match (need, column.kind) {
        (Need::Life, Kind::Life) => Some(0),
        (Need::Words, Kind::Words) | (Need::Single, Kind::List { width: 1 }) => Some(1),
        (Need::Input, Kind::Input) | (Need::Output, Kind::Output) => Some(1),
        (Need::List, Kind::List { width }) => Some(width),
        _ => None,
    };
    let fits = ranges == Some(column.ranges.len());
    fits.then_some(()).ok_or_else(|| Why::Memory(column.name.clone()))
}

fn power(column: &Column) -> Result<(), Why> {
    let power = column.len.is_power_of_two().then_some(());
    power.ok_or_else(|| Why::NotPowerOfTwo(column.name.clone(), column.len))
}

fn idempotent(n: usize, rule: &[i8; 256]) -> Result<(), Why> {
    let next = |byte: i8| rule[usize::from(byte.cast_unsigned())];
    let broken = (i8::MIN..=i8::MAX).find(|&byte| next(next(byte)) != next(byte));
    broken.map_or(Ok(()), |byte| Err(Why::Rule(n, byte, next(byte), next(next(byte)))))
}
