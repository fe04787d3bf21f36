//! The steps of a kernel, with the scalars that its branches and loops test.

use super::known::PlaceMap;
use super::step::{NumberedAct, Rounds, Step};
use crate::ascend::aiv::{self, Call, Expr, If, Loop, Node, Operation};
use std::collections::BTreeSet;

type Names = BTreeSet<String>;

/// Makes the steps of a kernel.
pub struct Steps<'m> {
    pub map: &'m PlaceMap<'m>,
    /// Whether the analysis follows scalars. It does not in a function, because a caller takes each of the
    /// function's branches and loops for one that may go either way.
    pub follow: bool,
}

impl Steps<'_> {
    /// Returns the steps of a whole kernel.
    pub fn of(&self, nodes: &[Node]) -> Vec<Step> {
        self.block(nodes, Names::new()).0
    }

    /// Returns the steps of a block, and the variables that matter before it. `names` are those that matter
    /// behind it.
    fn block(&self, nodes: &[Node], mut names: Names) -> (Vec<Step>, Names) {
        let mut steps = Vec::new();
        for node in nodes.iter().rev() {
            match node {
                Node::Note(_) => {}
                Node::Call(call) => {
                    let sets = self.sets(call);
                    if let Some((name, value)) = &sets
                        && names.remove(name)
                        && let Some(Expr::Name(from)) = value
                    {
                        names.insert(from.clone());
                    }
                    let (acts, sync) = (self.map.acts(call), call.sync.clone());
                    if self.follow {
                        let conditions = acts.iter().flat_map(NumberedAct::conditions);
                        names.extend(conditions.flat_map(tested));
                    }
                    steps.push(Step::Call { acts, sets, sync });
                }
                Node::Loop(l) => {
                    let rounds = self.rounds(l);
                    names.extend(rounds.bound.iter().flat_map(tested));
                    steps.push(Step::Keep(names.clone()));
                    // The next round tests what this one does.
                    names.extend(self.block(&l.body, names.clone()).1);
                    let (mut body, before) = self.block(&l.body, names.clone());
                    body.push(Step::Keep(names));
                    names = before;
                    names.remove(l.variable);
                    steps.push(Step::Loop { rounds, sync: Vec::new(), body });
                }
                Node::If(If { condition, body, otherwise }) => {
                    steps.push(Step::Keep(names.clone()));
                    let (body, mut before) = self.block(body, names.clone());
                    let (otherwise, others) = self.block(otherwise, names);
                    let condition = self.follow.then(|| condition.clone());
                    before.extend(others);
                    before.extend(condition.iter().flat_map(tested));
                    names = before;
                    steps.push(Step::If { condition, body, otherwise });
                }
            }
        }
        steps.reverse();
        (steps, names)
    }

    fn sets(&self, call: &Call) -> Option<(String, Option<Expr>)> {
        let value = match &call.operation {
            Operation::Let(_, value) | Operation::Assign(_, value) => Some(value.clone()),
            Operation::Variable(_, value) => Some(value.clone()),
            _ => None,
        };
        call.sets().filter(|_| self.follow).map(|name| (name.into(), value))
    }

    fn rounds(&self, l: &Loop) -> Rounds {
        let inner = |node: &Node| matches!(node, Node::Loop(_));
        let nested = |node: &Node| node.bodies().flat_map(Node::all).any(inner);
        let body = || l.body.iter().flat_map(Node::all);
        let step = match &l.step {
            aiv::Step::By(Expr::Number(n)) => *n,
            aiv::Step::By(_) | aiv::Step::Double => 1,
            // A round of a sweep has 128 lanes or more.
            aiv::Step::Sweep(_) => 128,
        };
        let counts = self.follow && l.from == Expr::Number(0) && l.only.is_none();
        let bound = counts.then(|| l.bound.clone());
        let branches = |node: &Node| match node {
            Node::If(branch) => tested(&branch.condition).any(|name| name == l.variable),
            _ => false,
        };
        let differ = body().any(branches);
        let each = match bound {
            Some(Expr::Number(n)) if step == 1 && differ => Some(n),
            _ => None,
        };
        let short = l.width().is_none() && !body().any(inner);
        let outer = body().any(|node| inner(node) && nested(node));
        let (variable, always) = (l.variable, l.always);
        Rounds { variable, bound, step, differ, each, always, short, outer }
    }
}

/// Returns the variables that a condition or a bound reads.
fn tested(condition: &Expr) -> impl Iterator<Item = String> + use<> {
    let mut names = Vec::new();
    condition.each(&mut |e| {
        if let Expr::Name(name) = e {
            names.push(name.clone());
        }
    });
    names.into_iter()
}
