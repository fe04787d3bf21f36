//! `include/avsg.h` is the header that cbindgen generates from `capi/src`, and it compiles as C99
//! to C17 and C++11 to C++20. The tests regenerate the file if the environment variable `BLESS` is
//! set.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cbindgen::{Builder, Config, EnumConfig, ExportConfig, Language, Style};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The modules of `capi/src` in the order of their declarations in the header.
const SOURCES: [&str; 20] = [
    "version",
    "status",
    "log",
    "allocator",
    "pool_config",
    "pool",
    "layout",
    "rows",
    "share",
    "workers",
    "caller_buffer",
    "choices",
    "config",
    "engine",
    "sizes",
    "arrays",
    "plan",
    "step",
    "state",
    "stats",
];

/// The initialiser of every struct with a `size`, for C.
const INIT: &str = "
/**
 * A struct of this type with its `size` set and every other field 0.
 */
#ifndef __cplusplus
#define AVSG_INIT(type) ((type){.size = sizeof(type)})
#endif";

/// Generates the header.
fn header() -> String {
    let enums = ["avsg_table", "avsg_lifetime", "avsg_machine", "avsg_strategy"];
    let more = [
        "avsg_pages",
        "avsg_role",
        "avsg_request_status",
        "avsg_copier",
        "avsg_log_level",
        "avsg_memory_kind",
    ];
    let config = Config {
        language: Language::C,
        style: Style::Both,
        cpp_compat: true,
        usize_is_size_t: true,
        include_guard: Some("AVSG_H".into()),
        no_includes: true,
        sys_includes: vec!["stddef.h".into(), "stdint.h".into()],
        header: Some(fs::read_to_string(root().join("capi/intro.txt")).unwrap().trim_end().into()),
        after_includes: Some(INIT.into()),
        line_length: 100,
        sort_by: cbindgen::SortKey::None,
        documentation_style: cbindgen::DocumentationStyle::Doxy,
        export: ExportConfig {
            include: enums.iter().chain(&more).map(ToString::to_string).collect(),
            ..Default::default()
        },
        function: cbindgen::FunctionConfig {
            sort_by: Some(cbindgen::SortKey::None),
            ..Default::default()
        },
        enumeration: EnumConfig { prefix_with_name: false, ..Default::default() },
        ..Default::default()
    };
    let from = |builder: Builder, name| {
        builder.with_src(root().join("capi/src").join(name).with_extension("rs"))
    };
    let bindings = SOURCES.into_iter().fold(Builder::new().with_config(config), from);
    let mut bytes = Vec::new();
    bindings.generate().unwrap().write(&mut bytes);
    // Rust's lints demand a section `# Safety`. Where it only names rules of the introduction,
    // those hold anyway.
    let text = String::from_utf8(bytes).unwrap();
    let text = text.replace(" *\n * # Safety\n * The pointers keep the rule Pointers.\n", "");
    let text = text.replace(" # Safety\n * The pointers keep the rules ", " Rules: ");
    text.replace(" # Safety\n * ", " Pointers: ")
}

#[test]
fn the_header_in_the_repository_is_up_to_date() {
    let (path, new) = (root().join("include/avsg.h"), header());
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &new).unwrap();
    }
    let old = fs::read_to_string(&path).unwrap_or_default();
    let differs = old.lines().zip(new.lines()).find(|(old, new)| old != new);
    assert!(old == new, "run BLESS=1 cargo test -p avsg-capi --test header; first: {differs:?}");
}

#[test]
fn every_exported_function_is_declared_once() {
    let text = header();
    for name in SOURCES {
        let source = fs::read_to_string(root().join(format!("capi/src/{name}.rs"))).unwrap();
        for part in source.split("#[unsafe(no_mangle)]").skip(1) {
            let part = part.split("extern \"C\" fn ").nth(1).unwrap();
            let function = part.split('(').next().unwrap();
            let declared = text.matches(&format!("{function}(")).count();
            assert_eq!(declared, 1, "{function}");
            assert!(function.starts_with("avsg_"), "{function}");
        }
    }
}

/// Returns the names of the structs that begin with their size.
fn sized_structs() -> Vec<String> {
    let text = header();
    let structs = text.split("typedef struct ").skip(1);
    let sized = structs.filter(|text| {
        let body = text.split("} ").next().unwrap();
        body.contains("size_t size;") && body.contains('{')
    });
    sized.map(|text| text.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn the_cpp_wrapper_has_every_function_of_the_header() {
    let wrapper = fs::read_to_string(root().join("include/avsg.hpp")).unwrap();
    // A C++ program reads these three from the header itself.
    let plain = ["avsg_abi_version", "avsg_version", "avsg_devices"];
    let mut wrapped = 0;
    for name in SOURCES {
        let source = fs::read_to_string(root().join(format!("capi/src/{name}.rs"))).unwrap();
        for part in source.split("extern \"C\" fn ").skip(1) {
            let function = part.split('(').next().unwrap();
            if !function.starts_with("avsg_") {
                continue;
            }
            let named = wrapper.contains(&format!("{function}("))
                || wrapper.contains(&format!("{function}>"));
            assert!(named || plain.contains(&function), "avsg.hpp does not call {function}");
            wrapped += usize::from(named);
        }
    }
    assert!(wrapped > 30, "{wrapped} functions are wrapped");
    assert!(sized_structs().len() >= 11, "{:?}", sized_structs());
}

#[test]
fn the_header_compiles_as_c_and_cpp() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("avsg.h"), header()).unwrap();
    let strict = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"];
    let include = "#include \"avsg.h\"\n#include \"avsg.h\"\n";
    let version = "return avsg_abi_version() == AVSG_ABI_VERSION ? AVSG_OK : AVSG_INTERNAL; }\n";
    let (mut c, mut cpp) = (String::new(), String::new());
    for name in sized_structs() {
        c += &format!("  {{ {name} value = AVSG_INIT({name}); if (value.size == 0) return 1; }}\n");
        cpp += &format!("  if (avsg::init<{name}>().size != sizeof({name})) return 1;\n");
    }
    let c = format!("{include}int main(void) {{\n{c}  {version}");
    let cpp = format!("#include \"avsg.hpp\"\n{include}int main() {{\n{cpp}  {version}");
    let old_cpp = format!("{include}int main(void) {{ avsg_engine_config c; (void)c; {version}");
    fs::copy(root().join("include/avsg.hpp"), folder.path().join("avsg.hpp")).unwrap();
    let mut compiled = 0;
    for (compiler, file, body, standards) in [
        ("gcc", "user.c", &c, &["c99", "c11", "c17"][..]),
        ("clang", "user.c", &c, &["c99", "c11", "c17"][..]),
        ("g++", "old.cpp", &old_cpp, &["c++11", "c++14"][..]),
        ("g++", "user.cpp", &cpp, &["c++17", "c++20"][..]),
        ("clang++", "old.cpp", &old_cpp, &["c++11", "c++14"][..]),
        ("clang++", "user.cpp", &cpp, &["c++17", "c++20"][..]),
    ] {
        if Command::new(compiler).arg("--version").output().is_err() {
            println!("skipped: no {compiler} on this machine");
            continue;
        }
        let source = folder.path().join(file);
        fs::write(&source, body).unwrap();
        for standard in standards {
            let mut command = Command::new(compiler);
            command.args(strict).arg(format!("-std={standard}"));
            let out = command.arg(&source).output().unwrap();
            let text = String::from_utf8_lossy(&out.stderr);
            assert!(out.status.success(), "{compiler} -std={standard}: {text}");
            compiled += 1;
        }
    }
    assert!(compiled > 0, "no compiler is installed; install gcc or clang");
}
