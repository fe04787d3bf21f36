//! The shim itself: right programs give right data, wrong ones are refused, and what orders them is known.

mod cores;
mod half;
mod harness;
mod hazards;
mod ops;
mod random;
mod rules;
#[path = "../../../testkit/src/tier.rs"]
mod tier;
