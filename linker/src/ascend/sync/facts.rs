//! What the analysis knows about scalars: bounds of variables that the branches and loops on a way have
//! tested.

use crate::ascend::aiv::{Expr, Relation};
use std::collections::{BTreeMap, BTreeSet};

/// The least and the largest value of a number.
type Bounds = [i32; 2];

/// The bounds of variables, by their names. A variable that is missing may have any value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Facts(BTreeMap<String, Bounds>);

impl Facts {
    fn bounds(&self, value: &Expr) -> Bounds {
        match value {
            Expr::Number(n) => [*n; 2],
            Expr::Name(name) => self.0.get(name).copied().unwrap_or([i32::MIN, i32::MAX]),
            _ => [i32::MIN, i32::MAX],
        }
    }

    /// Returns whether a condition holds, if the facts decide it.
    pub fn decide(&self, condition: &Expr) -> Option<bool> {
        match condition {
            Expr::Not(a) => self.decide(a).map(|holds| !holds),
            Expr::Either(a, b) => match (self.decide(a), self.decide(b)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Expr::Test(relation, a, b) => {
                let ([a, a_most], [b, b_most]) = (self.bounds(a), self.bounds(b));
                let outcome =
                    |holds: bool, fails: bool| holds.then_some(true).or(fails.then_some(false));
                let equal = a == a_most && b == b_most && a == b;
                let apart = a_most < b || b_most < a;
                match relation {
                    Relation::Above => outcome(a > b_most, a_most <= b),
                    Relation::NotAbove => outcome(a_most <= b, a > b_most),
                    Relation::Equals => outcome(equal, apart),
                    Relation::Differs => outcome(apart, equal),
                }
            }
            _ => None,
        }
    }

    /// Adds that a condition holds or does not hold.
    pub fn assume(&mut self, condition: &Expr, holds: bool) {
        match condition {
            Expr::Not(a) => self.assume(a, !holds),
            Expr::Either(a, b) if !holds => {
                self.assume(a, false);
                self.assume(b, false);
            }
            Expr::Test(relation @ (Relation::Above | Relation::NotAbove), a, b) => {
                let (Expr::Name(name), Expr::Number(limit)) = (&**a, &**b) else { return };
                let [least, most] = self.bounds(a);
                let bounds = if (*relation == Relation::Above) == holds {
                    [least.max(limit.saturating_add(1)), most]
                } else {
                    [least, most.min(*limit)]
                };
                self.0.insert(name.clone(), bounds);
            }
            _ => {}
        }
    }

    /// Gives a variable another value, which may be unknown.
    pub fn set(&mut self, name: &str, value: Option<&Expr>) {
        let bounds = value.map(|value| self.bounds(value));
        self.0.remove(name);
        if let Some(bounds) = bounds.filter(|bounds| *bounds != [i32::MIN, i32::MAX]) {
            self.0.insert(name.into(), bounds);
        }
    }

    /// Forgets all variables but these.
    pub fn keep(&mut self, names: &BTreeSet<String>) {
        self.0.retain(|name, _| names.contains(name));
    }
}
