//! Recording: a machine that computes nothing and writes down the operations of a kernel.
//!
//! A [`Recording`] holds the tape; [`Recorder`] is the machine, a token that refers to it. The
//! kernel runs once, and each body of a `sweep`, `repeat` or `when` runs twice: a kernel
//! that carries a value from round to round in a Rust variable, or swaps two lists by `mem::swap`,
//! records something else the second time, and is refused (law 4 of `avsg_device::machine`). Native
//! code would run such a loop as written, which a tape cannot express.

mod methods;
mod operators;
mod stage_one;

pub use operators::{Mask, Scalar, Vector};
pub use stage_one::{record_stage_one, record_with};

use crate::check::{Refused, Why};
use crate::tape::{Block, Column, ColumnId, Kind, Op, OpCode, Range, Tape, Type, Value};
use std::cell::{RefCell, RefMut};

/// A tape that is being recorded.
pub struct Recording(RefCell<Builder>);

struct Builder {
    tape: Tape,
    /// The blocks that are being recorded, the innermost last; the first is that of the kernel.
    blocks: Vec<Vec<Op>>,
    /// [`TRIAL`] while a body runs for the first time, else 0.
    mark: u32,
    /// The first error that the checker could not find in the tape.
    error: Option<Refused>,
}

/// The result of a method of the machine: the value that its op defines, or nothing.
pub trait Defined<'t> {
    /// Makes the result from the value.
    fn of(m: Recorder<'t>, value: Option<Value>) -> Self;
}

impl Defined<'_> for () {
    fn of(_: Recorder<'_>, _: Option<Value>) {}
}

/// The recording machine.
#[derive(Clone, Copy)]
pub struct Recorder<'t>(&'t Recording);

/// A tile.
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
/// An input in global memory.
pub struct Input(ColumnId);
/// An output in global memory.
pub struct Output(ColumnId);

impl Recording {
    /// Returns an empty recording.
    pub fn new(name: &str) -> Self {
        let tape = Tape { name: name.into(), ..Tape::default() };
        Self(RefCell::new(Builder { tape, blocks: vec![Vec::new()], mark: 0, error: None }))
    }

    /// Returns the machine that records.
    pub fn recorder(&self) -> Recorder<'_> {
        Recorder(self)
    }

    /// Returns the tape.
    ///
    /// # Errors
    /// If the two runs of a body recorded different ops.
    pub fn finish(self) -> Result<Tape, Refused> {
        let Builder { mut tape, mut blocks, error, .. } = self.0.into_inner();
        tape.body.ops = blocks.pop().unwrap_or_default();
        error.map_or(Ok(tape), Err)
    }
}

impl<'t> Recorder<'t> {
    /// Declares a column of `len` words in fast memory.
    pub fn column(self, name: &'static str, len: u32, range: Range) -> Words {
        Words(self.declare(name, Kind::Words, len, vec![(name, range)]))
    }

    /// Declares a plane of a table: a column that stays in fast memory while a request runs. `item`
    /// is the name of its words.
    pub fn plane(self, name: &str, item: &'static str, len: u32, range: Range) -> Words {
        Words(self.resident(self.declare(name, Kind::Words, len, vec![(item, range)])))
    }

    /// Declares the lifetimes of a table: a column of `slots` lifetimes that stays in fast memory
    /// while a request runs.
    pub fn life(self, name: &str, slots: u32) -> Life {
        Life(self.resident(self.working_life(name, slots).0))
    }

    /// Declares a working column of `slots` lifetimes.
    pub fn working_life(self, name: &str, slots: u32) -> Life {
        Life(self.declare(name, Kind::Life, slots, Vec::new()))
    }

    /// Declares a list of at most `len` entries, with the name and the range of each column.
    pub fn list<const W: usize>(
        self,
        name: &str,
        len: u32,
        columns: [(&'static str, Range); W],
    ) -> List<W> {
        List(self.declare(name, Kind::List { width: W }, len, columns.to_vec()))
    }

    /// Declares an output in global memory. It is an array if its name begins with `gm_`, and a plane of
    /// the table otherwise.
    pub fn output(self, name: &'static str, range: Range) -> Output {
        Output(self.declare(name, Kind::Output, 0, vec![(name, range)]))
    }

    /// Declares one line of 16 words in global memory, which the kernel writes and reads back. It is that
    /// from the word of a parameter on, if there is one.
    pub fn line(
        self,
        name: &'static str,
        at: Option<Value>,
        words: &'static [(i32, &'static str)],
    ) -> Output {
        let id = self.resident(self.declare(name, Kind::Output, 0, vec![(name, Range::ANY)]));
        let column = &mut self.builder().tape.columns[id.0 as usize];
        (column.at, column.words) = (at, words);
        Output(id)
    }

    /// Marks a column that stays in fast memory while a request runs.
    fn resident(self, id: ColumnId) -> ColumnId {
        self.builder().tape.columns[id.0 as usize].resident = true;
        id
    }

    fn builder(self) -> RefMut<'t, Builder> {
        self.0.0.borrow_mut()
    }

    fn declare(
        self,
        name: &str,
        kind: Kind,
        len: u32,
        columns: Vec<(&'static str, Range)>,
    ) -> ColumnId {
        let mut g = self.builder();
        let (items, ranges) = columns.into_iter().unzip();
        g.tape.columns.push(Column {
            name: name.into(),
            kind,
            len,
            ranges,
            items,
            resident: false,
            at: None,
            words: &[],
        });
        ColumnId(number(g.tape.columns.len() - 1))
    }

    /// Records an op and returns the value that it defines.
    fn op<O: Defined<'t>>(self, code: OpCode, args: &[Value], columns: &[ColumnId]) -> O {
        self.write(Op { args: args.into(), columns: columns.into(), ..Op::new(code) })
    }

    /// Writes an op down and returns the value that it defines.
    fn write<O: Defined<'t>>(self, op: Op) -> O {
        O::of(self, self.builder().write(op))
    }

    /// Records a body of an op.
    fn body(self, op: &Op, mut body: impl FnMut(Option<Value>)) -> Block {
        let start = self.builder().tape.types.len();
        let names = self.builder().tape.names.len();
        let outer = std::mem::replace(&mut self.builder().mark, TRIAL);
        let mut trial = self.block(op.code, &mut body);
        self.builder().tape.types.truncate(start);
        self.builder().tape.names.truncate(names);
        self.builder().mark = outer;
        let block = self.block(op.code, &mut body);
        let mut g = self.builder();
        // Within a trial run both runs are marked. The run that counts comes back here.
        if outer != TRIAL {
            unmark(&mut trial);
        }
        if trial != block && g.error.is_none() {
            g.error = Some(Refused::new(&g.tape, op, Why::Carried));
        }
        // The second run is kept, because a value that leaves the body belongs to the second run.
        block
    }

    /// Records one run of a body.
    fn block(self, code: OpCode, body: &mut impl FnMut(Option<Value>)) -> Block {
        self.builder().blocks.push(Vec::new());
        let binds = code.signature().binds.map(|ty| self.builder().value(ty));
        // The recording must not be borrowed here, because the body records.
        body(binds);
        let ops = self.builder().blocks.pop().unwrap_or_default();
        Block { binds, ops }
    }
}

impl Builder {
    fn value(&mut self, ty: Type) -> Value {
        self.tape.types.push(ty);
        Value(number(self.tape.types.len() - 1) | self.mark)
    }

    /// Adds an op to the innermost block, and returns the value that it defines.
    fn write(&mut self, op: Op) -> Option<Value> {
        let out = op.code.signature().out.map(|ty| self.value(ty));
        self.blocks
            .last_mut()
            .expect("the block of the kernel is never closed")
            .push(Op { out, ..op });
        out
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("a tape has less than 2^31 values")
}

/// The mark of values in a trial run. The checker refuses a value of the trial run that is used
/// later.
const TRIAL: u32 = 1 << 31;

/// Removes the marks from the block of a trial run.
fn unmark(block: &mut Block) {
    let values = block.ops.iter_mut().flat_map(|op| op.args.iter_mut().chain(&mut op.out));
    let values = values.chain(&mut block.binds);
    values.for_each(|value| value.0 &= !TRIAL);
    block.ops.iter_mut().flat_map(|op| &mut op.blocks).for_each(unmark);
}
