//! The names of columns and of lengths in the text.

use crate::names::camel;
use crate::tape::{Column, Kind};

/// Returns the names of the columns of a column: that of words, or those of a list with their numbers.
pub fn of_column(column: &Column) -> Vec<String> {
    let name = camel(&column.name);
    match column.kind {
        Kind::List { width } => (0..width).map(|n| format!("{name}{n}")).collect(),
        _ => vec![name],
    }
}

/// Returns the name of the length of a list.
pub fn length(list: &Column) -> String {
    camel(&format!("{}_length", list.name))
}

/// Returns an array in global memory.
pub fn global(column: &Column) -> String {
    format!("gm.{}", camel(column.array()))
}
