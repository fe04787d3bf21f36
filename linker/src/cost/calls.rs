//! How much work the calls are that an op was lowered to.
//!
//! What a tile of a sweep runs is read off the lowered kernel, barriers and flags included, so that the
//! model cannot drift from what is emitted; what depends on masks, and what helpers do on whole
//! columns, stands beside the helpers' texts.

use super::setting::{Load, dma, scalars};
use super::{Unit, Work};
use crate::aiv::{
    Act, Asks, Call, Length, Loop, Node, Operation, Outcome, Pipe, Sync, Vector, VectorOp, Width,
};
use crate::ascendc::helpers::{append, life, lookup, scatter, search, victims};
use crate::ascendc::limits::{FRAME_BYTES, UB_BYTES};
use crate::ascendc::stage_one::{Failed, placed};
use crate::replay::Execution;
use crate::tape::{Kind, Op, OpCode, Tape};
use crate::ub::Plan;
use avsg_device::params::Params;

pub use super::setting::{Life, Setting};

/// A lowered kernel, ready to be counted.
pub struct Kernel {
    /// What is replayed: the tape that was lowered.
    pub tape: Tape,
    /// Where its buffers lie.
    pub plan: Plan,
    /// The calls of each sweep's tile, sweeps in the order of the tape.
    loops: Vec<(Width, Vec<Call>)>,
}

impl Kernel {
    /// Lowers Stage One of a geometry.
    ///
    /// # Errors
    /// If it breaks a law, or does not fit UB.
    pub fn new(p: &Params) -> Result<Self, Failed> {
        let (kernel, plan) = placed(p, UB_BYTES - FRAME_BYTES)?;
        let tiles = kernel.body.iter().flat_map(Node::all).filter_map(|node| match node {
            Node::Loop(Loop { width: Some(width), body, .. }) => Some((*width, body)),
            _ => None,
        });
        let calls = |body: &[Node]| body.iter().filter_map(Node::call).cloned().collect();
        let loops = tiles.map(|(width, body)| (width, calls(body))).collect();
        Ok(Self { loops, tape: kernel.tape, plan })
    }

    fn sweeps(&self) -> impl Iterator<Item = &Op> {
        self.tape.body.all().filter(|op| op.code == OpCode::Sweep)
    }

    /// The calls of one round of a sweep; `None` for another op.
    pub fn calls(&self, sweep: &Op) -> Option<&[Call]> {
        self.round(sweep).map(|(_, calls)| calls)
    }

    /// The lanes of one round of a sweep, and its calls.
    fn round(&self, sweep: &Op) -> Option<(usize, &[Call])> {
        let at = self.sweeps().position(|op| std::ptr::eq(op, sweep))?;
        let (width, calls) = self.loops.get(at)?;
        let lanes = match width {
            Width::Tile => self.plan.tile,
            Width::Wide { .. } => self.plan.wide,
        };
        Some((lanes as usize, calls))
    }

    /// The work of one execution.
    pub fn work(&self, run: &Execution<'_>, life: Life) -> Work {
        let op = run.op;
        let load = &Load { lanes: run.lanes, active: run.active, at: run.at };
        let setting = &self.setting(life);
        match op.code {
            OpCode::Sweep => {
                let Some((tile, calls)) = self.round(op) else { return Work::default() };
                let (whole, rest) = (run.lanes / tile, run.lanes % tile);
                let last = if rest > 0 { of_calls(calls, rest) } else { Work::default() };
                scalars(1.0) + of_calls(calls, tile) * whole as f64 + last
            }
            // Its head is among the calls of the sweep; here only what the mask decides.
            OpCode::Scatter if self.both(op) => scatter::work_of_both(load),
            OpCode::Scatter => scatter::work(load),
            OpCode::SetLife(_) => life::set_work(setting, load),
            OpCode::StepLife(_) => life::step_work(setting, load),
            OpCode::Append if self.appends_once(op) => Work::default(),
            OpCode::Append => append::tail_work(load, op.args.len() - 2),
            OpCode::Lookup => lookup::work(load),
            OpCode::Find(retries) => search::work(setting, load, true, retries as usize + 1),
            OpCode::FindFree(retries) => search::work(setting, load, false, retries as usize + 1),
            // A part out; when all have met, the whole row in.
            OpCode::Share if run.lanes > 0 => dma(run.active, 0.0) + dma(run.lanes, 1.0),
            OpCode::Age { settle } => life::age_work(setting, load, settle),
            OpCode::Bisect => victims::least_life_work(setting, load),
            OpCode::AppendLt | OpCode::AppendEq => victims::append_slots_work(setting, load),
            OpCode::ReadOutput => scalars(1.0),
            OpCode::WriteOutput if self.tape.column(op.columns[0]).resident => scalars(1.0),
            OpCode::WriteOutput => scalars(1.0) + dma(1, 0.0),
            // None is a no-op.
            OpCode::Fetch => dma(run.lanes, f64::from(run.lanes > 0)),
            OpCode::Publish | OpCode::PublishList(_) => dma(run.lanes, 0.0),
            _ => Work::default(),
        }
    }

    fn setting(&self, life: Life) -> Setting {
        let slots = self.tape.columns.iter().find(|c| c.kind == Kind::Life).map_or(0, |c| c.len);
        let Plan { tile, run, pass, .. } = self.plan;
        Setting { life, slots, tile, run, pass, span: self.plan.span() }
    }

    /// The width and the calls of the sweep that an op is in.
    fn sweep_of(&self, op: &Op) -> Option<&(Width, Vec<Call>)> {
        let inside = |sweep: &Op| {
            sweep.body.iter().flat_map(|body| &body.ops).any(|inner| std::ptr::eq(inner, op))
        };
        self.loops.get(self.sweeps().position(inside)?)
    }

    /// Whether a scatter shares its loop with another one.
    fn both(&self, scatter: &Op) -> bool {
        let both = |call: &Call| call.helper().is_some_and(|c| *c.helper == scatter::SCATTER_BOTH);
        self.sweep_of(scatter).is_some_and(|(_, calls)| calls.iter().any(both))
    }

    /// Whether an append is the only one to an empty list: a wide sweep takes all its lanes in one round.
    fn appends_once(&self, append: &Op) -> bool {
        self.sweep_of(append).is_some_and(|(width, _)| *width != Width::Tile)
    }
}

/// The work of calls on so many lanes; a look at GatherMask's count waits for it.
pub fn of_calls(calls: &[Call], lanes: usize) -> Work {
    calls.iter().map(|call| of_call(call, lanes)).sum()
}

fn of_call(call: &Call, lanes: usize) -> Work {
    let mut sum: Work = call.sync.iter().copied().map(of_sync).sum();
    if let Operation::Vector(vector) = &call.operation {
        return sum + of_vector(vector, lanes);
    }
    let asks = call.helper().is_some_and(|call| match call.helper.asks {
        Asks::Never => false,
        Asks::Always => true,
        Asks::IfTaken => call.outcome != Outcome::None,
    });
    sum += Work::of(Unit::Syncs, f64::from(asks));
    for act in call.acts() {
        sum += match act {
            Act::Use { pipe: Pipe::V, .. } => Work::vector(1, lanes),
            // Helpers that may do nothing work on whole columns; they are priced as ops.
            Act::Use { .. } | Act::Maybe(_) => Work::default(),
            Act::Sync(sync) => of_sync(sync),
        };
    }
    sum
}

fn of_vector(vector: &Vector, lanes: usize) -> Work {
    match (vector.op, &vector.over) {
        (VectorOp::Gather, _) => Work::vector(1, 0) + Work::of(Unit::Gathers, lanes as f64),
        (_, Length::MaskWords) => Work::vector(1, lanes.div_ceil(32)),
        _ => Work::vector(1, lanes),
    }
}

fn of_sync(sync: Sync) -> Work {
    match sync {
        Sync::Barrier(Pipe::V) => Work::of(Unit::Barriers, 1.0),
        Sync::Barrier(_) | Sync::Flag(..) => Work::of(Unit::Syncs, 1.0),
    }
}
