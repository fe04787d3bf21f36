//! How much work the calls are that an op was lowered to.
//!
//! What a tile of a sweep runs is read off the lowered kernel, barriers and flags included, so that the
//! model cannot drift from what is emitted; what depends on masks, and the helpers that work on whole
//! columns, are below, as `write/ascendc/stage_one.h.in` has them.

use super::{Unit, Work};
use crate::aiv::{Act, Call, Loop, Node, Pipe, Sync};
use crate::lower::LINES;
use crate::replay::Ran;
use crate::tape::{Code, Op, Tape};
use crate::ub::Plan;
use crate::write::Failed;
use crate::write::kernels::{FRAME_BYTES, UB_BYTES};
use crate::write::stage_one::placed;
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
        let (kernel, plan) = placed(p, UB_BYTES - FRAME_BYTES)?;
        let tiles = kernel.body.iter().flat_map(Node::all).filter_map(|node| match node {
            Node::Loop(Loop { tiles: true, body, .. }) => Some(body),
            _ => None,
        });
        let calls = |body: &Vec<Node>| body.iter().filter_map(Node::call).cloned().collect();
        Ok(Self { loops: tiles.map(calls).collect(), tape: kernel.tape, plan })
    }

    fn sweeps(&self) -> impl Iterator<Item = &Op> {
        self.tape.body.all().filter(|op| op.code == Code::Sweep)
    }

    /// The calls of a sweep's tile; `None` for another op.
    pub fn calls(&self, sweep: &Op) -> Option<&[Call]> {
        let at = self.sweeps().position(|op| std::ptr::eq(op, sweep))?;
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
            // Its head is among the calls; here only what the mask decides. Two scatters together take three
            // accesses a lane, and five where they are no four.
            Code::Scatter if self.both(op) => scalars(1.5 * n + (run.active % 4) as f64),
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
            // As `Find` and `FindFree` look at all links of some ids at once.
            Code::Find(retries) | Code::FindFree(retries) => {
                let links = retries as usize + 1;
                let (chunk, _) = self.plan.search(retries + 1);
                let chunks = |n: usize| n.div_ceil(chunk as usize);
                let some = |at: usize| (run.lanes - at * chunk as usize).min(chunk as usize);
                let mut sum = Work::default();
                for step in (0..chunks(run.lanes)).map(|n| some(n).next_multiple_of(8)) {
                    sum += search(matches!(op.code, Code::Find(_)), links, step);
                }
                sum
            }
            // Six ops, a gather, and what is found closed up; or numbers, three ops and three lists.
            Code::AppendLow | Code::SortOut => {
                let (ops, gathers, barriers, looks) =
                    if op.code == Code::SortOut { (9, 0, 6, 2.0) } else { (7, 1, 7, 1.0) };
                let wide = self.plan.wide() as usize;
                let step = if run.lanes <= wide { wide } else { tile as usize };
                let pass = |lanes: usize| {
                    Work::vector(ops, lanes)
                        + Work::gathers(gathers, lanes)
                        + sync * looks
                        + Work::of(Unit::Barriers, f64::from(barriers))
                };
                (0..run.lanes).step_by(step).map(|at| pass(step.min(run.lanes - at))).sum()
            }
            // A part out; when all have met, the whole row in.
            Code::Share if run.lanes > 0 => dma(run.active, 0.0) + dma(run.lanes, 1.0),
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
            // None is a no-op.
            Code::Fetch => dma(run.lanes, f64::from(run.lanes > 0)),
            Code::Publish | Code::PublishList(_) => dma(run.lanes, 0.0),
            _ => Work::default(),
        }
    }

    /// Whether a scatter shares its loop with another one.
    fn both(&self, scatter: &Op) -> bool {
        let inside = |op: &&Op| {
            op.body.iter().flat_map(|body| &body.ops).any(|op| std::ptr::eq(op, scatter))
        };
        let calls = self.sweeps().find(inside).and_then(|sweep| self.calls(sweep));
        calls.is_some_and(|calls| calls.iter().any(|call| call.text.starts_with("ScatterBoth(")))
    }

    fn slots(&self) -> u32 {
        self.tape.find("life").map_or(0, |life| self.tape.column(life).len)
    }
}

/// One round of a search over `links` links of `step` ids each, as `Follow`, `Find` or `FindFree`, and `First` have
/// it: the ops over all of them, those over one link's, and the barriers between them.
fn search(find: bool, links: usize, step: usize) -> Work {
    let all = links * step;
    let halves = links.next_power_of_two().ilog2() as usize;
    let (wide, narrow, barriers) = if find {
        (6, 7 + 3 * links, 13 + links + halves)
    } else {
        (17, 14 + 2 * links, 24 + links + halves)
    };
    Work::vector(wide, all)
        + Work::vector(narrow, step)
        + Work::vector(halves, all / 2)
        + Work::vector(2, 0)
        + Work::of(Unit::Gathers, 2.0 * all as f64)
        + Work::of(Unit::Barriers, barriers as f64)
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
