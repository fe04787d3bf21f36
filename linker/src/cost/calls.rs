//! How much work the calls are that an op was lowered to.
//!
//! What a tile of a sweep runs is read off the lowered kernel, barriers and flags included, so that the
//! model cannot drift from what is emitted; what depends on masks, and the helpers that work on whole
//! columns, are below, as `write/ascendc/stage_one.h.in` has them.

use super::{Unit, Work};
use crate::aiv::{Act, Call, Loop, Node, Pipe, Sync};
use crate::check::check;
use crate::lower::{LINES, lower};
use crate::record::record_stage_one;
use crate::replay::Ran;
use crate::sync::synchronise;
use crate::tape::{Block, Code, Op, Tape};
use crate::ub::{Plan, plan};
use crate::write::Failed;
use crate::write::kernels::{FRAME_BYTES, UB_BYTES};
use avsg_device::params::Params;

/// How lifetimes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// As emitted: a column of their own, halfs in UB: 128 to a repeat, compared as they are.
    Narrow,
    /// The top byte of the 32-bit words that the links are: no comparison but EQ, so a count takes a
    /// subtraction and a sign shift more; a write must read the word first.
    Packed,
}

/// A lowered kernel, ready to be counted.
pub struct Kernel {
    /// What is replayed: the tape that was lowered.
    pub tape: Tape,
    /// Where its buffers lie.
    pub plan: Plan,
    /// The calls of each sweep's tile, sweeps in the order of the tape.
    loops: Vec<Vec<Call>>,
}

impl Kernel {
    /// Lowers Stage One of a geometry.
    ///
    /// # Errors
    /// If it breaks a law, or does not fit UB.
    pub fn new(p: &Params) -> Result<Self, Failed> {
        let tape = record_stage_one(p)?;
        check(&tape)?;
        let mut kernel = lower(&tape)?;
        let plan = plan(&kernel, UB_BYTES - FRAME_BYTES)?;
        let mut body = std::mem::take(&mut kernel.body);
        synchronise(&mut body, &plan);
        let mut loops = Vec::new();
        tiles(&body, &mut loops);
        Ok(Self { tape: kernel.tape, plan, loops })
    }

    /// The calls of a sweep's tile; `None` for another op.
    pub fn calls(&self, sweep: &Op) -> Option<&[Call]> {
        fn find<'t>(block: &'t Block, all: &mut Vec<&'t Op>) {
            for op in &block.ops {
                all.extend((op.code == Code::Sweep).then_some(op));
                op.body.iter().for_each(|body| find(body, all));
            }
        }
        let mut sweeps = Vec::new();
        find(&self.tape.body, &mut sweeps);
        let at = sweeps.iter().position(|op| std::ptr::eq(*op, sweep))?;
        self.loops.get(at).map(Vec::as_slice)
    }

    /// The work of one execution.
    pub fn work(&self, run: &Ran<'_>, life: Life) -> Work {
        let (op, n) = (run.op, run.active as f64);
        let odd = (run.active % 2) as f64;
        let sync = Work::of(Unit::Syncs, 1.0);
        let scalars = |n: f64| Work::of(Unit::Scalars, n);
        let packed = f64::from(life == Life::Packed);
        // Passes over lifetimes, of `step` slots and so many ops each; packed, two more on words.
        let passes = |slots: usize, step: u32, ops: usize| {
            let step = step as usize;
            let once = match life {
                Life::Narrow => Work::chain(ops, step / 2),
                Life::Packed => Work::chain(ops + 2, step),
            };
            once * slots.div_ceil(step) as f64
        };
        // What comes is waited for, what goes is not.
        let dma = |words: usize, waits: f64| {
            let bytes = Work::of(Unit::Bytes, 4.0 * words as f64);
            Work::of(Unit::Dmas, 1.0) + bytes + Work::of(Unit::Waits, waits) + sync
        };
        let (tile, run_of, pass) = (self.plan.tile, self.plan.run, self.plan.pass);
        match op.code {
            Code::Sweep => {
                let calls = self.calls(op).unwrap_or_default();
                let (whole, rest) = (run.lanes / tile as usize, run.lanes % tile as usize);
                let last = if rest > 0 { of_calls(calls, rest) } else { Work::default() };
                scalars(1.0) + of_calls(calls, tile as usize) * whole as f64 + last
            }
            // Its head is among the calls; here only what the mask decides.
            Code::Scatter => scalars(2.0 * n + odd),
            Code::SetLife(_) => scalars((1.5 + packed) * n + 0.5 * odd),
            Code::StepLife(_) => scalars((3.0 + packed) * n) + Work::of(Unit::Gathers, 2.0 * n),
            // What comes on top where the list ends inside a block: two ops for the mask, and for each
            // column its last block, a copy of the value, one of what was packed, and two waits.
            Code::Append if !run.at.is_multiple_of(8) && op.args.len() > 2 => {
                let stage = Work::vector(1, 8) + Work::vector(1, run.lanes);
                let column =
                    stage + Work::chain(1, run.active) + Work::of(Unit::Barriers, 1.0) + sync;
                Work::vector(2, run.lanes.div_ceil(32)) + column * (op.args.len() - 2) as f64
            }
            Code::Lookup => {
                let wait = Work::of(Unit::Waits, run.lanes.div_ceil(64) as f64);
                scalars(run.lanes as f64) + dma(1, 0.0) * n + wait
            }
            Code::Age { settle: false } => passes(run.lanes, self.slots(), 2),
            Code::Age { .. } => passes(run.lanes, self.slots(), 2) + passes(run.lanes, pass, 3),
            // The search says how often it counts: a compare, a compaction, a look at how many.
            Code::Bisect => {
                let slots = self.slots();
                let looks = sync * f64::from(slots.div_ceil(pass));
                (passes(slots as usize, pass, 2) + looks) * run.lanes as f64
                    + Work::of(Unit::Barriers, 1.0)
            }
            Code::AppendLt | Code::AppendEq => {
                let runs = run.lanes.div_ceil(run_of as usize).max(1) as f64;
                // Numbers first; then of each run a fill, a compare and the list's last words at once, a
                // cast, the packing; the slots that were found become words of the list in three steps.
                let numbers = 1 + (run_of / tile).ilog2() as usize;
                let found = run.active.div_ceil(runs as usize);
                Work::chain(numbers, run_of as usize / 2 / numbers)
                    + (passes(run_of as usize, run_of, 2)
                        + Work::vector(2, 8)
                        + Work::chain(1, 8)
                        + Work::chain(3, found)
                        + sync)
                        * runs
            }
            Code::Peek => scalars(1.0),
            Code::Put if LINES.contains(&self.tape.column(op.columns[0]).name.as_str()) => {
                scalars(1.0)
            }
            Code::Put => scalars(1.0) + dma(1, 0.0),
            Code::Fetch => dma(run.lanes, 1.0),
            Code::Publish | Code::PublishList(_) => dma(run.lanes, 0.0),
            _ => Work::default(),
        }
    }

    fn slots(&self) -> u32 {
        self.tape.find("life").map_or(0, |life| self.tape.column(life).len)
    }
}

fn tiles(nodes: &[Node], loops: &mut Vec<Vec<Call>>) {
    for node in nodes {
        match node {
            Node::Loop(Loop { tiles: true, body, .. }) => {
                let call = |n: &Node| if let Node::Call(c) = n { Some(c.clone()) } else { None };
                loops.push(body.iter().filter_map(call).collect());
            }
            Node::Loop(Loop { body, .. }) => tiles(body, loops),
            Node::Call(_) | Node::Note(_) => {}
        }
    }
}

/// The work of calls on so many lanes; a look at GatherMask's count waits for it.
pub fn of_calls(calls: &[Call], lanes: usize) -> Work {
    let mut sum = Work::default();
    for call in calls {
        let name = call.text.split('(').next().unwrap_or_default();
        let bits = call.text.contains("whole / 16");
        let asks = ["+= Append(", "Close(", "Count("].iter().any(|name| call.text.contains(name));
        sum += Work::of(Unit::Syncs, f64::from(asks));
        for act in &call.acts {
            sum += match act {
                Act::Use { pipe: Pipe::V, .. } if name == "Gather" => {
                    Work::vector(1, 0) + Work::of(Unit::Gathers, lanes as f64)
                }
                Act::Use { pipe: Pipe::V, .. } => {
                    Work::vector(1, if bits { lanes.div_ceil(32) } else { lanes })
                }
                // Helpers that may do nothing work on whole columns; they are priced as ops.
                Act::Use { .. } | Act::Maybe(_) => Work::default(),
                Act::Sync(sync) => of_sync(*sync),
            };
        }
        sum += call.sync.iter().copied().map(of_sync).sum::<Work>();
    }
    sum
}

fn of_sync(sync: Sync) -> Work {
    match sync {
        Sync::Barrier(Pipe::V) => Work::of(Unit::Barriers, 1.0),
        Sync::Barrier(_) | Sync::Flag(..) => Work::of(Unit::Syncs, 1.0),
    }
}
