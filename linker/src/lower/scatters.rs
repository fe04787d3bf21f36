//! Writes at computed indices: lane by lane, in helpers. A 910B has no scatter.

use super::Lower;
use super::lanes::{BARRIER, TO_S, s, ub, v};
use crate::aiv::{Act, Node, Pipe, Place};
use crate::tape::{Code, Op, Value};

impl Lower<'_> {
    /// Whether a sign test is the same for all lanes: false.
    pub(super) fn everywhere(&self, test: Value) -> bool {
        let test = self.defs.get(&test).filter(|op| op.code == Code::Neg);
        test.is_some_and(|op| {
            !self.halves.contains(&op.args[0]) && self.ranges[op.args[0].0 as usize].lo >= 0
        })
    }

    pub(super) fn scatter(&mut self, op: &Op) {
        let a = &op.args[..];
        let column = self.storage(op.columns[0], 0);
        let to = Place::Ub(column.clone());
        let (packed, stage) = (ub("packed"), ub("stage"));
        let (text, acts) = match op.code {
            Code::Scatter if self.all.contains(&a[3]) => {
                let [(i, ip), (x, xp)] = [a[1], a[2]].map(|v| self.operand(v));
                if let Some(both) = self.both(&column, [&i, &x], [&ip, &xp]) {
                    both
                } else {
                    let text = format!("ScatterAll({column}, {i}, {x}, lanes);");
                    (text, vec![s(&[&ip, &xp], &[&to])])
                }
            }
            Code::Scatter => {
                let [(i, ip), (x, xp), (m, mp)] = [a[1], a[2], a[3]].map(|v| self.operand(v));
                let pack = v(&[&ip, &xp, &mp], &[&packed, &stage]);
                let acts = vec![pack, TO_S, s(&[&packed, &stage], &[&to])];
                (format!("Scatter({column}, {i}, {x}, {m}, lanes);"), acts)
            }
            // Lane i of the sweep is slot i: no scatter at all.
            Code::SetLife(n) if self.defs.get(&a[1]).is_some_and(|d| d.code == Code::Iota) => {
                return self.fill(n, &column, a[2]);
            }
            Code::SetLife(n) => {
                let (i, ip) = self.operand(a[1]);
                let value = format!("static_cast<half>({n}.0f)");
                if self.all.contains(&a[2]) {
                    let text = format!("SetLifeAll({column}, {i}, {value}, lanes);");
                    (text, vec![s(&[&ip], &[&to])])
                } else {
                    let (m, mp) = self.operand(a[2]);
                    let pack = v(&[&ip, &mp], &[&packed]);
                    let text = format!("SetLife({column}, {i}, {value}, {m}, lanes);");
                    (text, vec![pack, TO_S, s(&[&packed], &[&to])])
                }
            }
            _ => {
                let [(i, ip), (m, mp)] = [a[1], a[2]].map(|v| self.operand(v));
                let (lives, rule) = (ub("lives"), ub("rule"));
                let mut acts = vec![v(&[&ip, &mp], &[&packed])];
                for act in [
                    v(&[&packed], &[&stage]),
                    v(&[&to, &stage], &[&lives]),
                    v(&[&lives], &[&stage]),
                    v(&[&stage], &[&stage]),
                    v(&[&stage], &[&stage]),
                    v(&[&stage, &rule], &[&lives]),
                ] {
                    acts.extend([BARRIER, act]);
                }
                acts.extend([TO_S, s(&[&packed, &lives], &[&to])]);
                (format!("StepLife({column}, {i}, {m}, lanes);"), acts)
            }
        };
        self.helper(text, acts);
    }

    /// One loop instead of two: for the scatter before this one, if that one's index is this one's value.
    fn both(
        &mut self,
        column: &str,
        [i, x]: [&str; 2],
        [ip, xp]: [&Place; 2],
    ) -> Option<(String, Vec<Act>)> {
        let Some(Node::Call(call)) = self.out.last() else { return None };
        let before = call.text.strip_prefix("ScatterAll(")?.strip_suffix("lanes);")?;
        let [Act::Use { reads, writes, .. }] = &call.acts[..] else { return None };
        if reads.first() != Some(xp) || before.split(", ").nth(1) != Some(x) {
            return None;
        }
        let (packed, stage) = (ub("packed"), ub("stage"));
        let all = Place::Ub(column.into());
        let reads: Vec<&Place> = reads.iter().chain([ip, &packed, &stage]).collect();
        let text = format!("ScatterBoth({before}{column}, {i}, lanes);");
        let cast = [v(&[xp], &[&packed]), v(&[ip], &[&stage]), TO_S];
        let acts = [&cast[..], &[s(&reads, &[&writes[0], &all])]].concat();
        self.out.pop();
        Some((text, acts))
    }

    /// One lifetime for the tile's slots under a mask.
    fn fill(&mut self, life: i8, column: &str, mask: Value) {
        let view = format!("{column}[base]");
        let tile = Place::Ub(view.clone());
        let fill = |to: &str| format!("Duplicate({to}, static_cast<half>({life}.0f), lanes);");
        if self.all.contains(&mask) {
            return self.call(Pipe::V, fill(&view), vec![], vec![tile]);
        }
        let (m, mp) = self.operand(mask);
        let (x, xp) = self.temp(false, "fill");
        self.call(Pipe::V, fill(&format!("F16({x})")), vec![], vec![xp.clone()]);
        let text = format!(
            "Select({view}, {m}, F16({x}), {view}, SELMODE::VSEL_TENSOR_TENSOR_MODE, lanes);"
        );
        self.call(Pipe::V, text, vec![mp, xp, tile.clone()], vec![tile]);
        self.scribbles();
    }
}
