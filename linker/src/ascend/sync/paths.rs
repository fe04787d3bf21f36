//! The ways through a kernel that the analysis tells apart.
//!
//! A branch and a loop may go either way. Where a later branch or loop tests the same scalar, the two ways
//! stay apart until then: a loop over n entries that ran says that another loop over the same n runs.

use super::facts::Facts;
use super::known::{Known, PlaceMap, learn, meet};
use super::step::NumberedAct;
use crate::ascend::aiv::{Expr, Sync};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of scalars, and of accesses, on each way. There is none where no way leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths(BTreeMap<Facts, Known>);

impl Paths {
    /// Returns the one way at the start of a kernel.
    pub fn start(known: Known) -> Self {
        Self([(Facts::default(), known)].into())
    }

    fn insert(&mut self, facts: Facts, known: Known) {
        let joined = match self.0.get(&facts) {
            Some(other) => meet(other, &known),
            None => known,
        };
        self.0.insert(facts, joined);
    }

    /// Adds other ways. Ways with the same scalars become one.
    pub fn join(&mut self, other: Self) {
        other.0.into_iter().for_each(|(facts, known)| self.insert(facts, known));
    }

    /// Returns the ways on which a condition holds, and those on which it does not.
    pub fn split(self, condition: &Expr) -> [Self; 2] {
        let mut both = [Self::default(), Self::default()];
        for (facts, known) in self.0 {
            for (paths, holds) in both.iter_mut().zip([true, false]) {
                if facts.decide(condition).is_none_or(|decided| decided == holds) {
                    let mut facts = facts.clone();
                    facts.assume(condition, holds);
                    paths.insert(facts, known.clone());
                }
            }
        }
        both
    }

    /// Returns whether a condition is known to fail on all ways.
    pub fn never(&self, condition: &Expr) -> bool {
        self.0.keys().all(|facts| facts.decide(condition) == Some(false))
    }

    fn change(&mut self, change: impl Fn(&mut Facts)) {
        for (mut facts, known) in std::mem::take(&mut self.0) {
            change(&mut facts);
            self.insert(facts, known);
        }
    }

    /// Gives a variable another value, which may be unknown.
    pub fn set(&mut self, name: &str, value: Option<&Expr>) {
        self.change(|facts| facts.set(name, value));
    }

    /// Forgets all variables but these.
    pub fn keep(&mut self, names: &BTreeSet<String>) {
        self.change(|facts| facts.keep(names));
    }

    /// Applies a synchronisation.
    pub fn learn(&mut self, sync: Sync) {
        self.each(|known| learn(known, sync));
    }

    /// Applies a change of the accesses to all ways.
    pub fn each(&mut self, change: impl Fn(&mut Known)) {
        self.0.values_mut().for_each(change);
    }

    /// Applies the effects of a call. A synchronisation that one of them lacks is passed to `lack` and then
    /// applied.
    pub fn apply(&mut self, map: &PlaceMap<'_>, acts: &[NumberedAct], lack: &mut dyn FnMut(Sync)) {
        for (facts, known) in &mut self.0 {
            acts.iter().for_each(|act| map.apply(known, facts, act, lack));
        }
    }
}
