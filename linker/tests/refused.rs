//! Masks and run-time scalars are opaque: a data-dependent `if` in a kernel does not compile.
#![cfg(not(miri))]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The library that this test was linked with lies beside it. There may be others of older sources or
/// other profiles: this one's build came last, or nothing had changed since.
fn device() -> PathBuf {
    let test = env::current_exe().expect("a running test has a path");
    let files = fs::read_dir(test.parent().expect("a folder")).expect("a readable folder");
    let files = files.map(|file| file.expect("a readable folder").path());
    let ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libavsg_device-") && name.ends_with(".rlib")
    };
    let built = |path: &PathBuf| path.metadata().and_then(|m| m.modified()).expect("a file's time");
    files.filter(ours).max_by_key(built).expect("cargo built the device library")
}

/// What rustc says about a file of this package, without its count of errors and its advice.
fn said(file: &Path) -> (bool, String) {
    let device = device();
    // Beside the cargo that runs this test, because a rustc of another version cannot read the library.
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

/// Each file of `tests/refused` is refused, with the words of the `.stderr` beside it.
#[test]
fn data_dependent_branches_do_not_compile() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = fs::read_dir(root.join("tests/refused")).expect("files beside this one");
    let mut files: Vec<_> = folder.map(|file| file.expect("a readable folder").path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "rs"));
    assert!(files.len() >= 2, "only {} files", files.len());
    for file in files {
        let want = fs::read_to_string(file.with_extension("stderr")).expect("what rustc says");
        let (compiled, said) = said(file.strip_prefix(root).expect("a file of this package"));
        assert!(!compiled, "{} compiles", file.display());
        assert_eq!(said, want.trim(), "{}", file.display());
    }
}

/// The way that refuses them takes a kernel that is right.
#[test]
fn a_right_kernel_compiles() {
    let right = Path::new(env!("CARGO_TARGET_TMPDIR")).join("right.rs");
    let wrong = include_str!("refused/mask.rs");
    let text = wrong.replace("if m.is_negative(v) {", "{");
    assert_ne!(text, wrong);
    fs::write(&right, text).expect("a writable target directory");
    assert_eq!(said(&right), (true, String::new()));
}
