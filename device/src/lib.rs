//! AVSG device kernels: from the K selected ids of each token to slots, misses and row moves.
//!
//! One source for every machine. A kernel is generic over [`machine::Machine`]; CPU machines run it
//! by monomorphisation, and a recorder (`avsg-linker`) turns it into a tape that becomes AscendC.
//! Names are the paper's: a **slot** of the device buffer holds one row; **Probe** looks ids up in the
//! Hash-State; **CollectDead** finds slots to evict by lifetime; **UpdateState** gives them to the misses.
//!
//! K ids per token, N_q tokens per request and step, S = 2^m slots, T = S * spread = 2^t links, R
//! retries (R + 1 links examined).

#![no_std]
#![warn(clippy::pedantic)]
#![expect(
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    clippy::inline_always,
    clippy::must_use_candidate,
    reason = "lanes are 32-bit words read both ways; kernels must inline into their machine"
)]
#![expect(
    clippy::doc_markdown,
    clippy::similar_names,
    clippy::mut_mut,
    clippy::large_enum_variant,
    reason = "the paper's names; an Output is a slice, lent; a rule is a table, no_std has no box"
)]

mod launch;
pub mod machine;
mod step;
mod table;

pub use launch::{kernels, share, stage_two, tiling};
pub use step::{batched, request, schedule, sequential, stage_one, work};
pub use table::{hash, memory, params, state};
