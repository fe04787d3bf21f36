//! Rows on a disk: files for them, reads of records, and the settings of `avsg bench disk`.

mod every_row;
mod file;
mod mapped;
mod operator;
mod planned;
mod records;
mod rows;
mod speeds;

pub use every_row::EveryRow;
pub use file::{direct, folder_on_disk, path_in_proc};
pub use mapped::Mapped;
pub use operator::Operator;
pub use planned::layout;
pub use rows::{Records, Setting, Step};
pub use speeds::Speeds;
