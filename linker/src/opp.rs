//! A custom operator package around the kernels of a geometry: a project that CANN's own CMake
//! functions build. All text is ours; what it calls is the documented interface.

use core::fmt::Write as _;

use avsg_device::params::{Lifetime, Params};
use avsg_device::stage_one::record;
use avsg_device::tiling::{HALF_BYTES, MAX_CHUNKS, MAX_HALF_ROWS, Tiling, rules};

use crate::write::kernels::{Access, Arg, Kernel, entries, geometry, table_words};

/// One file of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Below the project's folder.
    pub path: String,
    /// What it holds.
    pub bytes: Vec<u8>,
    /// Whether it is a program.
    pub executable: bool,
}

/// The project of a geometry. `unit` is the compute unit's name, such as `ascend910b`; `kernels` are
/// written for [`crate::write::kernels::Abi::Operator`].
pub fn project(p: &Params, unit: &str, kernels: &[Kernel]) -> Vec<File> {
    let sources: Vec<_> = entries()
        .iter()
        .map(|(name, _)| format!("  ${{CMAKE_CURRENT_SOURCE_DIR}}/{name}.cpp"))
        .collect();
    let fill = |text: &str| {
        let marks: [(&str, &str); 11] = [
            ("@SOURCES@", &sources.join("\n")),
            ("@UNIT@", unit),
            ("@GEOMETRY@", &geometry(p)),
            ("@FIELDS@", &fields()),
            ("@K@", &p.k.to_string()),
            ("@SLOTS@", &p.slots.to_string()),
            ("@TABLE_WORDS@", &table_words(p).to_string()),
            ("@RECORD_WORDS@", &record::WORDS.to_string()),
            ("@HALF_BYTES@", &HALF_BYTES.to_string()),
            ("@HALF_ROWS@", &MAX_HALF_ROWS.to_string()),
            ("@MAX_CHUNKS@", &MAX_CHUNKS.to_string()),
        ];
        marks.iter().fold(text.to_string(), |text, (mark, value)| text.replace(mark, value))
    };
    let file = |path: &str, text: &str| File {
        path: path.into(),
        bytes: fill(text).into_bytes(),
        executable: text.starts_with("#!"),
    };
    let mut files = vec![
        file("CMakeLists.txt", include_str!("opp/CMakeLists.txt.in")),
        file("CMakePresets.json", include_str!("opp/CMakePresets.json.in")),
        file("README.md", include_str!("opp/README.md.in")),
        file("build.sh", include_str!("opp/build.sh.in")),
        file("example/avsg_step.cpp", include_str!("opp/example.cpp.in")),
        file("op_host/CMakeLists.txt", include_str!("opp/op_host.txt.in")),
        file("op_host/avsg_launch.h", include_str!("opp/launch.h.in")),
        file("op_kernel/CMakeLists.txt", include_str!("opp/op_kernel.txt.in")),
    ];
    for (name, args) in entries() {
        let text = operator(name, &args, include_str!("opp/op.cpp.in"));
        files.push(file(&format!("op_host/{name}.cpp"), &text));
    }
    files.extend(kernels.iter().map(|k| File {
        path: format!("op_kernel/{}.cpp", k.name),
        bytes: k.text.clone().into_bytes(),
        executable: false,
    }));
    if let Lifetime::Frequency(rule) = &p.lifetime {
        let bytes = rules(rule).iter().flat_map(|half| half.to_le_bytes()).collect();
        files.push(File { path: "rules.f16".into(), bytes, executable: false });
    }
    files
}

/// The fields of the tiling data, in CANN's words.
fn fields() -> String {
    let one = |field: &avsg_device::tiling::Field| match field.array {
        0 => format!("    TILING_DATA_FIELD_DEF(int32_t, {});", field.name),
        n => format!("    TILING_DATA_FIELD_DEF_ARR(int32_t, {n}, {});", field.name),
    };
    Tiling::FIELDS.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// One operator's host part.
fn operator(name: &str, args: &[Arg], template: &str) -> String {
    let inputs: Vec<_> = args.iter().filter(|a| a.access != Access::Out && !last(a)).collect();
    let state = inputs.iter().copied().filter(|a| a.access == Access::State);
    let outputs: Vec<_> = args.iter().filter(|a| a.access == Access::Out).chain(state).collect();
    let input = |name: &str| inputs.iter().position(|a| a.name == name);
    let number = |name: &str| input(name).map_or("-1".into(), |i| i.to_string());
    let places = ["ids", "state", "blockTable", "tables", "hostChunks"].map(number).join(", ");
    let (mut shapes, mut types, mut definition) = (String::new(), String::new(), String::new());
    let (ids, requests) = (number("ids"), number("state"));
    for (i, output) in outputs.iter().enumerate() {
        let shape = match (output.access, output.name) {
            (Access::State, name) => format!("*context->GetOptionalInputShape({})", number(name)),
            (_, "slot") => format!("{{avsg::Dim(context, {ids}, 0), avsg::K}}"),
            (_, "valid") => format!("{{avsg::Dim(context, {ids}, 0)}}"),
            (_, "record") => format!("{{avsg::Dim(context, {requests}, 0), avsg::RECORD_WORDS}}"),
            _ => format!("{{avsg::Dim(context, {ids}, 0) * avsg::K}}"),
        };
        let kind = match (output.access, input(output.name)) {
            (Access::State, Some(from)) => format!("context->GetOptionalInputDataType({from})"),
            _ => "DT_INT32".into(),
        };
        let _ = writeln!(shapes, "    *context->GetOutputShape({i}) = {shape};");
        let _ = writeln!(types, "    context->SetOutputDataType({i}, {kind});");
    }
    for (side, list) in [("Input", &inputs), ("Output", &outputs)] {
        for arg in list {
            let needed = if arg.access == Access::Optional { "OPTIONAL" } else { "REQUIRED" };
            let kind = match arg.name {
                "hostChunks" => "POINTERS",
                "rules" => "HALVES",
                name if name.starts_with("kv") || name.starts_with("fresh") => "ROWS",
                _ => "WORDS",
            };
            let _ = writeln!(
                definition,
                "        this->{side}(\"{}\").ParamType({needed}).DataType(avsg::{kind}).Format(avsg::ND);",
                snake(arg.name)
            );
        }
    }
    let copies = input("hostChunks").is_some();
    if copies || requests != "-1" {
        definition.push_str("        this->Attr(\"pool_units\").AttrType(REQUIRED).Int();\n");
    }
    if copies {
        for attr in ["bytes", "host_stride", "kv_stride", "fresh_stride", "chunks", "chunk_shift"] {
            let _ = writeln!(
                definition,
                "        this->Attr(\"{attr}\").AttrType(REQUIRED).ListInt();"
            );
        }
        definition.push_str("        this->Attr(\"copy_cores\").AttrType(OPTIONAL).Int(0);\n");
    }
    if outputs.is_empty() {
        shapes.push_str("    (void)context;\n");
        types.push_str("    (void)context;\n");
    }
    [
        ("@TYPE@", camel(name).as_str()),
        ("@PLACES@", &places),
        ("@SHAPES@", shapes.trim_end()),
        ("@TYPES@", types.trim_end()),
        ("@DEFINITION@", definition.trim_end()),
    ]
    .iter()
    .fold(template.to_string(), |text, (mark, value)| text.replace(mark, value))
}

/// Workspace and tiling: CANN passes them by itself.
fn last(arg: &Arg) -> bool {
    matches!(arg.name, "workspace" | "tiling")
}

/// `missSlot` as `miss_slot`.
fn snake(name: &str) -> String {
    name.chars().fold(String::new(), |mut text, c| {
        if c.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
        text
    })
}

/// `avsg_step` as `AvsgStep`.
fn camel(name: &str) -> String {
    name.split('_').fold(String::new(), |text, word| {
        let (head, tail) = word.split_at(1);
        text + &head.to_uppercase() + tail
    })
}
