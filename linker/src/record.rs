//! Recording: a machine that runs nothing and writes down what a kernel asks for.
//!
//! A [`Recording`] holds the growing tape; [`Recorder`] is the machine, a token that refers to it.
//! The kernel runs once, and each body of a `sweep`, `repeat`, `when` or `bisect` twice: a kernel that
//! carries a value round a loop in a Rust variable, or swaps two lists by `mem::swap`, records
//! something else the second time, and is refused. Native code would run such a loop as written,
//! and a tape could not.

mod machine;
mod operators;
mod stage_one;

pub use operators::{Mask, Scalar, Vector};
pub use stage_one::{record_scheduled, record_stage_one};

use crate::check::{Refused, Why};
use crate::tape::{Block, Column, ColumnId, Kind, Op, OpCode, Range, Tape, Type, Value};
use std::cell::{RefCell, RefMut};

/// A tape that is being recorded.
pub struct Recording(RefCell<Growing>);

struct Growing {
    tape: Tape,
    /// Blocks that are open, the innermost last; the kernel's own is the first.
    open: Vec<Vec<Op>>,
    /// [`TRIAL`] in a trial run of a body, else 0.
    mark: u32,
    /// The first thing that went wrong; the checker cannot see it in the tape.
    wrong: Option<Refused>,
}

/// What a method of the machine gives back: the value that its op defines, or nothing.
pub trait Defined<'t> {
    /// Names it for the kernel.
    fn of(m: Recorder<'t>, value: Option<Value>) -> Self;
}

impl Defined<'_> for () {
    fn of(_: Recorder<'_>, _: Option<Value>) {}
}

/// The recording machine.
#[derive(Clone, Copy)]
pub struct Recorder<'t>(&'t Recording);

/// A sweep's position.
#[derive(Clone, Copy)]
pub struct Tile {
    value: Value,
}
/// A column of words.
pub struct Words(ColumnId);
/// A lifetime column.
pub struct Life(ColumnId);
/// A list.
pub struct List<const W: usize>(ColumnId);
/// Global memory to read.
pub struct Input(ColumnId);
/// Global memory to write.
pub struct Output(ColumnId);

impl Recording {
    /// An empty tape.
    pub fn new(name: &str) -> Self {
        let tape = Tape { name: name.into(), ..Tape::default() };
        Self(RefCell::new(Growing { tape, open: vec![Vec::new()], mark: 0, wrong: None }))
    }

    /// The machine that records onto it.
    pub fn recorder(&self) -> Recorder<'_> {
        Recorder(self)
    }

    /// The tape.
    ///
    /// # Errors
    /// If a loop's body recorded two different things.
    pub fn finish(self) -> Result<Tape, Refused> {
        let Growing { mut tape, mut open, wrong, .. } = self.0.into_inner();
        tape.body.ops = open.pop().unwrap_or_default();
        wrong.map_or(Ok(tape), Err)
    }
}

impl<'t> Recorder<'t> {
    /// A column of `len` words in fast memory.
    pub fn column(self, name: &'static str, len: u32, range: Range) -> Words {
        Words(self.declare(name, Kind::Words, len, vec![(name, range)]))
    }

    /// A plane of a table: a column that stays while a request runs, and what its words are called.
    pub fn plane(self, name: &str, item: &'static str, len: u32, range: Range) -> Words {
        Words(self.stays(self.declare(name, Kind::Words, len, vec![(item, range)])))
    }

    /// A lifetime column of `slots` bytes.
    pub fn life(self, name: &str, slots: u32) -> Life {
        Life(self.stays(self.declare(name, Kind::Life, slots, Vec::new())))
    }

    /// A list of at most `len` entries: name and range of each column.
    pub fn list<const W: usize>(
        self,
        name: &str,
        len: u32,
        columns: [(&'static str, Range); W],
    ) -> List<W> {
        List(self.declare(name, Kind::List { width: W }, len, columns.to_vec()))
    }

    /// Global memory to read.
    pub fn input(self, name: &'static str, range: Range) -> Input {
        Input(self.declare(name, Kind::Input, 0, vec![(name, range)]))
    }

    /// Global memory to write.
    pub fn output(self, name: &'static str, range: Range) -> Output {
        Output(self.declare(name, Kind::Output, 0, vec![(name, range)]))
    }

    /// One line of 16 words in global memory, to write and to read back.
    pub fn line(self, name: &'static str, range: Range) -> Output {
        Output(self.stays(self.declare(name, Kind::Output, 0, vec![(name, range)])))
    }

    /// Says that a column stays while a request runs.
    fn stays(self, id: ColumnId) -> ColumnId {
        self.growing().tape.columns[id.0 as usize].stays = true;
        id
    }

    /// Says what a value is called.
    fn name(self, value: Value, name: &'static str) {
        self.growing().tape.names.push((value, name));
    }

    fn growing(self) -> RefMut<'t, Growing> {
        self.0.0.borrow_mut()
    }

    fn declare(
        self,
        name: &str,
        kind: Kind,
        len: u32,
        columns: Vec<(&'static str, Range)>,
    ) -> ColumnId {
        let mut g = self.growing();
        let (items, ranges) = columns.into_iter().unzip();
        g.tape.columns.push(Column { name: name.into(), kind, len, ranges, items, stays: false });
        ColumnId(number(g.tape.columns.len() - 1))
    }

    /// Records an op and gives back what it defines.
    fn op<O: Defined<'t>>(self, code: OpCode, args: &[Value], columns: &[ColumnId]) -> O {
        let op = Op { code, args: args.into(), columns: columns.into(), out: None, body: None };
        O::of(self, self.growing().write(op))
    }

    /// Records an op with a body.
    fn control<O: Defined<'t>>(
        self,
        code: OpCode,
        args: &[Value],
        mut body: impl FnMut(Option<Value>) -> Option<Value>,
    ) -> O {
        let start = self.growing().tape.types.len();
        let names = self.growing().tape.names.len();
        let outer = std::mem::replace(&mut self.growing().mark, TRIAL);
        let mut trial = self.block(code, &mut body);
        self.growing().tape.types.truncate(start);
        self.growing().tape.names.truncate(names);
        self.growing().mark = outer;
        let block = self.block(code, &mut body);
        let mut g = self.growing();
        let op = Op { code, args: args.into(), columns: Vec::new(), out: None, body: None };
        // In a trial run both runs are marked; the run that counts comes back here.
        if outer != TRIAL {
            unmark(&mut trial);
        }
        if trial != block && g.wrong.is_none() {
            g.wrong = Some(Refused::new(&g.tape, &op, Why::Carried));
        }
        // The second run is kept: a value that leaks out of the body is the second run's.
        O::of(self, g.write(Op { body: Some(block), ..op }))
    }

    /// Records one run of a body.
    fn block(self, code: OpCode, body: &mut impl FnMut(Option<Value>) -> Option<Value>) -> Block {
        self.growing().open.push(Vec::new());
        let binds = code.signature().binds.map(|ty| self.growing().value(ty));
        // Not borrowed here: the body records.
        let yields = body(binds);
        let ops = self.growing().open.pop().unwrap_or_default();
        Block { binds, ops, yields }
    }

    fn rule(self, rule: &[i8; 256]) -> usize {
        let rules = &mut self.growing().tape.rules;
        rules.iter().position(|r| r == rule).unwrap_or_else(|| {
            rules.push(*rule);
            rules.len() - 1
        })
    }
}

impl Growing {
    fn value(&mut self, ty: Type) -> Value {
        self.tape.types.push(ty);
        Value(number(self.tape.types.len() - 1) | self.mark)
    }

    /// Puts an op into the innermost block, and names the value that it defines.
    fn write(&mut self, op: Op) -> Option<Value> {
        let out = op.code.signature().out.map(|ty| self.value(ty));
        self.open.last_mut().expect("the kernel's block stays open").push(Op { out, ..op });
        out
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("a tape has less than 2^31 values")
}

/// Marks the values of a trial run, so that the run that counts cannot use one unnoticed.
const TRIAL: u32 = 1 << 31;

/// Takes the marks off a trial run's block.
fn unmark(block: &mut Block) {
    let values = block.ops.iter_mut().flat_map(|op| op.args.iter_mut().chain(&mut op.out));
    let values = values.chain(&mut block.binds).chain(&mut block.yields);
    values.for_each(|value| value.0 &= !TRIAL);
    block.ops.iter_mut().filter_map(|op| op.body.as_mut()).for_each(unmark);
}
