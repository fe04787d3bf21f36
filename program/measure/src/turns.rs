//! Contenders that take turns, so that what else the machine does affects all of them alike.

use std::borrow::Cow;
use std::time::Instant;

use anyhow::Result;

use crate::stats::{Summary, summary, us_since};

/// The most parts of a contender.
const MAX_PARTS: usize = 3;

/// A way to do the steps of a bench.
pub struct Contender<'a> {
    /// What it does.
    pub name: String,
    /// The names of the parts of a step, which are timed apart; at most three.
    pub parts: Vec<&'static str>,
    /// Does a step with the ids that it selects, and writes the microseconds of each part. A part that the step
    /// leaves out stays NaN.
    pub step: StepFn<'a>,
}

/// A step with the ids that it selects, which writes the microseconds of each part.
pub type StepFn<'a> = Box<dyn FnMut(&[i32], &mut [f64]) -> Result<()> + 'a>;

impl<'a> Contender<'a> {
    /// Returns a contender whose step has these parts.
    pub fn new(
        name: impl Into<String>,
        parts: Vec<&'static str>,
        step: impl FnMut(&[i32], &mut [f64]) -> Result<()> + 'a,
    ) -> Self {
        Self { name: name.into(), parts, step: Box::new(step) }
    }

    /// Returns a contender whose step is timed as a whole.
    pub fn timed(name: impl Into<String>, mut work: impl FnMut(&[i32]) -> Result<()> + 'a) -> Self {
        Self::new(name, vec![""], move |ids, us| {
            let start = Instant::now();
            work(ids)?;
            us[0] = us_since(start);
            Ok(())
        })
    }
}

/// The steps that contenders take in turns.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    /// Steps of each contender before its first turn, which are not timed.
    pub warm_up: usize,
    /// Timed steps of each contender.
    pub steps: usize,
    /// Timed steps of a turn; the last turn may have fewer.
    pub turn: usize,
    /// Steps at the start of a turn that are not timed, because they find the caches full of what the contender
    /// before has used.
    pub settle: usize,
}

impl Turns {
    fn rounds(&self) -> usize {
        self.steps.div_ceil(self.turn)
    }

    /// Returns the number of steps that a contender takes.
    pub fn total(&self) -> usize {
        self.warm_up + self.steps + self.rounds() * self.settle
    }

    /// Lets all contenders take the same steps, whose ids `ids` returns by their number, and summarises the times
    /// of each part of each contender. The first contender of a round loads what all of them read into the caches,
    /// so the first one rotates. `progress` gets the number of steps that all contenders have taken since the last call.
    pub fn take<'i>(
        &self,
        contenders: &mut [Contender<'_>],
        ids: impl Fn(usize) -> Cow<'i, [i32]>,
        progress: impl Fn(usize),
    ) -> Result<Vec<Vec<Summary>>> {
        let mut us = [f64::NAN; MAX_PARTS];
        for contender in contenders.iter_mut() {
            for step in 0..self.warm_up {
                (contender.step)(&ids(step), &mut us)?;
            }
        }
        progress(self.warm_up);
        let parts = contenders.iter().map(|contender| vec![Vec::new(); contender.parts.len()]);
        let mut times: Vec<Vec<Vec<f64>>> = parts.collect();
        let mut first = self.warm_up;
        for round in 0..self.rounds() {
            let timed = first + self.settle;
            let end = timed + self.turn.min(self.steps - round * self.turn);
            for turn in 0..contenders.len() {
                let at = (round + turn) % contenders.len();
                for step in first..end {
                    us.fill(f64::NAN);
                    (contenders[at].step)(&ids(step), &mut us)?;
                    if step >= timed {
                        let of_parts = times[at].iter_mut().zip(us).filter(|(_, us)| !us.is_nan());
                        of_parts.for_each(|(times, us)| times.push(us));
                    }
                }
            }
            progress(end - first);
            first = end;
        }
        Ok(times.iter_mut().map(|parts| parts.iter_mut().map(|t| summary(t)).collect()).collect())
    }
}
