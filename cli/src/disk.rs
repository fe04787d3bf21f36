//! Disks for rows: files on them, how fast they read, and what records of rows take there.

mod file;
mod layout;
mod probe;
mod records;

pub use file::{Folder, direct, drop_from_page_cache, path_in_proc};
pub use layout::layout;
pub use probe::Speeds;
pub use records::RecordReader;
