//! The steps of the paper as headings, by what an op does to which columns.

use super::Lower;
use crate::tape::{Code, Op, Value};
use std::mem::discriminant;

impl Lower<'_> {
    /// The paper's name for what begins here.
    pub(super) fn step(&self, op: &Op) -> Option<&'static str> {
        let column = |op: &Op, n: usize| op.columns.get(n).map(|&c| &*self.tape.column(c).name);
        let has = |code: Code, name: &str| {
            let same = |op: &Op| discriminant(&op.code) == discriminant(&code);
            let on = |op: &Op| (0..op.columns.len()).any(|n| column(op, n) == Some(name));
            op.all().any(|op| same(op) && on(op))
        };
        let of_list = |n: Value| self.defs.get(&n).is_none_or(|need| need.code == Code::Len);
        let (store, load, item, append) = (Code::Store, Code::Load, Code::Item(0), Code::Append);
        let lives = || has(Code::SetLife(0), "life") || has(Code::StepLife(0), "life");
        Some(match op.code {
            Code::Age { .. } => "Decay: one step older.",
            Code::Sweep if has(store, "wanted") => {
                "Probe, shared: this core's part of the token, and then the others'."
            }
            Code::Collect => "What the cores did not find of a shared token.",
            Code::Sweep if has(append, "void") => {
                "Probe, first round: which ids does the Hash-State hold?"
            }
            Code::Bisect if !of_list(op.args[1]) => {
                "Deferral: a life that bounds the victims'; hits above it can wait."
            }
            Code::Bisect => "CollectDead: the slots that live least, as many as there are misses.",
            Code::AppendLow => "Deferral: hits up to there, which must not wait.",
            Code::Publish if column(op, 0) == Some("gm_slot") => "The token's slots.",
            Code::PublishList(_) if column(op, 0) == Some("gm_miss_id") => "The token's misses.",
            Code::Sweep if self.depth == 1 && lives() && self.of_new_slots(op) => {
                "UpdateState: lifetimes of new slots, unless they wait too."
            }
            Code::Sweep if self.depth == 1 && has(item, "dead") && !has(item, "miss") => {
                "Refresh: if those are few, only they."
            }
            Code::Sweep if has(store, "id") && has(load, "id") => {
                "Invalidate: rows that were not final before this step."
            }
            Code::Sweep if has(store, "id") => "Reset, if the generation is another one.",
            Code::Sweep if has(load, "slot") && lives() => "Refresh: hits live on.",
            Code::Sweep if has(append, "miss") => "Locate: the host row of each miss.",
            Code::Sweep if self.depth == 1 && has(item, "dead") => {
                "UpdateState: victims take the misses."
            }
            Code::Sweep if has(Code::Scatter, "link") => {
                "The claimed links: of two claims the later stays."
            }
            Code::Sweep if has(append, "dead") => "Those whose link went to a later claim.",
            Code::Repeat { .. } if self.depth == 1 && has(Code::Take, "pending") => {
                "Probe, later rounds: what is still pending is the miss list."
            }
            Code::Repeat { .. } if self.depth == 1 && has(append, "claim") => {
                "UpdateState: a link for every miss; once more for those that lost theirs."
            }
            _ => return None,
        })
    }

    /// Whether a sweep goes over all new slots or none: so many times whether it is a token's turn.
    fn of_new_slots(&self, sweep: &Op) -> bool {
        let factor = |op: &Op| op.args.get(1).and_then(|v| self.defs.get(v)).map(|op| op.code);
        let n = self.defs.get(&sweep.args[0]).filter(|op| op.code == Code::ScalarMul);
        n.and_then(factor).is_some_and(|code| matches!(code, Code::IfNe(_)))
    }
}
