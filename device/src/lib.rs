//! The device kernels of AVSG: from the K selected ids of each token to slots, misses and row
//! copies.
//!
//! There is one source for every machine. A kernel is generic over [`machine::Machine`]; CPU
//! machines run it by monomorphisation, and a recorder (`avsg-linker`) makes a tape of it, from
//! which AscendC text is emitted. Names are the paper's: a **slot** of the device buffer holds one
//! row, **Probe** searches the Hash-State for ids, **CollectDead** finds slots to evict by their
//! lifetimes, and **UpdateState** gives them to the misses.
//!
//! K is the number of ids per token, N_q the number of tokens per request and step, S = 2^m the
//! number of slots, T = S · spread = 2^t the number of links, and R the number of retries: R + 1
//! links are examined.

#![no_std]
#![warn(clippy::pedantic)]
#![expect(
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    clippy::inline_always,
    clippy::must_use_candidate,
    reason = "lanes are words with and without a sign; kernels must inline into their machine"
)]
#![expect(
    clippy::doc_markdown,
    clippy::similar_names,
    clippy::mut_mut,
    reason = "names are the paper's; an Output is a borrowed slice"
)]

pub mod machine;

/// The Hash-State: its geometry, its planes, the layout of its words, and the positions of links.
mod table {
    pub mod hash;
    pub mod learned;
    pub mod memory;
    pub mod params;
    pub mod state;
}

/// Stage One: one step of one request on its table (Alg. 1, and lines 1 to 4 of Alg. 4).
mod step {
    pub mod collect_dead;
    pub mod locate;
    pub mod one_request;
    pub mod order;
    pub mod prepare;
    pub mod refresh;
    pub mod request;
    pub mod schedule;
    pub mod sequential;
    pub mod stage_one;
    pub mod update_state;
    pub mod vector_core;
}

/// The description of a launch: the kernels and their parameters, the scalars, and the division of
/// the work between cores.
mod launch {
    pub mod kernels;
    pub mod rules;
    pub mod sharers;
    pub mod stage_two;
    pub mod tiling;
}

pub use launch::{kernels, rules, sharers, stage_two, tiling};
pub use step::{one_request, request, schedule, sequential, stage_one, vector_core};
pub use table::{hash, learned, memory, params, state};
