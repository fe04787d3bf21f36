//! The search for CANN and CMake, the project that builds kernels, and CANN's version.
//! `stand_in/cmake` replaces CMake with CANN's functions, and refuses what they would not honour.
#![cfg(unix)]

use std::env::consts::ARCH;
use std::fs;
use std::path::Path;
use std::process::Command;

use avsg_linker::ascend::cann::{self, Version};
use avsg_linker::ascend::object::{check_type, code_bytes};
use avsg_linker::ascend::toolchain::{Error, Toolchain, object, project};

use crate::scratch::{STAND_IN, has, scratch, write, write_cann, write_program};

/// Returns a toolchain with the stand-in for CMake, and CANN in `dir`.
fn toolchain(dir: &Path) -> Toolchain {
    Toolchain::find_in(Some(&write_cann(dir)), Some(STAND_IN.as_ref())).expect("the stand-in")
}

#[test]
fn each_layout_of_cann_is_found_and_missing_parts_are_named() {
    let dir = scratch("layouts");
    let home = dir.join("cann");
    let find = |path: &str| Toolchain::find_in(Some(&home), Some(path.as_ref()));
    let text = find(STAND_IN).unwrap_err().to_string();
    has(&text, &["ascendc.cmake", "ASCEND_HOME_PATH"]);
    has(&text, &["cann/compiler/tikcpp", "cann/tools/tikcpp"]);
    assert!(matches!(Toolchain::find_in(None, None), Err(Error::Missing(..))));
    for place in ["tools", &format!("{ARCH}-linux"), "compiler"] {
        let modules = home.join(place).join("tikcpp/ascendc_kernel_cmake");
        write(&modules.join("ascendc.cmake"), "");
        let found = find(STAND_IN).expect("CANN and CMake");
        assert_eq!((found.modules, found.home), (modules, home.clone()));
        assert_eq!(found.cmake, Path::new(STAND_IN).join("cmake"));
    }
    let text = find("/nowhere:/nowhere/else").unwrap_err().to_string();
    has(&text, &["no cmake", "/nowhere/cmake", "/nowhere/else/cmake", "3.16"]);
}

/// A kernel without statements, of a type.
fn kernel(name: &str, statements: &str) -> String {
    format!(
        "#include \"shared.h\"\n\nextern \"C\" __global__ __aicore__ void {name}(GM_ADDR tiling)\n{{\n{statements}}}\n"
    )
}

const VECTOR: &str = "    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);\n";
const SYNC: &str = "    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);\n    SyncAll<true>();\n";

#[test]
fn every_object_states_the_type_of_its_kernel() {
    let dir = scratch("types");
    let tool = toolchain(&dir);
    let folder = dir.join("kernels");
    write(&folder.join("shared.h"), "#pragma once\n// shared text\n");
    write(&folder.join("plan.cpp"), &kernel("plan", VECTOR));
    write(&folder.join("step.cpp"), &kernel("step", SYNC));
    tool.build(&folder, &["plan", "step"], "Ascend910B2").expect("both are built");
    let built = |name| fs::read(object(&folder, name)).expect("an object");
    has(&String::from_utf8_lossy(&built("plan")), &["for ascend910b2\n// shared text\n"]);
    assert_eq!(check_type(&built("plan"), "plan", false), Ok(()));
    assert_eq!(check_type(&built("step"), "step", true), Ok(()));
    let made = fs::read_to_string(folder.join("CMakeLists.txt")).expect("the project");
    assert_eq!(made, project(&["plan", "step"], "ascend910b2"), "the same project as a user's");
    // The machine that builds a project may have another architecture than the one that wrote it.
    let folder = "$ENV{ASCEND_HOME_PATH}/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux/tikcpp/";
    assert!(made.contains(folder) && !made.contains(ARCH) && !made.contains('@'), "{made}");
}

/// The shapes are those of objects in packages for a 910B.
#[test]
fn an_object_is_judged_by_the_words_of_its_type_and_has_the_size_of_its_functions() {
    let dir = scratch("shapes");
    let assembled = |text: &str| {
        write(&dir.join("k.s"), text);
        let done = Command::new("as").args(["k.s", "-o", "k.o"]).current_dir(&dir).status();
        assert!(done.expect("the assembler starts").success(), "{text}");
        fs::read(dir.join("k.o")).expect("an object")
    };
    let meta = |name: &str, words: &str| {
        assembled(&format!(".section .ascend.meta.{name}, \"a\"\n.2byte {words}\n"))
    };
    let vector = meta("k", "1, 4, 3, 0");
    let together = meta("k_mix_aiv", "1, 4, 5, 0, 3, 4, 0, 1");
    let cube = meta("k_mix_aiv", "1, 4, 4, 0, 3, 4, 1, 2");
    let other_first = meta("k", "2, 4, 1, 0, 1, 4, 3, 0");
    for (object, sync_all, refused) in [
        (&vector, false, ""),
        (&vector, true, "states the type 3 for k"),
        (&together, true, ""),
        (&together, false, ""),
        (&cube, true, "states the type 4 for k, with the cores Some([1, 0, 2, 0])"),
        (&cube, false, "states the type 4 for k"),
        (&other_first, false, ""),
        (&meta("k2", "1, 4, 3, 0"), false, "has no section .ascend.meta.k,"),
        (&meta("k", "1, 4"), false, "states the type 0 for k"),
        (&assembled(".ascii \".ascend.meta.k\"\n"), false, "has no section .ascend.meta.k,"),
    ] {
        let found = check_type(object, "k", sync_all).err().unwrap_or_default();
        assert!(
            found.starts_with(refused) && found.is_empty() == refused.is_empty(),
            "{refused}: {found}"
        );
    }
    let function = |name, bytes| {
        format!(".type {name}, %function\n{name}: .zero {bytes}\n.size {name}, {bytes}\n")
    };
    let code =
        [function("k", 96), function("called", 160), "data: .zero 8\n.size data, 8\n".into()];
    assert_eq!(code_bytes(&assembled(&code.concat())), Some(256));
    // No cut of an object is a panic.
    for end in 0..vector.len() {
        let _ = (check_type(&vector[..end], "k", false), code_bytes(&vector[..end]));
    }
}

#[test]
fn kernels_that_cann_would_refuse_or_that_would_hang_are_refused() {
    let dir = scratch("refused");
    let tool = toolchain(&dir);
    let mixed = kernel("k", VECTOR) + &kernel("other", SYNC);
    let cases = [
        ("type", kernel("k", ""), "must have one kernel type, and has: none"),
        ("types", mixed, "must have one kernel type"),
        ("sync", kernel("k", &SYNC.replace("MIX_AIV_1_0", "AIV_ONLY")), "calls SyncAll"),
        ("cube", kernel("k", &VECTOR.replace("AIV_ONLY", "AIC_ONLY")), "not a type of vector"),
        ("entry", "int x;\n".into(), "no entry point"),
        ("error", kernel("k", VECTOR) + "#error\n", "has an error"),
    ];
    for (name, text, expected) in cases {
        let folder = dir.join(name);
        write(&folder.join("shared.h"), "");
        write(&folder.join("k.cpp"), &text);
        // The object of an earlier build must not survive.
        write(&object(&folder, "k"), "an old object");
        let error = tool.build(&folder, &["k"], "ascend910b3").unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
        assert!(!object(&folder, "k").exists(), "{name}: the old object is left");
    }
    let folder = dir.join("soc");
    write(&folder.join("k.cpp"), &kernel("k", VECTOR));
    let error = tool.build(&folder, &["k"], "ascend310p").unwrap_err().to_string();
    assert!(error.contains("ascend310p is not a chip"), "{error}");
    // A direct run of the compiler drops the kernel type, and CMake succeeds all the same.
    let (cmake, out) = (dir.join("cmake"), object(&folder, "k"));
    let (parent, out) = (out.parent().expect("a folder").display(), out.display());
    let text = format!("#!/bin/sh\nmkdir -p {parent}\necho raw code of k > {out}\n");
    write_program(&cmake, &text);
    let untyped = "is no 64-bit ELF file";
    let failing = [(dir.join("gone"), "starting"), (dir.join("gone"), "gone"), (cmake, untyped)];
    for (cmake, part) in failing {
        let tool = Toolchain { cmake, ..toolchain(&dir) };
        let error = tool.build(&folder, &["k"], "ascend910b3").unwrap_err().to_string();
        has(&error, &[part]);
    }
}

#[test]
fn the_version_is_read_from_each_file_that_states_it() {
    let dir = scratch("version");
    let text = cann::version(&dir).unwrap_err();
    assert!(["ascend_toolkit_install.info", "version.info"].iter().all(|f| text.contains(f)));
    let toolkit = "package_name=Ascend-cann-toolkit\nversion=8.1.RC1\ninnerversion=V100R001\n";
    let files = [
        ("compiler/version.info", "Version=8.5.0\nversion_dir=cann\n", "8.5.0", (8, 5)),
        ("share/info/asc-devkit/version.info", "Version=9.1.0-beta.3\n", "9.1.0-beta.3", (9, 1)),
        (&format!("{ARCH}-linux/ascend_toolkit_install.info"), toolkit, "8.1.RC1", (8, 1)),
    ];
    // Each of these files is read before those that exist already.
    for (file, content, text, number) in files {
        write(&dir.join(file), content);
        assert_eq!(cann::version(&dir), Ok(Version { text: text.into(), number }), "{file}");
    }
    assert_eq!(Version::parse("latest"), None);
}

#[test]
fn an_old_version_is_too_old_for_what_the_documentation_lists() {
    let too_old = |text: &str| {
        let version = Version::parse(text).expect("a version");
        cann::too_old_for(&version).map(|requirement| requirement.what).collect::<Vec<_>>()
    };
    assert_eq!(too_old("8.0.RC3").len(), cann::REQUIREMENTS.len());
    let old = too_old("8.1.RC1");
    assert!(old.contains(&"build kernels") && !old.contains(&"run an engine"), "{old:?}");
    for new in ["8.5.0", "9.0.0", "10.0.0"] {
        assert_eq!(too_old(new), [""; 0], "{new}");
    }
    let page = include_str!("../../../docs/ascend.md");
    for requirement in cann::REQUIREMENTS {
        let (major, minor) = requirement.since;
        let row = format!("| {} | {major}.{minor} |", requirement.what);
        assert!(page.contains(&row), "docs/ascend.md has no row {row}");
    }
}
