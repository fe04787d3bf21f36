//! The Hash-State: its geometry, its planes, the layout of its words, and the positions of links.

pub mod hash;
pub mod learned;
pub mod memory;
pub mod params;
pub mod state;
