//! The arguments of Stage One as C++: from their declaration in the device crate.

use crate::lower::camel;
use crate::record::Recording;
use crate::tape::{Kind, Param, Tape};
use avsg_device::params::Params;
use avsg_device::request::Request;
use std::fmt::Write as _;

/// A request's scalars and arrays, with nothing that runs on them.
fn declared(p: &Params) -> Tape {
    let recording = Recording::new("request");
    let _request = Request::declare(p, &mut recording.recorder());
    recording.finish().unwrap_or_default()
}

/// The members of the struct `Request` that a tape knows: lines of C++.
pub fn fields(p: &Params) -> String {
    declared(p).params.iter().fold(String::new(), |mut lines, Param { name, doc, .. }| {
        let member = format!("    int32_t {};", camel(name));
        let _ = writeln!(lines, "{member:<32}// {doc}");
        lines
    })
}

/// The names of the arrays, members of the struct `Gm` and parameters of a kernel.
fn arrays(p: &Params) -> Vec<String> {
    let columns = declared(p).columns;
    let global = columns.iter().filter(|c| matches!(c.kind, Kind::Input | Kind::Output));
    global.map(|c| camel(c.name.trim_start_matches("gm_"))).collect()
}

/// The members of `Gm` that a tape knows.
pub fn members(p: &Params) -> String {
    arrays(p).join(", ")
}

/// What initialises them, from a kernel's parameters.
pub fn initialisers(p: &Params) -> String {
    let views: Vec<String> =
        arrays(p).iter().map(|name| format!("avsg::Global<int32_t>({name})")).collect();
    views.chunks(3).map(|some| format!("        {},\n", some.join(", "))).collect()
}
