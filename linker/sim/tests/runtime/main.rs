//! The simulated runtime: its rules, tested by raw calls, and its choice of the C++ compiler.

#[macro_use]
mod calls;
mod compiler;
mod kernel_rules;
mod memory_rules;
