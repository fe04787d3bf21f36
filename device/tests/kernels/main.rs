//! The tests of the kernels on every machine of this CPU. They are one program, so that each kernel
//! that the library has not compiled is compiled once.

mod codegen;
mod conformance;
mod decoding;
mod one_request;
mod paper_oracle;
mod register_ops;
mod rules;
mod sequences;
#[path = "../../../program/measure/src/splitmix.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod splitmix;
mod structured;
#[path = "../../../tests/kit/src/tier.rs"]
mod tier;
