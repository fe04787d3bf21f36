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
const SOURCES: [&str; 14] = [
    "version",
    "status",
    "pool_config",
    "pool",
    "layout",
    "rows",
    "share",
    "caller_buffer",
    "config",
    "engine",
    "arrays",
    "plan",
    "step",
    "state",
];

/// Generates the header.
fn header() -> String {
    let enums = ["avsg_table", "avsg_lifetime", "avsg_machine", "avsg_strategy"];
    let more = ["avsg_pages", "avsg_role", "avsg_request_status"];
    let config = Config {
        language: Language::C,
        style: Style::Both,
        cpp_compat: true,
        usize_is_size_t: true,
        include_guard: Some("AVSG_H".into()),
        no_includes: true,
        sys_includes: vec!["stddef.h".into(), "stdint.h".into()],
        header: Some(fs::read_to_string(root().join("capi/intro.txt")).unwrap().trim_end().into()),
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
        for part in source.split("extern \"C\" fn ").skip(1) {
            let function = part.split('(').next().unwrap();
            let declared = text.matches(&format!("{function}(")).count();
            assert_eq!(declared, 1, "{function}");
            assert!(function.starts_with("avsg_"), "{function}");
        }
    }
}

#[test]
fn the_header_compiles_as_c_and_cpp() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("avsg.h"), header()).unwrap();
    let strict = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"];
    let body = "#include \"avsg.h\"\n#include \"avsg.h\"\nint main(void) { avsg_engine_config c; \
                (void)c; return avsg_abi_version() == AVSG_ABI_VERSION ? AVSG_OK : AVSG_INTERNAL; }\n";
    let mut compiled = 0;
    for (compiler, file, standards) in [
        ("gcc", "user.c", &["c99", "c11", "c17"][..]),
        ("clang", "user.c", &["c99", "c11", "c17"][..]),
        ("g++", "user.cpp", &["c++11", "c++14", "c++17", "c++20"][..]),
        ("clang++", "user.cpp", &["c++11", "c++14", "c++17", "c++20"][..]),
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
