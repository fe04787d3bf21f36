//! The lifetime rule that a trace recommends: the default one, unless the trace shows that the other one
//! misses fewer rows.

use avsg::cpu::machine::Machine;
use avsg::device::params::{Lifetime, Params};

use crate::baseline::{HitCount, count_operator_hits};
use crate::trace::Trace;

/// A rule of the table `wide` that was measured on a trace.
pub struct Measured<T> {
    pub params: Params,
    /// Misses after the first step.
    pub misses: u64,
    /// What else was measured.
    pub with: T,
}

/// Measures the default rule of a table `wide` and the other one on a trace of `steps` steps, and returns
/// the recommended one first.
///
/// # Errors
/// If `measure` fails.
pub fn recommended<T, E>(
    default: Params,
    steps: usize,
    mut measure: impl FnMut(Params) -> Result<Measured<T>, E>,
) -> Result<[Measured<T>; 2], E> {
    let other = match default.lifetime {
        Lifetime::Constant(_) => Lifetime::Learned,
        Lifetime::Learned => Lifetime::Constant(127),
    };
    let (default, other) = (measure(default)?, measure(Params { lifetime: other, ..default })?);
    let is_shown = shows(steps, default.misses, other.misses);
    Ok(if is_shown { [other, default] } else { [default, other] })
}

/// Runs a trace on an empty table with the default rule and with the other one, and returns the recommended
/// one first.
///
/// # Errors
/// If the library refuses the table.
pub fn on_trace(
    trace: &Trace,
    default: Params,
    machine: Machine,
) -> avsg::Result<[Measured<HitCount>; 2]> {
    recommended(default, trace.steps, |params| {
        let hits = count_operator_hits(trace, &params, machine)?;
        Ok(Measured { params, misses: hits.misses(), with: hits })
    })
}

/// Returns whether a trace of `steps` steps shows that `fewer` misses are fewer than `misses`. The misses
/// of a step vary by about their mean or more, so the mean of n steps has a standard error of at least 1/√n
/// of itself, and another trace of the same work may well differ by two of those.
fn shows(steps: usize, misses: u64, fewer: u64) -> bool {
    let least = 2.0 / (steps.saturating_sub(1) as f64).sqrt();
    misses.saturating_sub(fewer) as f64 > least * misses as f64
}
