//! Stage One: one step of one request on its table (Alg. 1, and lines 1 to 4 of Alg. 4).

pub mod collect_dead;
pub mod locate;
pub mod one_request;
pub mod order;
pub mod prepare;
pub mod probe;
pub mod refresh;
pub mod request;
pub mod schedule;
pub mod sequential;
pub mod stage_one;
pub mod update_state;
pub mod vector_core;
pub mod work;
