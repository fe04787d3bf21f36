//! The hit rates of `avsg compare`, which are written as JSON, and the advice that follows from them.

use serde::Serialize;

use crate::trace::Repeats;

/// A rule other than the default is advised if its misses are at most this share of the default's.
const WORTHWHILE: f64 = 0.95;

/// The hit rates of all policies.
#[derive(Serialize)]
pub struct Report {
    pub trace: String,
    pub steps: usize,
    pub tokens: usize,
    pub k: usize,
    pub repeats: Repeats,
    pub slots: Vec<u32>,
    pub policies: Vec<PolicyRates>,
    /// What to take at each S; nothing if no step after the first selects an id.
    pub advice: Vec<Advice>,
}

/// One policy at each S of the report.
#[derive(Serialize)]
pub struct PolicyRates {
    pub policy: String,
    /// The options that choose it, if it is a rule of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<String>,
    pub at: Vec<At>,
}

#[derive(Serialize)]
pub struct At {
    pub slots: u32,
    /// In percent after the first step; null if no later step selects an id.
    pub hit_rate: Option<f64>,
    /// Mean misses of a step after the first.
    pub misses_per_step: Option<f64>,
    /// Whether this is the default rule of its table at this S.
    pub default: bool,
}

/// The rule to take at one S.
#[derive(Debug, PartialEq, Serialize)]
pub struct Advice {
    pub slots: u32,
    pub options: String,
    /// Whether it is what the library does without these options.
    pub default: bool,
    /// Its mean misses of a step after the first, and those of the default.
    pub misses_per_step: f64,
    pub default_misses_per_step: f64,
}

/// Returns the rule to take at an S: the default of the table `wide`, unless another rule has far fewer
/// misses.
pub fn advice(policies: &[PolicyRates], slots: u32) -> Option<Advice> {
    let choices = policies.iter().filter_map(|rates| {
        let at = rates.at(slots)?;
        Some((rates, at.default && rates.policy.starts_with("wide"), at.misses_per_step?))
    });
    let rules = || choices.clone().filter(|(rates, ..)| rates.options.is_some());
    let (usual, _, default_misses_per_step) = rules().find(|&(_, default, _)| default)?;
    let (best, _, least) = rules().min_by(|a, b| a.2.total_cmp(&b.2))?;
    let default = least > WORTHWHILE * default_misses_per_step || least == default_misses_per_step;
    let (rates, misses_per_step) =
        if default { (usual, default_misses_per_step) } else { (best, least) };
    let options = rates.options.clone()?;
    Some(Advice { slots, options, default, misses_per_step, default_misses_per_step })
}

impl Report {
    /// Returns the least S from which on every larger one copies as many rows with the advised rule;
    /// `None` if that is the largest.
    pub fn enough(&self) -> Option<u32> {
        let last = self.advice.last()?;
        let mut advice = self.advice.iter();
        let least = advice.find(|advice| advice.misses_per_step <= last.misses_per_step)?;
        (least.slots < last.slots).then_some(least.slots)
    }
}

impl PolicyRates {
    /// Returns the figures at an S.
    pub fn at(&self, slots: u32) -> Option<&At> {
        self.at.iter().find(|at| at.slots == slots)
    }

    /// Returns the hit rate and whether a rule is the default, for a table's cell.
    pub fn cell(equal: &[Self], slots: u32) -> Option<(f64, bool)> {
        let default = equal.iter().any(|rates| rates.at(slots).is_some_and(|at| at.default));
        Some((equal[0].at(slots)?.hit_rate?, default))
    }

    /// Returns the table and the kind of its rule, and the rates: what neighbours on a line share.
    pub fn key(&self) -> (&str, Vec<(u32, Option<u64>)>) {
        let kind = self.policy.split(':').next().unwrap_or_default();
        let rates = self.at.iter().map(|at| (at.slots, at.hit_rate.map(f64::to_bits)));
        (kind, rates.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::LRU;

    fn rates(policy: &str, options: Option<&str>, misses: f64, default: bool) -> PolicyRates {
        let at = At { slots: 64, hit_rate: Some(1.0), misses_per_step: Some(misses), default };
        PolicyRates { policy: policy.into(), options: options.map(str::to_owned), at: vec![at] }
    }

    #[test]
    fn another_rule_is_advised_only_if_it_copies_far_fewer_rows() {
        let advised = |others: f64| {
            let policies = [
                rates(LRU, None, 1.0, false),
                rates("paper constant:16", Some("--table paper"), 110.0, true),
                rates("wide constant:127", Some("--lifetime constant:127"), 100.0, true),
                rates("wide learned", Some("--lifetime learned"), others, false),
            ];
            let Advice { options, default, .. } = advice(&policies, 64).unwrap();
            (options, default)
        };
        assert_eq!(advised(96.0), ("--lifetime constant:127".to_owned(), true));
        assert_eq!(advised(94.0), ("--lifetime learned".to_owned(), false));
        assert_eq!(advice(&[rates(LRU, None, 1.0, false)], 64), None);
    }
}
