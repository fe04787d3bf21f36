//! Rows on a disk: files for them, reads of records, and what takes turns in `avsg bench disk`.

mod every_row;
mod kept;
mod mapped;
mod places;
mod server;
mod setting;
mod speeds;

pub use every_row::every_row;
pub use kept::{CHUNK, Kept, write_rows};
pub use mapped::mapped;
pub use places::{FileShape, folder_on_disk, layout};
pub use server::{Server, StepWork, Way};
pub use setting::{Setting, Step, setting};
pub use speeds::Speeds;
