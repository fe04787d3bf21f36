//! The Hash-State: its geometry, its planes, where its words lie, and where an id's links are.

pub mod hash;
pub mod memory;
pub mod params;
pub mod state;
