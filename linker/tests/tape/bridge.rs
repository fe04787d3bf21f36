//! The kernels that a build script embeds. `stand_in/cmake` replaces CMake with CANN's functions.
#![cfg(unix)]

use std::fs;
use std::path::Path;

use avsg_device::kernels::KernelName;
use avsg_linker::ascend::object::check_type;
use avsg_linker::ascend::toolchain::{self, Toolchain};
use avsg_linker::bridge::{EmbedError, FILE, embed, geometries};

use crate::scratch::{STAND_IN, has, scratch, write_cann, write_program};

/// Returns a toolchain whose CMake refuses sources for which `refused`, a condition of the shell,
/// is true.
fn fake_toolchain(folder: &Path, refused: &str) -> Result<Toolchain, toolchain::Error> {
    let text = format!(
        "#!/bin/bash\nif {refused}; then echo 'error: no' >&2; exit 3; fi\nexec {STAND_IN}/cmake \"$@\"\n"
    );
    write_program(&folder.join("cmake"), &text);
    Toolchain::find_in(Some(&write_cann(folder)), Some(folder.as_os_str()))
}

/// Returns the error of a search that finds no compiler.
fn missing_toolchain() -> Result<Toolchain, toolchain::Error> {
    Toolchain::find_in(Some("/nowhere".as_ref()), None)
}

#[test]
fn every_default_geometry_is_embedded_with_its_objects() {
    let out = scratch("objects");
    let tool = fake_toolchain(&out, "false");
    let warnings = embed(&out, tool, true).expect("all compile");
    assert_eq!(warnings, [""; 0]);
    let rust = fs::read_to_string(out.join(FILE)).expect("the Rust file");
    let (mut offset, all) = (0, geometries().collect::<Vec<_>>());
    assert_eq!(all.len(), 4, "each default geometry fits");
    // The includes have the order of the kernels.
    for (n, p) in all.iter().enumerate() {
        for name in KernelName::ALL.map(|name| name.entry().to_str().expect("an ASCII name")) {
            let file = format!("kernels{n}/fatbin/{name}/{name}.o");
            let found = rust[offset..].find(&format!("include_bytes!(\"{file}\")"));
            offset += found.unwrap_or_else(|| panic!("{file} is missing or not in order: {rust}"));
            // An object is the kernel's text with its headers.
            let object = fs::read(out.join(&file)).expect("what is included");
            // Only a step has SyncAll.
            assert_eq!(check_type(&object, name, name == "avsg_step"), Ok(()), "{file}");
            let text = String::from_utf8_lossy(&object);
            has(&text, &["for ascend910b3\n"]);
            assert!(text.contains(&format!("// {p}\n")), "{file} is not for {p}");
            let includes: Vec<_> = text.lines().filter(|l| l.starts_with("#include")).collect();
            let only = ["#include \"kernel_operator.h\""];
            assert_eq!(includes, only, "{file} includes files that are not beside it");
        }
    }
}

/// Without a compiler, or with one that refuses a geometry, only the text is embedded, unless objects are required.
#[test]
fn what_cannot_be_compiled_is_embedded_as_text_if_objects_are_not_required() {
    let out = scratch("refusal");
    let texts = || {
        let rust = fs::read_to_string(out.join(FILE)).expect("the Rust file");
        rust.matches("objects: None").count()
    };
    assert_eq!(embed(&out, missing_toolchain(), false).expect("no object is required"), [""; 0]);
    assert_eq!(texts(), geometries().count());
    let text = embed(&out, missing_toolchain(), true).unwrap_err().to_string();
    let modules = "/nowhere/compiler/tikcpp/ascendc_kernel_cmake/ascendc.cmake";
    has(&text, &["AVSG_REQUIRE_CANN is 1", modules, "ASCEND_HOME_PATH"]);
    let refuses = || fake_toolchain(&out, r#"[[ "$*" = *kernels1* ]]"#);
    let warnings = embed(&out, refuses(), false).expect("a warning is no error");
    let [warning] = &warnings[..] else { panic!("one geometry is refused: {warnings:?}") };
    let refused = geometries().nth(1).expect("the second");
    assert!(warning.contains(&refused.to_string()) && warning.contains("error: no"), "{warning}");
    assert_eq!(texts(), 1, "the other geometries have objects");
    let error = embed(&out, refuses(), true).unwrap_err();
    assert!(matches!(error, EmbedError::Cann(toolchain::Error::Failed(_))), "{error}");
    assert!(error.to_string().contains("error: no"), "{error}");
}
