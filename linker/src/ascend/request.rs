//! The arguments of Stage One, from their declaration in the device crate.

use crate::ascend::names::camel;
use crate::record::Recording;
use crate::tape::{Param, Tape};
use avsg_device::params::Params;
use avsg_device::request::Request;
use std::fmt::Write as _;

/// Returns a tape with the arguments of Stage One of a geometry: its scalars, and its arrays in global
/// memory.
fn declared(p: &Params) -> Tape {
    let recording = Recording::new("request");
    let _request = Request::declare(p, &mut recording.recorder());
    recording.finish().unwrap_or_default()
}

/// Returns the members of the struct `Request`, as lines of C++.
pub fn fields(p: &Params) -> String {
    declared(p).params.iter().fold(String::new(), |mut lines, Param { name, doc, .. }| {
        let member = format!("    int32_t {};", camel(name));
        let _ = writeln!(lines, "{member:<32}// {doc}");
        lines
    })
}

/// Returns the members of the struct `Gm` that hold the arrays.
pub fn members(p: &Params) -> String {
    let names = declared(p).columns.into_iter().map(|column| camel(column.array()));
    names.collect::<Vec<_>>().join(", ")
}
