//! The paper's phases of a recorded Stage One, found by what its ops write.

use std::collections::HashMap;

use avsg_linker::cost::Work;
use avsg_linker::cost::calls::{Kernel, Life};
use avsg_linker::replay::Ran;
use avsg_linker::tape::{Code, Op};

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
    /// Sorts the ops of a Stage One. One that says nothing by itself belongs to what comes before it;
    /// the loop over tokens belongs to no phase, every statement in it to one as a whole.
    pub fn new(kernel: &'t Kernel) -> Self {
        let mut phases = Self { kernel, of: HashMap::new() };
        let mut phase = Phase::Prologue;
        for op in &kernel.tape.body.ops {
            phases.all(op, phase);
            if let (Code::Repeat { .. }, Some(body)) = (op.code, &op.body) {
                let bisects = body.ops.iter().rposition(|op| op.code == Code::Bisect);
                for (n, op) in body.ops.iter().enumerate() {
                    let early = op.code == Code::Bisect && Some(n) != bisects || asks_lives(op);
                    let written = if early { Some(Phase::Refresh) } else { phases.written(op) };
                    // Lifetimes behind the victims are those of new slots.
                    let new = written == Some(Phase::Refresh) && n > bisects.unwrap_or(n);
                    phase = if new { Phase::UpdateState } else { written.unwrap_or(phase) };
                    phases.all(op, phase);
                }
            }
        }
        phases
    }

    /// The phase of an op of this tape.
    pub fn of(&self, op: &Op) -> Phase {
        self.of.get(&std::ptr::from_ref(op)).copied().unwrap_or(Phase::Prologue)
    }

    fn all(&mut self, op: &'t Op, phase: Phase) {
        self.of.insert(std::ptr::from_ref(op), phase);
        op.body.iter().flat_map(|body| &body.ops).for_each(|op| self.all(op, phase));
    }

    /// The latest phase that writes what a statement writes.
    fn written(&self, op: &Op) -> Option<Phase> {
        let inner = op.body.iter().flat_map(|body| &body.ops).filter_map(|op| self.written(op));
        let column = op.columns.first().filter(|_| op.code.writes());
        let own = match (op.code, column.map(|&c| self.kernel.tape.column(c).name.as_str())) {
            (Code::Find(_) | Code::Share, _) => Some(Phase::Probe),
            (Code::Collect, _) | (Code::Append, Some("far")) => Some(Phase::Rounds),
            (Code::AppendLow, _) => Some(Phase::Refresh),
            (Code::Publish | Code::PublishList(_), _) => Some(Phase::Publish),
            (Code::Bisect | Code::Age { .. }, _) => Some(Phase::CollectDead),
            (Code::Put | Code::Clear, _) => None,
            (_, Some("way" | "new_link" | "open" | "open_next" | "at" | "id" | "link")) => {
                Some(Phase::UpdateState)
            }
            (_, Some("dead")) => Some(Phase::CollectDead),
            (_, Some("miss" | "outside")) => Some(Phase::Locate),
            (Code::SetLife(_) | Code::StepLife(_), _) => Some(Phase::Refresh),
            (Code::Take, _) | (Code::Append, Some("next")) => Some(Phase::Rounds),
            (_, Some("ids" | "part_way" | "wanted" | "pending" | "next" | "void")) => {
                Some(Phase::Probe)
            }
            _ => None,
        };
        inner.chain(own).max()
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

/// Whether a statement looks at single lifetimes: to find the hits that cannot wait.
fn asks_lives(op: &Op) -> bool {
    let body = op.body.iter().flat_map(|body| &body.ops);
    op.code == Code::Sweep && body.into_iter().any(|op| op.code == Code::LifeAt)
}

#[cfg(test)]
mod tests;
