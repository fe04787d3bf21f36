//! What tests of AVSG share: rows that say which row they are ([`content`]), how a batch is made
//! ([`batch`], [`fresh`], [`on_device`]), how a workload goes on ([`workload`]), and what must hold after a step
//! ([`exact`] of every row, [`workload`] of everything else).

pub mod allocations;
pub mod batch;
pub mod content;
pub mod exact;
pub mod found;
pub mod fresh;
pub mod memory;
pub mod on_device;
pub mod small;
pub mod splitmix;
pub mod tier;
pub mod workload;
