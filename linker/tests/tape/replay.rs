//! The interpreter, which defines what every op means.
//!
//! It executes a tape at any tile width over plain memory that is bound by name. It enforces laws 6
//! and 10 of the kernel language (`avsg_device::machine`): an overflow in a live lane, an effect
//! that depends on poison, a list that outgrows its columns, and an access outside of global memory
//! are a [`Fault`], which names the op.
//!
//! Lanes past the length of a sweep are not represented: a vector has as many lanes as its tile has
//! live ones. No op combines different lanes, so nothing could read the others. The words behind
//! those that a sweep stores, or that a copy in or a search writes, are poison to the end of the
//! column, because a machine may leave anything there. A working column of lifetimes is undefined until
//! an op maps lifetimes to it, and again when a round of a loop begins.

#[path = "replay/column_words.rs"]
mod column_words;
#[path = "replay/effects.rs"]
mod effects;
#[path = "replay/fault.rs"]
mod fault;
#[path = "replay/search.rs"]
mod search;
#[path = "replay/values.rs"]
mod values;

use avsg_linker::check::{self, Refused};
use avsg_linker::tape::{Block, ColumnId, Kind, Op, OpCode, Param, Range, Tape, Value};
use column_words::Memory;
use fault::{Lane, named};

pub use fault::Fault;

/// The position of a tile.
#[derive(Clone, Copy, Default)]
struct Tile {
    /// First lane.
    at: i32,
    /// Live lanes.
    live: i32,
}

/// A tape with its memory, ready to run.
pub struct Replay<'t> {
    tape: &'t Tape,
    width: usize,
    memory: Memory<'t>,
    /// The values by number: the live lanes of a vector, or of a mask, whose lanes are 0 and 1, and one
    /// lane of a scalar.
    values: Vec<Vec<Lane>>,
    tile: Tile,
}

impl<'t> Replay<'t> {
    /// Prepares a tape for running in tiles of `width` lanes; 0 counts as 1.
    ///
    /// # Errors
    /// If the tape is not well formed, or uses a column in two roles in one sweep.
    pub fn new(tape: &'t Tape, width: usize) -> Result<Self, Refused> {
        check::structure(tape)?;
        Ok(Self {
            tape,
            width: width.max(1),
            memory: Memory::new(tape),
            values: vec![Vec::new(); tape.types.len()],
            tile: Tile::default(),
        })
    }

    /// Sets a parameter.
    ///
    /// # Errors
    /// If no parameter has that name, or the value is out of its range.
    pub fn set(&mut self, name: &str, value: i32) -> Result<(), Fault> {
        let param = self.tape.params.iter().find(|p| p.name == name);
        let param = param.ok_or_else(|| named(name, "no such parameter".into()))?;
        if !param.range.holds(value) {
            return Err(named(name, format!("{value} is not in {}", param.range)));
        }
        self.values[param.value.0 as usize] = vec![Some(value)];
        Ok(())
    }

    /// Sets the words of a column, an input or an output, or the bytes of a lifetime column.
    ///
    /// # Errors
    /// If no such memory exists, a word is out of its range, or the length of a column differs.
    pub fn bind<W: Into<i32>>(&mut self, name: &str, words: Vec<W>) -> Result<(), Fault> {
        let id = self.find(name)?;
        let column = self.tape.column(id);
        let range = match (column.kind, &column.ranges[..]) {
            (Kind::Life, _) => Range::LIFETIME,
            // A word of an output may be any until it is read.
            (Kind::Output, _) => Range::ANY,
            (Kind::Words | Kind::Input, [range]) => *range,
            _ => return Err(named(name, "a list cannot be bound".into())),
        };
        let words: Vec<i32> = words.into_iter().map(Into::into).collect();
        if let Some(bad) = words.iter().find(|&&w| !range.holds(w)) {
            return Err(named(name, format!("the word {bad} is not in its range {range}")));
        }
        let (bound, len) = (words.len(), column.len as usize);
        if !column.is_global() && bound != len {
            return Err(named(name, format!("{bound} words were bound to a column of {len}")));
        }
        *self.memory.words(id) = words.into_iter().map(Some).collect();
        Ok(())
    }

    /// Returns the words of a column, an input or an output, or the bytes of a lifetime column. Undefined
    /// words are 0.
    ///
    /// # Errors
    /// If no such memory exists.
    pub fn take(&mut self, name: &str) -> Result<Vec<i32>, Fault> {
        let id = self.find(name)?;
        Ok(self.memory.words(id).iter().map(|word| word.unwrap_or_default()).collect())
    }

    fn find(&self, name: &str) -> Result<ColumnId, Fault> {
        self.tape.find(name).ok_or_else(|| named(name, "no such column".into()))
    }

    /// Runs the kernel once. Lists start empty, and columns keep their words from the previous run.
    ///
    /// # Errors
    /// Returns the first op that faults, or a parameter that was not set.
    pub fn run(&mut self) -> Result<(), Fault> {
        let unset = |p: &&Param| self.values[p.value.0 as usize].is_empty();
        if let Some(p) = self.tape.params.iter().find(unset) {
            return Err(named(&p.name, "the parameter was not set".into()));
        }
        self.memory.clear_lists();
        self.memory.forget_lifetimes();
        self.block(&self.tape.body)
    }

    fn block(&mut self, block: &'t Block) -> Result<(), Fault> {
        for op in &block.ops {
            match (&op.blocks[..], op.code) {
                ([body], OpCode::Repeat(max)) => self.repeat(op, body, max)?,
                ([body], _) => self.sweep(op, body)?,
                ([yes, no], _) => {
                    self.block(if self.scalar(op.args[0]) != 0 { yes } else { no })?;
                }
                // There are no other cores here.
                (_, OpCode::Phase(..) | OpCode::Synchronise) => {}
                _ => {
                    let done = match op.out {
                        Some(out) => self.define(op, out),
                        None => self.effect(op),
                    };
                    done.map_err(|what| Fault { op: self.tape.line(op), what })?;
                }
            }
        }
        Ok(())
    }

    fn sweep(&mut self, op: &'t Op, body: &'t Block) -> Result<(), Fault> {
        let n = self.scalar(op.args[0]).max(0);
        for op in body.ops.iter().filter(|op| op.code == OpCode::Store) {
            self.memory.forget(op.columns[0], n);
        }
        for at in (0..n).step_by(self.width) {
            let live = i32::try_from(self.width).unwrap_or(i32::MAX).min(n - at);
            self.tile = Tile { at, live };
            self.block(body)?;
        }
        Ok(())
    }

    fn repeat(&mut self, op: &'t Op, body: &'t Block, max: u32) -> Result<(), Fault> {
        let n = self.scalar(op.args[0]).min(i32::try_from(max).unwrap_or(i32::MAX));
        for r in 0..n {
            body.binds.iter().for_each(|out| self.values[out.0 as usize] = vec![Some(r)]);
            self.memory.forget_lifetimes();
            self.block(body)?;
        }
        Ok(())
    }

    fn lanes(&self, value: Value) -> &[Lane] {
        &self.values[value.0 as usize]
    }

    /// Returns a scalar. The checker has verified that its definition comes before.
    fn scalar(&self, value: Value) -> i32 {
        self.lanes(value)[0].unwrap_or_default()
    }
}
