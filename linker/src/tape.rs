//! The tape: a recorded kernel, as data.
//!
//! A tape is a list of named columns and parameters, and one block of ops. It says all that a kernel
//! does and nothing about how wide a machine is.
//!
//! **Values** are in static single assignment form: each is defined once, by the op that prints to
//! the left of `=`, by a parameter, or by the block that binds it. It has one of four types: `v`
//! vector, `m` mask, `s` scalar, `t` tile. A vector has one lane, and a mask one bit, per lane of
//! the sweep around it. A value may be used after its definition in the same block, and in blocks
//! nested below; never outside the block that defines it.
//!
//! **Columns** are the memory: they outlive blocks, and ops refer to them by name. A *column* is
//! 32-bit words in fast memory; a *life* column one signed byte per slot; a *list* `width` columns
//! that share one length, empty when the kernel starts; *input* and *output* lie in global memory
//! and are as long as what is bound to them. Every column of words declares the range of its words,
//! every parameter its own: whoever binds memory answers for it, and [`crate::check`] proves that
//! the kernel keeps it.
//!
//! **Blocks** nest in four ops. `sweep n |t|` runs its block once per tile over lanes 0..n, in
//! order; the tile width is the machine's, so a tape that passed the checker gives the same result
//! for every width. `repeat n |s|` runs its block for s = 0..n in order. `when c` runs its block if c, which
//! is 0 or 1, is 1: a uniform branch. `bisect` evaluates its
//! block, which has no effect, for some scalars and yields the smallest that suffices.
//!
//! **When ops run.** Ops of a block run in order. Pure ops (arithmetic, masks, scalars) may run
//! anywhere between their operands and their uses; all others read or write columns and keep
//! their order. A load sees what earlier ops stored. Ops on whole columns (`age`, `fetch`, `len`, …)
//! stand outside sweeps, ops on lanes inside.
//!
//! **Undefined words.** Words that nothing wrote, lanes past a list's length, and words of a column
//! past the length of the last sweep that stored it are poison. Poison spreads through arithmetic;
//! an effect on a live lane must not depend on it. What each op does to a defined lane is
//! [`crate::replay`]'s code; [`code`] says what operands it takes.

pub mod code;
mod text;

pub use code::OpCode;

/// A value, by its number in [`Tape::types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Value(pub u32);

/// A column, by its number in [`Tape::columns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ColumnId(pub u32);

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// 32-bit lanes.
    Vector,
    /// One bit a lane.
    Mask,
    /// A 32-bit number, the same for all lanes.
    Scalar,
    /// A position in a sweep.
    Tile,
}

/// Numbers between two ends, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub lo: i32,
    /// The largest.
    pub hi: i32,
}

impl Range {
    /// Any word.
    pub const ANY: Self = Self { lo: i32::MIN, hi: i32::MAX };

    /// `lo..=hi`.
    pub fn new(lo: i32, hi: i32) -> Self {
        Self { lo, hi }
    }

    /// `0..=n - 1`, the indices below n; `0..=0` for n = 0.
    pub fn below(n: u32) -> Self {
        Self { lo: 0, hi: i32::try_from(n).map_or(i32::MAX, |n| (n - 1).max(0)) }
    }

    /// Whether a word is inside.
    pub fn holds(self, word: i32) -> bool {
        (self.lo..=self.hi).contains(&word)
    }
}

/// What kind of memory a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Words in fast memory.
    Words,
    /// One signed byte per slot, in fast memory.
    Life,
    /// Columns in fast memory that grow together.
    List {
        /// How many.
        width: usize,
    },
    /// Words in global memory, to read.
    Input,
    /// Words in global memory, to write and read back.
    Output,
}

/// A named piece of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, unique among columns and parameters.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Words (bytes of a life column, most entries of a list); 0 in global memory: as bound.
    pub len: u32,
    /// The range of its words: one entry, `width` entries for a list.
    pub ranges: Vec<Range>,
    /// What its words are called: one name for each range.
    pub items: Vec<&'static str>,
    /// Whether it stays in fast memory while a request runs, as a table's planes do. In global memory: whether
    /// it is one line of 16 words, which is kept there so.
    pub stays: bool,
}

/// A scalar that the caller gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name, unique among columns and parameters.
    pub name: String,
    /// What it means.
    pub doc: &'static str,
    /// The value that it defines.
    pub value: Value,
    /// Its range.
    pub range: Range,
}

/// One op with its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// Which op, with the constants it was recorded with.
    pub code: OpCode,
    /// The values it reads.
    pub args: Vec<Value>,
    /// The columns it reads or writes.
    pub columns: Vec<ColumnId>,
    /// The value it defines.
    pub out: Option<Value>,
    /// What it runs, for ops of control.
    pub body: Option<Block>,
}

/// Ops in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// What the block binds: a tile in a sweep, a scalar in a repeat or bisection, else nothing.
    pub binds: Option<Value>,
    /// The ops.
    pub ops: Vec<Op>,
    /// The count that a bisection's block ends with.
    pub yields: Option<Value>,
}

/// A recorded kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tape {
    /// The kernel's name.
    pub name: String,
    /// Its memory.
    pub columns: Vec<Column>,
    /// Its scalars.
    pub params: Vec<Param>,
    /// The type of every value.
    pub types: Vec<Type>,
    /// What some values are called in the text that the tape becomes.
    pub names: Vec<(Value, &'static str)>,
    /// Tables of [`OpCode::StepLife`]: the next byte by the byte before, as unsigned.
    pub rules: Vec<[i8; 256]>,
    /// What it does.
    pub body: Block,
}

impl Op {
    /// The op, and all in its block, in the order in which they print.
    pub fn all(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        Box::new(std::iter::once(self).chain(self.body.iter().flat_map(Block::all)))
    }
}

impl Block {
    /// All ops, and those of the blocks in it.
    pub fn all(&self) -> impl Iterator<Item = &Op> {
        self.ops.iter().flat_map(Op::all)
    }
}

impl Tape {
    /// A column by number.
    pub fn column(&self, id: ColumnId) -> &Column {
        &self.columns[id.0 as usize]
    }

    /// A column by name.
    pub fn find(&self, name: &str) -> Option<ColumnId> {
        let at = self.columns.iter().position(|c| c.name == name)?;
        Some(ColumnId(u32::try_from(at).unwrap_or(u32::MAX)))
    }

    /// What a value is called, if the kernel said so.
    pub fn name_of(&self, value: Value) -> Option<&'static str> {
        self.names.iter().find(|(named, _)| *named == value).map(|(_, name)| *name)
    }

    /// The type of a value.
    pub fn type_of(&self, value: Value) -> Type {
        self.types[value.0 as usize]
    }

    /// How many ops there are, in all blocks.
    pub fn len(&self) -> usize {
        self.body.all().count()
    }

    /// Whether the kernel does nothing.
    pub fn is_empty(&self) -> bool {
        self.body.ops.is_empty()
    }
}
