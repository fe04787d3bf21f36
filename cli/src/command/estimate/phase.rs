//! The work of a recorded Stage One by the steps that its tape names.

use std::collections::HashMap;

use avsg::device::machine::phase::Phase as Step;
use avsg_linker::cost::Work;
use avsg_linker::cost::calls::{Kernel, Life};
use avsg_linker::replay::Ran;
use avsg_linker::tape::{Block, Code, Op};

/// A phase of Stage One.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Before the first token: reset, invalidation, decay.
    Prologue,
    /// The first link of every id.
    Probe,
    /// The other links, of what is still pending; or what sharers left.
    Rounds,
    /// Host rows of the misses.
    Locate,
    /// Lifetimes of the hits, or of those that cannot wait, and which those are.
    Refresh,
    /// The victims.
    CollectDead,
    /// Slots and links of the misses.
    UpdateState,
    /// Results to global memory.
    Publish,
}

/// The phases, with their names.
pub const PHASES: [(Phase, &str); 8] = [
    (Phase::Prologue, "Reset, Invalidate, Decay"),
    (Phase::Probe, "Probe, round 0 or part"),
    (Phase::Rounds, "Probe, later rounds"),
    (Phase::Locate, "Locate"),
    (Phase::Refresh, "Refresh"),
    (Phase::CollectDead, "CollectDead"),
    (Phase::UpdateState, "UpdateState"),
    (Phase::Publish, "Publish"),
];

/// Which phase an op belongs to. Ops are told apart by where they lie in memory: a tape is borrowed as
/// long as anything refers to it.
pub struct Phases<'t> {
    kernel: &'t Kernel,
    of: HashMap<*const Op, Phase>,
}

impl<'t> Phases<'t> {
    /// Sorts the ops of a Stage One: each belongs to the step that was named last before it; what goes to global
    /// memory is [`Phase::Publish`].
    pub fn new(kernel: &'t Kernel) -> Self {
        let mut phases = Self { kernel, of: HashMap::new() };
        phases.block(&kernel.tape.body, &mut Phase::Prologue);
        phases
    }

    fn block(&mut self, block: &'t Block, phase: &mut Phase) {
        for op in &block.ops {
            if let Code::Phase(step, _) = op.code {
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
            let publishes = matches!(op.code, Code::Publish | Code::PublishList(_));
            self.of.insert(std::ptr::from_ref(op), if publishes { Phase::Publish } else { *phase });
            op.body.iter().for_each(|body| self.block(body, phase));
        }
    }

    /// The phase of an op of this tape.
    pub fn of(&self, op: &Op) -> Phase {
        self.of.get(&std::ptr::from_ref(op)).copied().unwrap_or(Phase::Prologue)
    }

    /// What ran, as work by phase.
    pub fn work(&self, ran: &[Ran<'_>], life: Life) -> [Work; PHASES.len()] {
        let mut sum = [Work::default(); PHASES.len()];
        for run in ran {
            sum[self.of(run.op) as usize] += self.kernel.work(run, life);
        }
        sum
    }
}

#[cfg(test)]
mod tests;
