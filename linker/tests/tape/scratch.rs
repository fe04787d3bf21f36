//! Folders of tests that build kernels.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};

/// A folder with the stand-in for CMake.
pub const STAND_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand_in");

/// Returns a new empty folder in the target folder.
pub fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a scratch folder");
    dir
}

pub fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

/// Checks that a text contains all of `parts`.
pub fn has(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "`{part}` is not in: {text}"));
}

/// Writes the module of CANN for CMake to `dir`, and returns the folder of CANN.
pub fn write_cann(dir: &Path) -> PathBuf {
    write(&dir.join("cann/compiler/tikcpp/ascendc_kernel_cmake/ascendc.cmake"), "");
    dir.join("cann")
}

/// Writes a program.
pub fn write_program(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    write(path, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a program");
}
