//! Counts the work of the calls that an operation was lowered to.
//!
//! The work of a tile of a sweep is counted on the lowered kernel, with its barriers and flags, so
//! that the model agrees with the emitted text. Work that depends on masks, and work of emitted
//! functions on whole columns, is counted beside the texts of those functions.

use super::setting::{Load, dma, scalars};
use super::{Unit, Work};
use crate::ascend::aiv::{
    Act, Call, CountRead, Function, Length, Node, Operation, Pipe, SELECT_SCRATCH, Sync, Tensor,
    Type, Vector, VectorOp, View, Width, ub,
};
use crate::ascend::functions::{append, life, lookup, scatter, search, victims};
use crate::ascend::limits::STAGE_ONE_BYTES;
use crate::ascend::stage_one::{Failed, placed};
use crate::ascend::sync::ordered;
use crate::ascend::ub::Plan;
use crate::record::record_stage_one;
use crate::replay::Execution;
use crate::tape::{Kind, Op, OpCode, Tape};
use avsg_device::params::Params;

pub use super::setting::{Life, Setting};

/// A lowered kernel whose work can be counted.
pub struct Kernel {
    /// The tape that was lowered, which a replay executes.
    pub tape: Tape,
    /// The addresses of its buffers.
    pub plan: Plan,
    /// The width and the calls of each sweep's loop, in the order of the tape.
    loops: Vec<(Width, Vec<Call>)>,
}

impl Kernel {
    /// Lowers Stage One of a geometry.
    ///
    /// # Errors
    /// If the kernel breaks a rule of the kernel language, or does not fit UB.
    pub fn new(p: &Params) -> Result<Self, Failed> {
        let (kernel, plan) =
            placed(p, &record_stage_one(p)?, STAGE_ONE_BYTES, CountRead::default())?;
        let tiles = kernel.body.iter().flat_map(Node::all).filter_map(|node| match node {
            Node::Loop(sweep) => Some((sweep.width()?, &sweep.body)),
            _ => None,
        });
        let calls = |body: &[Node]| body.iter().filter_map(Node::call).cloned().collect();
        let loops = tiles.map(|(width, body)| (width, calls(body))).collect();
        Ok(Self { loops, tape: kernel.tape, plan })
    }

    fn sweeps(&self) -> impl Iterator<Item = &Op> {
        self.tape.body.all().filter(|op| op.code == OpCode::Sweep)
    }

    /// Returns the calls of one iteration of a sweep; `None` for another operation.
    pub fn calls(&self, sweep: &Op) -> Option<&[Call]> {
        self.iteration(sweep).map(|(_, calls)| calls)
    }

    /// Returns the lanes of one iteration of a sweep, and its calls.
    fn iteration(&self, sweep: &Op) -> Option<(usize, &[Call])> {
        let at = self.sweeps().position(|op| std::ptr::eq(op, sweep))?;
        let (width, calls) = self.loops.get(at)?;
        let lanes = match width {
            Width::Tile => self.plan.tile,
            Width::Wide { .. } => self.plan.wide,
        };
        Some((lanes as usize, calls))
    }

    /// Returns the work of one execution of an operation.
    pub fn work(&self, run: &Execution<'_>, life: Life) -> Work {
        let op = run.op;
        let load = &Load { lanes: run.lanes, active: run.active, at: run.at };
        let setting = &self.setting(life);
        match op.code {
            OpCode::Sweep => {
                let Some((tile, calls)) = self.iteration(op) else { return Work::default() };
                let (whole, rest) = (run.lanes / tile, run.lanes % tile);
                let last = if rest > 0 { of_calls(calls, rest) } else { Work::default() };
                scalars(1.0) + of_calls(calls, tile) * whole as f64 + last
            }
            // The work that does not depend on the mask is counted with the calls of the sweep.
            OpCode::Scatter(_) if self.is_joined(op) => scatter::work_of_both(load),
            OpCode::Scatter(_) => scatter::work(load),
            OpCode::SetLife(_) => life::set_work(setting, load),
            OpCode::StepLife(_) => life::refresh_work(setting, load),
            OpCode::Append if self.appends_once(op) => Work::default(),
            OpCode::Append => append::tail_work(load, op.args.len() - 2),
            OpCode::Lookup => lookup::work(load),
            OpCode::Find(retries) => search::work(setting, load, true, retries as usize + 1),
            OpCode::FindFree(retries) => search::work(setting, load, false, retries as usize + 1),
            OpCode::Age(settle) => life::decay_work(setting, load, settle),
            OpCode::Threshold => victims::find_threshold_work(setting, load),
            OpCode::AppendLt | OpCode::AppendEq => victims::append_slots_work(setting, load),
            OpCode::ReadOutput => scalars(1.0),
            OpCode::WriteOutput if self.tape.column(op.columns[0]).resident => scalars(1.0),
            OpCode::WriteOutput => scalars(1.0) + dma(1, 0.0),
            // A copy of no elements has no latency.
            OpCode::Fetch => dma(run.lanes, f64::from(run.lanes > 0)),
            OpCode::Publish | OpCode::PublishList(_) => dma(run.lanes, 0.0),
            _ => Work::default(),
        }
    }

    fn setting(&self, life: Life) -> Setting {
        let slots = self.tape.columns.iter().find(|c| c.kind == Kind::Life).map_or(0, |c| c.len);
        let Plan { tile, slot_tile, life_tile, .. } = self.plan;
        let search_words = self.plan.search_words();
        Setting { life, slots, tile, slot_tile, life_tile, search_words }
    }

    /// Returns the width and the calls of the sweep that contains an operation.
    fn sweep_of(&self, op: &Op) -> Option<&(Width, Vec<Call>)> {
        let inside = |sweep: &Op| {
            sweep.blocks.iter().flat_map(|body| &body.ops).any(|inner| std::ptr::eq(inner, op))
        };
        self.loops.get(self.sweeps().position(inside)?)
    }

    /// Returns whether a scatter was joined with another one.
    fn is_joined(&self, scatter: &Op) -> bool {
        let both =
            |call: &Call| call.function().is_some_and(|c| *c.function == scatter::SCATTER_BOTH);
        self.sweep_of(scatter).is_some_and(|(_, calls)| calls.iter().any(both))
    }

    /// Returns whether an append is in a wide sweep, which takes all lanes in one round and starts with
    /// an empty list.
    fn appends_once(&self, append: &Op) -> bool {
        self.sweep_of(append).is_some_and(|(width, _)| *width != Width::Tile)
    }
}

/// Returns the work of calls on `lanes` lanes.
pub fn of_calls(calls: &[Call], lanes: usize) -> Work {
    calls.iter().map(|call| of_call(call, lanes)).sum()
}

fn of_call(call: &Call, lanes: usize) -> Work {
    let mut sum: Work = call.sync.iter().copied().map(of_sync).sum();
    if let Operation::Vector(vector) = &call.operation {
        return sum + of_vector(vector, lanes);
    }
    let acts = call.acts_with(&|function| ordered(function, CountRead::default()));
    let acts: Vec<Act> = acts.into_iter().flat_map(first).collect();
    let vectors = acts.iter().filter(|act| matches!(act, Act::Use { pipe: Pipe::V, .. })).count();
    let compactions = call.function().map_or(0, |call| compactions(call.function));
    sum += Work::compaction(lanes) * compactions as f64;
    // A function compacts before its other instructions, and one act may stand for two compactions.
    let mut compacted = compactions.min(vectors);
    for act in acts {
        sum += match act {
            Act::Use { pipe: Pipe::V, .. } if compacted > 0 => {
                compacted -= 1;
                Work::default()
            }
            Act::Use { pipe: Pipe::V, writes, .. } if writes.contains(&ub(SELECT_SCRATCH)) => {
                Work::select(lanes)
            }
            Act::Use { pipe: Pipe::V, .. } => Work::vector(1, lanes),
            // Functions with optional acts work on whole columns, and `Kernel::work` counts them.
            Act::Use { .. } | Act::Either(..) => Work::default(),
            Act::Sync(sync) => of_sync(sync),
        };
    }
    sum
}

/// Returns the effects that happen where lists end with a block, and loops over whole columns do not
/// run.
fn first(act: Act) -> Vec<Act> {
    match act {
        Act::Either(acts, _) => acts.into_iter().flat_map(first).collect(),
        act => vec![act],
    }
}

/// Returns the number of GatherMasks that a function of a sweep runs on the lanes of a tile.
pub fn compactions(function: &Function) -> usize {
    match function {
        h if *h == scatter::SCATTER_MASKED => 2,
        h if [&append::COUNT, &append::APPEND, &append::APPEND_IN_PLACE].contains(&h) => 1,
        h if [&life::SET_LIFETIME_MASKED, &life::REFRESH_LIFETIME_MASKED].contains(&h) => 1,
        _ => 0,
    }
}

fn of_vector(vector: &Vector, lanes: usize) -> Work {
    let half = |tensor: &Tensor| tensor.view == View::F16;
    let halves = vector.scalar.as_ref().is_some_and(|scalar| scalar.ty == Type::F16)
        || [&vector.to].into_iter().chain(&vector.from).any(half);
    let words = if halves { lanes.div_ceil(2) } else { lanes };
    match (vector.op, &vector.over) {
        (VectorOp::Gather, _) => Work::vector(1, 0) + Work::of(Unit::Gathers, lanes as f64),
        (VectorOp::Select, _) => Work::select(words),
        (_, Length::MaskWords) => Work::vector(1, lanes.div_ceil(32)),
        _ => Work::vector(1, words),
    }
}

fn of_sync(sync: Sync) -> Work {
    match sync {
        Sync::Barrier(Pipe::V) => Work::of(Unit::Barriers, 1.0),
        Sync::Barrier(_) | Sync::Flag(..) => Work::of(Unit::Syncs, 1.0),
    }
}
