//! The kernels that a build script embeds. A shell script replaces Ascend's compiler.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use avsg_device::kernels::KernelName;
use avsg_device::params::Params;
use avsg_linker::ascendc::ascendc;
use avsg_linker::ascendc::kernels::Abi;
use avsg_linker::bridge::{Error, FILE, embed, geometries};
use avsg_linker::toolchain::{self, Toolchain};

/// Returns a new empty folder in the target folder.
fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bridge").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a scratch folder");
    dir
}

/// Writes a compiler that runs the lines of shell script; `$source` and `$object` are its files.
fn fake_toolchain(folder: &Path, lines: &str) -> Result<Toolchain, toolchain::Error> {
    let compiler = folder.join("bisheng");
    let text = format!("#!/bin/bash\nsource=${{@: -3:1}} object=${{@: -1}}\n{lines}\n");
    fs::write(&compiler, text).expect("a script");
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).expect("a program");
    Toolchain::find_in(None, Some(folder.as_os_str()))
}

/// Returns the error of a search that finds no compiler.
fn missing_toolchain() -> Result<Toolchain, toolchain::Error> {
    Toolchain::find_in(None, Some("/nowhere".as_ref()))
}

fn kernel_names() -> [&'static str; 5] {
    KernelName::ALL.map(|kernel| kernel.entry().to_str().expect("an ASCII name"))
}

#[test]
fn every_default_geometry_is_embedded_with_its_objects() {
    let out = scratch("objects");
    let tool = fake_toolchain(&out, r#"echo "object of $(basename "$source")" > "$object""#);
    assert_eq!(
        embed(&out, tool, true).expect("all compile"),
        [""; 0],
        "there is nothing to warn of"
    );
    let rust = fs::read_to_string(out.join(FILE)).expect("the Rust file");
    let (mut offset, all) = (0, geometries().collect::<Vec<_>>());
    assert_eq!(all.len(), 4, "each default geometry fits");
    // The includes have the order of the kernels, and the texts come before the objects.
    for (n, p) in all.iter().enumerate() {
        for (include, end) in [("include_str", "cpp"), ("include_bytes", "o")] {
            for name in kernel_names() {
                let file = format!("kernels{n}/{name}.{end}");
                let found = rust[offset..].find(&format!("{include}!(\"{file}\")"));
                offset +=
                    found.unwrap_or_else(|| panic!("{file} is missing or not in order: {rust}"));
                let text = fs::read_to_string(out.join(&file)).expect("what is included");
                match end {
                    "o" => assert_eq!(text, format!("object of {name}.cpp\n")),
                    _ => {
                        assert!(text.contains(&format!("// {p}\n")), "{file} is not for {p}");
                        let includes: Vec<_> =
                            text.lines().filter(|l| l.starts_with("#include")).collect();
                        assert_eq!(
                            includes,
                            ["#include \"kernel_operator.h\""],
                            "{file} includes other files"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn without_a_compiler_only_texts_are_embedded() {
    let out = scratch("texts");
    assert_eq!(embed(&out, missing_toolchain(), false).expect("no object is required"), [""; 0]);
    let rust = fs::read_to_string(out.join(FILE)).expect("the Rust file");
    assert_eq!(rust.matches("objects: None").count(), geometries().count());
    assert!(rust.contains("include_str!(\"kernels0/avsg_plan.cpp\")"), "{rust}");
    let text = embed(&out, missing_toolchain(), true).unwrap_err().to_string();
    for part in ["AVSG_REQUIRE_CANN is 1", "/nowhere/bisheng", "ASCEND_HOME_PATH"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_compiler_error_is_a_warning_if_objects_are_not_required() {
    let out = scratch("refusal");
    let refuses = r#"case "$source" in *kernels1/avsg_step*) echo 'error: no' >&2; exit 3;; esac
echo object > "$object""#;
    let warnings =
        embed(&out, fake_toolchain(&out, refuses), false).expect("a warning is no error");
    let [warning] = &warnings[..] else { panic!("one geometry is refused: {warnings:?}") };
    let refused = geometries().nth(1).expect("the second");
    assert!(warning.contains(&refused.to_string()) && warning.contains("error: no"), "{warning}");
    let rust = fs::read_to_string(out.join(FILE)).expect("the Rust file");
    assert_eq!(rust.matches("objects: None").count(), 1, "the other geometries have objects");
    let error = embed(&out, fake_toolchain(&out, refuses), true).unwrap_err();
    assert!(matches!(error, Error::Cann(toolchain::Error::Failed(_))), "{error}");
    assert!(error.to_string().contains("error: no"), "{error}");
}

/// An engine with fewer tokens runs the kernels for more, which differ in one constant only: the
/// maximum number of rows of a request.
#[test]
fn the_number_of_tokens_changes_one_constant_only() {
    for largest in geometries() {
        let text = |p: &Params| {
            let all = ascendc(p, Abi::Direct).expect("the geometry fits");
            let without_geometry = |text: String| text.replace(&p.to_string(), "");
            all.files()
                .map(|(name, text)| (name, without_geometry(text.into())))
                .collect::<Vec<_>>()
        };
        let constant = |n: u32| format!("constexpr int32_t TOKENS = {n};");
        for tokens in 1..largest.tokens {
            let fewer = text(&Params { tokens, ..largest });
            for ((name, more), (_, fewer)) in text(&largest).into_iter().zip(fewer) {
                let more = more.replace(&constant(largest.tokens), &constant(tokens));
                assert!(more == fewer, "{name} of {largest} differs with N_q {tokens}");
            }
        }
    }
}
