//! A discrete-event model of the cluster of the paper's serving table; nothing of it is measured.
//!
//! Its constants agree with nine of the paper's figures for No Offload and KV Offload. They say nothing
//! about another cluster, and the time of Stage One is that of the paper's kernel at K = 2048.

pub mod cluster;
mod requests;
pub mod simulation;
#[cfg(test)]
mod tests;
