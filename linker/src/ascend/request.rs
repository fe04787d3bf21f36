//! Writes the arguments of Stage One as members of C++ structs.

use crate::names::camel;
use crate::request::Arguments;
use crate::tape::Param;
use avsg_device::params::Params;
use std::fmt::Write as _;

/// Returns the members of the struct `Request`, as lines of C++.
pub fn fields(p: &Params) -> String {
    Arguments::of(p).scalars.iter().fold(String::new(), |mut lines, Param { name, doc, .. }| {
        let member = format!("    int32_t {};", camel(name));
        let _ = writeln!(lines, "{member:<32}// {doc}");
        lines
    })
}

/// Returns the members of the struct `Gm` that hold the arrays.
pub fn members(p: &Params) -> String {
    let names = Arguments::of(p).arrays;
    names.iter().map(|name| camel(name)).collect::<Vec<_>>().join(", ")
}
