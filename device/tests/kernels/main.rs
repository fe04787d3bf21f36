//! The tests of the kernels on every machine of this CPU. They are one program, so that each kernel
//! is compiled once for each machine.

mod checker;
mod codegen;
mod conformance;
mod entry;
mod invariants;
mod one_request;
mod paper_oracle;
mod register_ops;
mod rules;
mod sequences;
mod structured;
#[path = "../../../testkit/src/tier.rs"]
mod tier;
