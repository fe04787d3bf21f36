//! The tape: a recorded kernel, as data.
//!
//! A tape is a list of named columns and parameters, and one block of ops. It describes all that a
//! kernel does, and does not depend on the width of a machine.
//!
//! **Values** are in static single assignment form: each is defined once, by the op that prints to
//! the left of `=`, by a parameter, or by the block that binds it. It has one of four types: `v`
//! vector, `m` mask, `s` scalar, `t` tile. A vector has one lane, and a mask one bit, per lane of
//! the sweep around it. A value may be used after its definition in the same block and in the
//! blocks nested in it, and nowhere else.
//!
//! **Columns** are the memory. They exist outside of blocks, and ops refer to them by name. A
//! *column* is 32-bit words in fast memory; a *life* column is one signed byte per slot; a *list*
//! is `width` columns with one common length, and empty when the kernel starts; *input* and
//! *output* are in global memory and as long as the memory that is bound to them. Every column of
//! words and every parameter declares a range. The code that binds memory must keep it, and
//! [`crate::check`] proves that the kernel keeps it.
//!
//! **Blocks** nest in four ops. `sweep n |t|` runs its block once per tile over lanes 0..n, in
//! order; the tile width is the machine's, so a tape that passed the checker gives the same result
//! for every width. `repeat n |s|` runs its block for s = 0..n in order. `when c` runs its block if
//! c, which is 0 or 1, is 1, and its second
//! block if not: a uniform branch.
//!
//! **Order.** Ops of a block run in order. Pure ops (arithmetic, masks, scalars) may run anywhere
//! between their operands and their uses; all others read or write columns and keep their order. A
//! load reads what earlier ops stored. Ops on whole columns (`age`, `copy_in`, `len`, …) are outside
//! of sweeps, ops on lanes inside.
//!
//! **Undefined words.** Words that nothing wrote, lanes past the length of a list, and words of a
//! column past those that the last sweep stored, or that the last copy in or search wrote, are poison. Arithmetic on poison gives
//! poison; an effect on a live lane must not depend on it. `avsg_device::machine` defines what each op
//! does to a defined lane; [`code`] defines its operands.

pub mod code;
pub(crate) mod operations;
mod text;

pub use code::{OpCode, Rule};

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
    /// One bit per lane.
    Mask,
    /// A 32-bit number, the same for all lanes.
    Scalar,
    /// A position in a sweep.
    Tile,
}

/// A range of numbers with both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Range {
    pub lo: i32,
    pub hi: i32,
}

impl Range {
    /// The range of all words.
    pub const ANY: Self = Self { lo: i32::MIN, hi: i32::MAX };
    /// The range of lifetimes.
    pub const LIFETIME: Self = Self { lo: -128, hi: 127 };

    /// Returns the range `lo..=hi`.
    pub fn new(lo: i32, hi: i32) -> Self {
        Self { lo, hi }
    }

    /// Returns whether the range contains a word.
    pub fn holds(self, word: i32) -> bool {
        (self.lo..=self.hi).contains(&word)
    }
}

/// The kind of memory of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Words in fast memory.
    Words,
    /// One signed byte per slot, in fast memory.
    Life,
    /// Columns in fast memory that grow together.
    List {
        /// The number of columns.
        width: usize,
    },
    /// Words in global memory that the kernel reads.
    Input,
    /// Words in global memory that the kernel writes and reads back.
    Output,
}

/// A named piece of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name, which is unique among columns and parameters.
    pub name: String,
    /// The kind of memory.
    pub kind: Kind,
    /// The number of words, of bytes for a life column, or of entries at most for a list; 0 in
    /// global memory, whose length is that of the bound memory.
    pub len: u32,
    /// The range of its words: one range, or `width` ranges for a list.
    pub ranges: Vec<Range>,
    /// The name of its words in the emitted text: one name for each range.
    pub items: Vec<&'static str>,
    /// Whether the column stays in fast memory while a request runs, as the planes of a table do.
    /// An output has it if it is one line of 16 words that is kept in fast memory.
    pub resident: bool,
    /// The parameter with the first word of such a line, if it is not the first word of the output.
    pub at: Option<Value>,
    /// The names of words of such a line in the emitted text.
    pub words: &'static [(i32, &'static str)],
}

impl Column {
    /// Returns whether the column is in global memory.
    pub fn is_global(&self) -> bool {
        matches!(self.kind, Kind::Input | Kind::Output)
    }

    /// Returns the name of an array in global memory without its prefix `gm_`, which tells it from a
    /// column in fast memory, and from a plane of the table.
    pub fn array(&self) -> &str {
        self.name.trim_start_matches("gm_")
    }
}

/// A scalar that the caller passes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Param {
    /// The name, which is unique among columns and parameters.
    pub name: String,
    pub doc: &'static str,
    /// The value that it defines.
    pub value: Value,
    pub range: Range,
}

/// One op with its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Op {
    /// The op, with the constants that it was recorded with.
    pub code: OpCode,
    pub args: Vec<Value>,
    pub columns: Vec<ColumnId>,
    pub out: Option<Value>,
    /// The blocks that an op of control runs: one, or two of a branch.
    pub blocks: Vec<Block>,
}

/// A list of ops in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Block {
    /// The value that the block binds: a tile in a sweep, a scalar in a repeat, else none.
    pub binds: Option<Value>,
    pub ops: Vec<Op>,
}

/// A recorded kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Tape {
    pub name: String,
    /// The columns and lists of the kernel, and its global memory.
    pub columns: Vec<Column>,
    pub params: Vec<Param>,
    /// The type of every value.
    pub types: Vec<Type>,
    /// The names of some values in the emitted text.
    pub names: Vec<(Value, &'static str)>,
    pub body: Block,
}

impl Op {
    /// Returns an op without operands.
    pub fn new(code: OpCode) -> Self {
        Self { code, args: Vec::new(), columns: Vec::new(), out: None, blocks: Vec::new() }
    }

    /// Adds a block.
    #[must_use]
    pub fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// Adds a value to the operands.
    #[must_use]
    pub fn arg(mut self, value: Value) -> Self {
        self.args.push(value);
        self
    }

    /// Adds a column to the operands.
    #[must_use]
    pub fn column(mut self, id: ColumnId) -> Self {
        self.columns.push(id);
        self
    }

    /// Returns the op and all ops in its block, in the order in which they print.
    pub fn all(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        Box::new(std::iter::once(self).chain(self.blocks.iter().flat_map(Block::all)))
    }
}

impl Block {
    /// Returns all ops of the block, and those of the blocks in it.
    pub fn all(&self) -> impl Iterator<Item = &Op> {
        self.ops.iter().flat_map(Op::all)
    }
}

impl Tape {
    /// Returns a column by its number.
    pub fn column(&self, id: ColumnId) -> &Column {
        &self.columns[id.0 as usize]
    }

    /// Returns the number of a column by its name.
    pub fn find(&self, name: &str) -> Option<ColumnId> {
        let at = self.columns.iter().position(|c| c.name == name)?;
        Some(ColumnId(u32::try_from(at).unwrap_or(u32::MAX)))
    }

    /// Returns the name of a value, if the kernel gave it one.
    pub fn name_of(&self, value: Value) -> Option<&'static str> {
        self.names.iter().find(|(named, _)| *named == value).map(|(_, name)| *name)
    }

    /// Returns the type of a value.
    pub fn type_of(&self, value: Value) -> Type {
        self.types[value.0 as usize]
    }
}
