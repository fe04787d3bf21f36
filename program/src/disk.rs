//! Disks for rows: files on them, how fast they read, and what records of rows take there.

mod layout;
mod probe;

pub use avsg_measure::disk::*;
pub use layout::layout;
pub use probe::Speeds;
