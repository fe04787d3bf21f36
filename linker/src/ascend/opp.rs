//! Writes a custom operator package around the kernels of a geometry: a project that CANN's CMake
//! functions build. Its text calls documented interfaces of CANN only.

mod operator;

use avsg_device::kernels::KernelName;
use avsg_device::params::Params;
use avsg_device::request::record;
use avsg_device::rules::rules;
use avsg_device::share::{MIN_SHARE, MIN_SHARERS};
use avsg_device::tiling::{HALF_BYTES, MAX_CHUNKS, MAX_HALF_ROWS, MAX_SLOT_BLOCKS, Tiling};

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

const TEXTS: [(&str, &str); 8] = [
    ("CMakeLists.txt", include_str!("opp/CMakeLists.txt.in")),
    ("CMakePresets.json", include_str!("opp/CMakePresets.json.in")),
    ("README.md", include_str!("opp/README.md.in")),
    ("build.sh", include_str!("opp/build.sh.in")),
    ("example/avsg_step.cpp", include_str!("opp/example.cpp.in")),
    ("op_host/CMakeLists.txt", include_str!("opp/op_host.txt.in")),
    ("op_host/avsg_launch.h", include_str!("opp/launch.h.in")),
    ("op_kernel/CMakeLists.txt", include_str!("opp/op_kernel.txt.in")),
];

/// Returns the files of the project for a geometry. `unit` is the name of the compute unit, such as
/// `ascend910b`, and `kernels` are written for [`crate::ascend::kernels::Abi::Operator`].
pub fn project(p: &Params, unit: &str, kernels: &Kernels) -> Vec<File> {
    let marks: [(&str, String); 13] = [
        ("@UNIT@", unit.into()),
        ("@GEOMETRY@", p.to_string()),
        ("@FIELDS@", fields()),
        ("@K@", p.k.to_string()),
        ("@SLOTS@", p.slots.to_string()),
        ("@TABLE_WORDS@", table_words(p).to_string()),
        ("@RECORD_WORDS@", record::WORDS.to_string()),
        ("@HALF_BYTES@", HALF_BYTES.to_string()),
        ("@HALF_ROWS@", MAX_HALF_ROWS.to_string()),
        ("@MAX_CHUNKS@", MAX_CHUNKS.to_string()),
        ("@MAX_SLOT_BLOCKS@", MAX_SLOT_BLOCKS.to_string()),
        ("@MIN_SHARE@", MIN_SHARE.to_string()),
        ("@MIN_SHARERS@", MIN_SHARERS.to_string()),
    ];
    let file = |path: String, bytes| File { executable: path.ends_with(".sh"), path, bytes };
    let fill = |text: &str| {
        marks.iter().fold(text.to_string(), |text, (mark, value)| text.replace(mark, value))
    };
    let operators = KernelName::ALL.map(|kernel| {
        let marks = [
            ("@OP@", operator::name(kernel)),
            ("@INPUTS@", operator::input_numbers(kernel)),
            ("@SHAPES@", operator::shapes(kernel)),
            ("@TYPES@", operator::types(kernel)),
            ("@PROTOTYPE@", operator::prototype(kernel)),
        ];
        let text = include_str!("opp/op_host.cpp.in").to_string();
        let text = marks.iter().fold(text, |text, (mark, value)| text.replace(mark, value));
        let path = format!("op_host/{}.cpp", operator::entry(kernel));
        file(path, fill(&text).into_bytes())
    });
    let texts = TEXTS.iter().map(|(path, text)| file((*path).into(), fill(text).into_bytes()));
    let kernels =
        kernels.files().map(|(name, text)| file(format!("op_kernel/{name}"), text.into()));
    let mut files: Vec<_> = texts.chain(operators).chain(kernels).collect();
    if let Some(halves) = rules(&p.lifetime) {
        files.push(file("rules.f16".into(), halves.iter().flat_map(|h| h.to_le_bytes()).collect()));
    }
    files
}

/// Returns the declarations of the tiling data's fields with CANN's macros.
fn fields() -> String {
    let one = |field: &avsg_device::tiling::Field| match field.array {
        0 => format!("    TILING_DATA_FIELD_DEF(int32_t, {});", field.name),
        n => format!("    TILING_DATA_FIELD_DEF_ARR(int32_t, {n}, {});", field.name),
    };
    Tiling::FIELDS.iter().map(one).collect::<Vec<_>>().join("\n")
}
