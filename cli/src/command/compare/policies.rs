//! The policies that are compared with the operator's tables.

use avsg::Result;

use crate::baseline::{
    Belady, ExactLru, HiSparse, IdealFrequency, MatcherPolicy, Policy, PreviousStep, SecondChance,
    SetFifo,
};
use crate::command::geometry::DEFAULT_LAMBDA;
use crate::trace::Trace;

/// The name of the policy that no other can surpass.
pub const OPTIMUM: &str = "Belady's optimum";

type Named = (&'static str, Box<dyn Policy>);

/// Returns the optimum, and the other policies, each with a buffer of `slots` rows.
pub fn at(trace: &Trace, slots: usize) -> Result<(Named, Vec<Named>)> {
    let previous = MatcherPolicy::new(PreviousStep::new(trace.k)?);
    let hisparse = MatcherPolicy::new(HiSparse::new(slots, trace.k)?);
    let others: Vec<Named> = vec![
        ("previous step, K slots", Box::new(previous)),
        ("set FIFO, 16 ways", Box::new(SetFifo::new(slots)?)),
        ("CLOCK", Box::new(SecondChance::clock(slots)?)),
        ("SIEVE", Box::new(SecondChance::sieve(slots)?)),
        ("batch LRU of HiSparse", Box::new(hisparse)),
        ("exact LRU", Box::new(ExactLru::new(slots)?)),
        ("frequency:0.87 with every link", Box::new(IdealFrequency::new(slots, DEFAULT_LAMBDA)?)),
    ];
    Ok(((OPTIMUM, Box::new(Belady::new(trace, slots)?)), others))
}
