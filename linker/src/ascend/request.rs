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

/// Returns the names of the arrays, which are members of the struct `Gm` and parameters of a
/// kernel.
fn arrays(p: &Params) -> Vec<String> {
    Arguments::of(p).arrays.iter().map(|name| camel(name)).collect()
}

/// Returns the members of `Gm` that hold the arrays.
pub fn members(p: &Params) -> String {
    arrays(p).join(", ")
}

/// Returns the initialisers of these members, from the parameters of a kernel.
pub fn initialisers(p: &Params) -> String {
    let views: Vec<String> =
        arrays(p).iter().map(|name| format!("avsg::Global<int32_t>({name})")).collect();
    views.chunks(3).map(|some| format!("        {},\n", some.join(", "))).collect()
}
