//! The interpreter: what it does is what every op means (law 7).
//!
//! It executes a tape at any tile width over plain memory that is bound by name, and is as strict as
//! the laws allow: an overflow in a live lane, an effect that depends on poison, a list that outgrows
//! its columns, or an access outside of global memory is a [`Fault`], which names the op.
//!
//! Dead lanes, those past a sweep's length, are not represented at all: a vector has as many lanes
//! as its tile has live ones. No op combines different lanes, so nothing could read a dead one.
//! What a machine may leave behind the last lane of a stored column is poison to the column's end.

mod bind;
mod fault;
mod lanes;
mod memory;
mod search;
mod whole;

use crate::check::{self, Refused};
use crate::tape::{Block, Op, OpCode, Param, Tape, Value};
use fault::{Lane, named};
use memory::Memory;

pub use fault::Fault;

/// Where a sweep stands.
#[derive(Clone, Copy, Default)]
struct Tile {
    /// First lane.
    at: usize,
    /// Live lanes.
    live: usize,
    /// The sweep's length.
    n: usize,
}

/// One execution of an op, for whoever counts: see [`Replay::watch`].
#[derive(Clone, Copy, Debug)]
pub struct Ran<'t> {
    /// The op.
    pub op: &'t Op,
    /// Live lanes of its tile; the length of what an op on a whole column worked on, the bound of a
    /// sweep, the counts that a bisection starting at its hint takes.
    pub lanes: usize,
    /// The lanes under an effect's mask; how far lifetimes fell; the slots in a list that some were appended to.
    pub active: usize,
    /// How long the list was that lanes are appended to.
    pub at: usize,
}

/// A tape with its memory, ready to run.
pub struct Replay<'t> {
    tape: &'t Tape,
    width: usize,
    memory: Memory<'t>,
    /// Values by number; those of other types stay empty. A mask is a vector of 0 and 1.
    scalars: Vec<Option<i32>>,
    vectors: Vec<Vec<Lane>>,
    tile: Tile,
    ran: Option<Vec<Ran<'t>>>,
}

impl<'t> Replay<'t> {
    /// Prepares to run a tape in tiles of `width` lanes; 0 counts as 1.
    ///
    /// # Errors
    /// If the tape is not well formed, or uses a column in two roles in one sweep.
    pub fn new(tape: &'t Tape, width: usize) -> Result<Self, Refused> {
        check::structure(tape)?;
        let n = tape.types.len();
        Ok(Self {
            tape,
            width: width.max(1),
            memory: Memory::new(tape),
            scalars: vec![None; n],
            vectors: vec![Vec::new(); n],
            tile: Tile::default(),
            ran: None,
        })
    }

    /// From now on keeps what runs, op by op.
    pub fn watch(&mut self) {
        self.ran = Some(Vec::new());
    }

    /// What ran since the last call, in order; nothing without [`Self::watch`].
    pub fn ran(&mut self) -> Vec<Ran<'t>> {
        self.ran.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Sets a parameter.
    ///
    /// # Errors
    /// If there is none of that name, or the value is out of its range.
    pub fn set(&mut self, name: &str, value: i32) -> Result<(), Fault> {
        let param = self.tape.params.iter().find(|p| p.name == name);
        let param = param.ok_or_else(|| named(name, "no such parameter".into()))?;
        if !param.range.holds(value) {
            return Err(named(name, format!("{value} is not in {}", param.range)));
        }
        self.scalars[param.value.0 as usize] = Some(value);
        Ok(())
    }

    /// Runs the kernel once. Lists start empty; columns keep what they hold.
    ///
    /// # Errors
    /// The first op that faults, or a parameter that was not set.
    pub fn run(&mut self) -> Result<(), Fault> {
        let unset = |p: &&Param| self.scalars[p.value.0 as usize].is_none();
        if let Some(p) = self.tape.params.iter().find(unset) {
            return Err(named(&p.name, "the parameter was not set".into()));
        }
        self.memory.clear_lists();
        self.block(&self.tape.body)
    }

    fn block(&mut self, block: &'t Block) -> Result<(), Fault> {
        for op in &block.ops {
            match (&op.body, op.code) {
                (Some(body), OpCode::Sweep) => self.sweep(op, body)?,
                (Some(body), OpCode::Repeat { max }) => self.repeat(op, body, max)?,
                (Some(body), OpCode::When) if self.scalar(op.args[0]) != 0 => self.block(body)?,
                (Some(_), OpCode::When) => {}
                (Some(body), _) => self.bisect(op, body)?,
                (None, OpCode::Phase(..)) => {}
                (None, code) => {
                    let done = if code.on_lanes() { self.lanes(op) } else { self.whole(op) };
                    done.map_err(|what| Fault { op: self.tape.line(op), what })?;
                    if self.ran.is_some() {
                        let (lanes, active) = if code.on_lanes() {
                            (self.tile.live, self.masked(op))
                        } else {
                            self.extent(op)
                        };
                        self.note(op, lanes, active);
                    }
                }
            }
        }
        Ok(())
    }

    fn sweep(&mut self, op: &'t Op, body: &'t Block) -> Result<(), Fault> {
        let n = usize::try_from(self.scalar(op.args[0])).unwrap_or(0);
        self.note(op, n, 0);
        for at in (0..n).step_by(self.width) {
            self.tile = Tile { at, live: self.width.min(n - at), n };
            self.block(body)?;
        }
        Ok(())
    }

    fn repeat(&mut self, op: &'t Op, body: &'t Block, max: u32) -> Result<(), Fault> {
        let n = self.scalar(op.args[0]).min(i32::try_from(max).unwrap_or(i32::MAX));
        for r in 0..n {
            self.define(body.binds, r);
            self.block(body)?;
        }
        Ok(())
    }

    /// By halving, from the ends: the hint changes the cost only, and here there is none.
    fn bisect(&mut self, op: &'t Op, body: &'t Block) -> Result<(), Fault> {
        let need = self.scalar(op.args[1]);
        let (mut low, mut high) = (-128, if need <= 0 { -128 } else { 127 });
        while low < high {
            let t = i32::midpoint(low, high - 1);
            self.define(body.binds, t);
            self.block(body)?;
            if body.yields.map_or(0, |y| self.scalar(y)) >= need {
                high = t;
            } else {
                low = t + 1;
            }
        }
        self.define(op.out, high);
        let hint = self.scalar(op.args[0]);
        self.note(op, if need <= 0 { 0 } else { counts(hint, high) }, 0);
        Ok(())
    }

    fn note(&mut self, op: &'t Op, lanes: usize, active: usize) {
        let Some(ran) = &mut self.ran else { return };
        let grows = op.code == OpCode::Append;
        let at = if grows { self.memory.entries(op.columns[0]).len - active } else { 0 };
        ran.push(Ran { op, lanes, active, at });
    }

    /// A scalar. The checker saw that its definition comes before.
    fn scalar(&self, value: Value) -> i32 {
        self.scalars[value.0 as usize].unwrap_or_default()
    }

    fn define(&mut self, out: Option<Value>, value: i32) {
        if let Some(out) = out {
            self.scalars[out.0 as usize] = Some(value);
        }
    }
}

/// How often the emitted search counts until it knows the answer: at `hint`, beside it, then by halving.
fn counts(hint: i32, answer: i32) -> usize {
    let (mut low, mut high, mut counts) = (-128, 127, 0);
    let mut t = hint.clamp(-128, 126);
    while low < high {
        counts += 1;
        let enough = t >= answer;
        (low, high) = if enough { (low, t) } else { (t + 1, high) };
        let beside = if enough { high - 1 } else { low }.clamp(low, high);
        t = if counts == 1 { beside } else { low + (high - low) / 2 };
    }
    counts
}
