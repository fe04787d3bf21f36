//! Rows on a disk: files for them, reads of records, and the settings of `avsg bench disk`.

mod every_row;
mod mapped;
mod operator;
mod places;
mod rows;
mod speeds;

pub use every_row::EveryRow;
pub use mapped::Mapped;
pub use operator::Operator;
pub use places::{direct, folder_on_disk, layout, path_in_proc};
pub use rows::{Records, Setting, Step};
pub use speeds::Speeds;
