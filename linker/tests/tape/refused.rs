//! Masks and run-time scalars are opaque: a data-dependent `if` in a kernel does not compile.
#![cfg(not(miri))]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Returns the device library that this test was linked with. It is beside the test and is the
/// newest of the device libraries there; the others are of older sources or other profiles.
fn device_library() -> PathBuf {
    let test = env::current_exe().expect("a running test has a path");
    let files = fs::read_dir(test.parent().expect("a folder")).expect("a readable folder");
    let files = files.map(|file| file.expect("a readable folder").path());
    let is_device = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libavsg_device-") && name.ends_with(".rlib")
    };
    let built = |path: &PathBuf| path.metadata().and_then(|m| m.modified()).expect("a file's time");
    files.filter(is_device).max_by_key(built).expect("cargo built the device library")
}

/// Compiles a file of this package. Returns whether it compiles and the output of rustc without the
/// count of errors and its advice.
fn compile(file: &Path) -> (bool, String) {
    let device = device_library();
    // The rustc beside cargo is used, because a rustc of another version cannot read the library.
    let beside = Path::new(env!("CARGO")).with_file_name("rustc");
    let rustc = if beside.is_file() { beside } else { "rustc".into() };
    let out = Command::new(rustc)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("RUST_LOG")
        .args(["--edition=2024", "--emit=metadata", "--color=never", "--cap-lints=allow", "-o"])
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("refused.rmeta"))
        .arg("--extern")
        .arg(format!("avsg_device={}", device.display()))
        .arg("-L")
        .arg(format!("dependency={}", device.parent().expect("a folder").display()))
        .arg(file)
        .output()
        .expect("rustc runs");
    let text = String::from_utf8(out.stderr).expect("rustc writes UTF-8");
    let ends =
        ["error: aborting due to", "For more information about", "Some errors have detailed"];
    let kept = text.lines().filter(|line| !ends.iter().any(|end| line.starts_with(end)));
    let kept: Vec<_> = kept.collect();
    (out.status.success(), kept.join("\n").trim().to_string())
}

/// Each file of `tests/refused` is refused with the errors in the `.stderr` file beside it.
#[test]
fn data_dependent_branches_do_not_compile() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = fs::read_dir(root.join("tests/refused")).expect("files beside this one");
    let mut files: Vec<_> = folder.map(|file| file.expect("a readable folder").path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "rs"));
    assert!(files.len() >= 2, "only {} files", files.len());
    for file in files {
        let want = fs::read_to_string(file.with_extension("stderr")).expect("the expected errors");
        let (compiled, output) = compile(file.strip_prefix(root).expect("a file of this package"));
        assert!(!compiled, "{} compiles", file.display());
        assert_eq!(output, want.trim(), "{}", file.display());
    }
}

/// The same call of rustc accepts a kernel without such a branch.
#[test]
fn a_kernel_without_a_branch_compiles() {
    let right = Path::new(env!("CARGO_TARGET_TMPDIR")).join("right.rs");
    let wrong = include_str!("../refused/mask.rs");
    let text = wrong.replace("if m.is_negative(v) {", "{");
    assert_ne!(text, wrong);
    fs::write(&right, text).expect("a writable target directory");
    assert_eq!(compile(&right), (true, String::new()));
}
