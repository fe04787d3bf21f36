//! Writes the arguments of Stage One as C++, from their declaration in the device crate.

use crate::lower::camel;
use crate::record::Recording;
use crate::tape::{Kind, Param, Tape};
use avsg_device::params::Params;
use avsg_device::request::Request;
use std::fmt::Write as _;

/// Returns a tape with the scalars and arrays of a request, and without operations.
fn declared(p: &Params) -> Tape {
    let recording = Recording::new("request");
    let _request = Request::declare(p, &mut recording.recorder());
    recording.finish().unwrap_or_default()
}

/// Returns the members of the struct `Request` that the tape declares, as lines of C++.
pub fn fields(p: &Params) -> String {
    declared(p).params.iter().fold(String::new(), |mut lines, Param { name, doc, .. }| {
        let member = format!("    int32_t {};", camel(name));
        let _ = writeln!(lines, "{member:<32}// {doc}");
        lines
    })
}

/// Returns the names of the arrays, which are members of the struct `Gm` and parameters of a
/// kernel.
fn arrays(p: &Params) -> Vec<String> {
    let columns = declared(p).columns;
    let global = columns.iter().filter(|c| matches!(c.kind, Kind::Input | Kind::Output));
    global.map(|c| camel(c.name.trim_start_matches("gm_"))).collect()
}

/// Returns the members of `Gm` that the tape declares.
pub fn members(p: &Params) -> String {
    arrays(p).join(", ")
}

/// Returns the initialisers of these members, from the parameters of a kernel.
pub fn initialisers(p: &Params) -> String {
    let views: Vec<String> =
        arrays(p).iter().map(|name| format!("avsg::Global<int32_t>({name})")).collect();
    views.chunks(3).map(|some| format!("        {},\n", some.join(", "))).collect()
}
