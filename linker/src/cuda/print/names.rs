//! The names of columns and of lengths in the text.

use crate::names::camel;
use crate::tape::{Column, Kind};

/// Returns the names of the columns of a column: that of words, or those of a list with their numbers.
pub fn of_column(column: &Column) -> impl Iterator<Item = String> + use<> {
    let name = camel(&column.name);
    let (list, parts) = match column.kind {
        Kind::List { width } => (true, width),
        _ => (false, 1),
    };
    (0..parts).map(move |n| if list { format!("{name}{n}") } else { name.clone() })
}

/// Returns the name of the length of a list.
pub fn length(list: &Column) -> String {
    camel(&format!("{}_length", list.name))
}
