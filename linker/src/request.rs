//! The arguments of Stage One as any target passes them, from their declaration in the device crate.

use crate::names::camel;
use crate::record::Recording;
use crate::tape::{Kind, Param};
use avsg_device::params::Params;
use avsg_device::request::Request;
use std::fmt::Write as _;

/// The arguments of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// The scalars, in the order of their declaration.
    pub scalars: Vec<Param>,
    /// The names of the arrays in global memory, without their prefix `gm_`.
    pub arrays: Vec<String>,
}

impl Arguments {
    /// Returns the arguments of Stage One of a geometry.
    pub fn of(p: &Params) -> Self {
        let recording = Recording::new("request");
        let _request = Request::declare(p, &mut recording.recorder());
        let tape = recording.finish().unwrap_or_default();
        let global = tape.columns.iter().filter(|c| matches!(c.kind, Kind::Input | Kind::Output));
        let arrays = global.map(|c| c.array().into()).collect();
        Self { scalars: tape.params, arrays }
    }
}

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
