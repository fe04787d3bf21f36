//! The shim: correct programs give correct data, wrong ones are refused, and missing
//! synchronisation is found.

mod cores;
mod cycles;
mod half;
mod harness;
mod hazards;
mod ops;
mod random;
mod rules;
#[path = "../../../testkit/src/tier.rs"]
mod tier;
