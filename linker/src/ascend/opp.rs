//! Writes a custom operator package around the kernels of a geometry: a project that CANN's CMake
//! functions build. Its text calls documented interfaces of CANN only.

mod operator;

use avsg_device::kernels::KernelName;
use avsg_device::params::Params;
use avsg_device::request::summary;
use avsg_device::rules::rules;
use avsg_device::sharers::{MIN_SHARE, MIN_SHARERS};
use avsg_device::tiling::{HALF_BYTES, MAX_CHUNKS, MAX_HALF_ROWS, MAX_SLOT_BLOCKS};

use crate::ascend::kernels::Kernels;
use avsg_device::memory::table_words;

/// A file of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path in the project's folder.
    pub path: String,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// Whether it is executable.
    pub executable: bool,
}

/// Returns the path and the text of a file of the project.
macro_rules! file {
    ($path:literal) => {
        ($path, include_str!(concat!("opp/", $path)))
    };
    ($path:literal, $template:literal) => {
        ($path, include_str!(concat!("opp/", $template)))
    };
}

/// The files that are the same for every geometry.
const WRITTEN: [(&str, &str); 6] = [
    file!("CMakeLists.txt"),
    file!("build.sh"),
    file!("example/avsg_step.cpp"),
    file!("op_host/CMakeLists.txt"),
    file!("op_host/avsg_launch.h"),
    file!("op_kernel/CMakeLists.txt"),
];
/// The files with marks, because JSON and Markdown have no constants.
const TEMPLATES: [(&str, &str); 2] =
    [file!("CMakePresets.json", "CMakePresets.json.in"), file!("README.md", "README.md.in")];

fn fill(text: &str, marks: &[(&str, String)]) -> String {
    marks.iter().fold(text.to_string(), |text, (mark, value)| text.replace(mark, value))
}

/// Returns the files of the project for a geometry. `unit` is the name of the compute unit, such as
/// `ascend910b`, and `kernels` are written for [`crate::ascend::kernels::Abi::Operator`].
pub fn project(p: &Params, unit: &str, kernels: &Kernels) -> Vec<File> {
    let marks = [
        ("@UNIT@", unit.into()),
        ("@GEOMETRY@", p.to_string()),
        ("@K@", p.k.to_string()),
        ("@SLOTS@", p.slots.to_string()),
        ("@TABLE_WORDS@", table_words(p).to_string()),
        ("@MAX_SLOT_BLOCKS@", MAX_SLOT_BLOCKS.to_string()),
    ];
    let file = |path: String, bytes| File { executable: path.ends_with(".sh"), path, bytes };
    let texts = WRITTEN.map(|(path, text)| file(path.into(), text.into()));
    let filled = TEMPLATES.map(|(path, text)| file(path.into(), fill(text, &marks).into_bytes()));
    // CANN's macros name the class of an operator, and its members follow from the kernel's parameters.
    let operators = KernelName::ALL.map(|kernel| {
        let marks = [
            ("@OP@", operator::name(kernel)),
            ("@INPUTS@", operator::input_numbers(kernel)),
            ("@SHAPES@", operator::shapes(kernel)),
            ("@TYPES@", operator::types(kernel)),
            ("@PROTOTYPE@", operator::prototype(kernel)),
        ];
        let text = fill(include_str!("opp/op_host/operator.cpp.in"), &marks);
        file(format!("op_host/{}.cpp", operator::entry(kernel)), text.into_bytes())
    });
    let sizes = file("op_host/avsg_sizes.h".into(), sizes(p, unit).into_bytes());
    let kernels =
        kernels.files().map(|(name, text)| file(format!("op_kernel/{name}"), text.into()));
    let all = texts.into_iter().chain(filled).chain(operators).chain([sizes]);
    let mut files: Vec<_> = all.chain(kernels).collect();
    if let Some(halves) = rules(&p.lifetime) {
        files.push(file("rules.f16".into(), halves.iter().flat_map(|h| h.to_le_bytes()).collect()));
    }
    files
}

/// Returns `avsg_sizes.h`.
fn sizes(p: &Params, unit: &str) -> String {
    let sizes = [
        ("K", p.k as usize, "ids per row at most"),
        ("SLOTS", p.slots as usize, "slots of a state"),
        ("TABLE_WORDS", table_words(p), "words of a table"),
        ("SUMMARY_WORDS", summary::WORDS, "words of a request's summary"),
        ("HALF_BYTES", HALF_BYTES as usize, "bytes of one half of the staging area"),
        ("HALF_ROWS", MAX_HALF_ROWS as usize, "rows at most in one half"),
        ("MAX_CHUNKS", MAX_CHUNKS as usize, "chunks of the host pool per layer"),
        ("MAX_SLOT_BLOCKS", MAX_SLOT_BLOCKS as usize, "entries of a state at most in slot_blocks"),
        ("MIN_SHARE", MIN_SHARE, "ids per core at least, if cores share a request"),
        ("MIN_SHARERS", MIN_SHARERS, "cores per request at least, if cores share it"),
    ];
    let sizes = sizes.map(|(name, n, doc)| format!("constexpr int64_t {name} = {n};  // {doc}\n"));
    format!(
        "// avsg_sizes.h: the sizes that the host code of the operators knows.\n// {p}\n\
         // Written by AVSG's linker; do not edit. Apache-2.0.\n#pragma once\n\n#include <cstdint>\n\n\
         namespace avsg {{\n\n{}constexpr const char *UNIT = \"{unit}\";  // compute unit\n\n}} // namespace avsg\n",
        sizes.concat()
    )
}
