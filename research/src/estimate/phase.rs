//! The work of a recorded Stage One by phase; the tape names the phase of its ops.

use std::collections::HashMap;

use avsg::device::machine::phase::Phase as Step;
use avsg_linker::ascend::cost::Work;
use avsg_linker::ascend::cost::calls::{Kernel, Life};
use avsg_linker::replay::Execution;
use avsg_linker::tape::{Block, Op, OpCode};

/// A phase of Stage One.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Reset, invalidation and decay, before the first token.
    Prologue,
    /// The first link of every id, or with the operator's own schedule all links.
    Probe,
    /// The other links of the ids that are still pending, or the list of the ids that were not found.
    Rounds,
    /// The host rows of the misses.
    Locate,
    /// The lifetimes of the hits; with deferral, the selection of the hits that must be refreshed
    /// before victims are chosen, and their lifetimes.
    Refresh,
    /// The choice of victims.
    CollectDead,
    /// The slots and links of the misses.
    UpdateState,
    /// The transfer of results to global memory.
    Publish,
}

/// The phases and their names in the output.
pub const PHASES: [(Phase, &str); 8] = [
    (Phase::Prologue, "Reset, Invalidate, Decay"),
    (Phase::Probe, "Probe; the paper: first links"),
    (Phase::Rounds, "Pending ids; the paper: other links"),
    (Phase::Locate, "Locate"),
    (Phase::Refresh, "Refresh"),
    (Phase::CollectDead, "CollectDead"),
    (Phase::UpdateState, "UpdateState"),
    (Phase::Publish, "Publish"),
];

/// The phase of each op of a tape. The key of an op is its address, which is stable because the tape is
/// borrowed.
pub struct Phases<'t> {
    kernel: &'t Kernel,
    of: HashMap<*const Op, Phase>,
}

impl<'t> Phases<'t> {
    /// Assigns the ops of a Stage One: an op belongs to the phase that the tape named last before it.
    /// Ops that write to global memory belong to [`Phase::Publish`].
    pub fn new(kernel: &'t Kernel) -> Self {
        let mut phases = Self { kernel, of: HashMap::new() };
        phases.block(&kernel.tape.body, &mut Phase::Prologue);
        phases
    }

    fn block(&mut self, block: &'t Block, phase: &mut Phase) {
        for op in &block.ops {
            if let OpCode::Phase(step, _) = op.code {
                *phase = match step {
                    Step::Reset | Step::Invalidate | Step::Decay => Phase::Prologue,
                    Step::Probe => Phase::Probe,
                    Step::ProbePending => Phase::Rounds,
                    Step::Locate => Phase::Locate,
                    Step::Refresh => Phase::Refresh,
                    Step::CollectDead => Phase::CollectDead,
                    Step::UpdateState => Phase::UpdateState,
                };
            }
            let publishes = matches!(op.code, OpCode::Publish | OpCode::PublishList(_));
            self.of.insert(std::ptr::from_ref(op), if publishes { Phase::Publish } else { *phase });
            op.blocks.iter().for_each(|body| self.block(body, phase));
        }
    }

    /// Returns the phase of an op of this tape.
    pub fn of(&self, op: &Op) -> Phase {
        self.of.get(&std::ptr::from_ref(op)).copied().unwrap_or(Phase::Prologue)
    }

    /// Returns the work of the ops that ran, by phase.
    pub fn work(&self, ran: &[Execution<'_>], life: Life) -> [Work; PHASES.len()] {
        let mut sum = [Work::default(); PHASES.len()];
        for run in ran {
            sum[self.of(run.op) as usize] += self.kernel.work(run, life);
        }
        sum
    }
}

#[cfg(test)]
mod tests;
