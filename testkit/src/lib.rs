//! What tests of AVSG share: rows that say which row they are, batches that own their arrays, lives of
//! requests and the verification of every step of one.

pub mod allocations;
pub mod batch;
pub mod content;
pub mod life;
pub mod small;
pub mod splitmix;
pub mod tier;
