//! The shared library exports exactly the symbols of the runtime and can be loaded by its path.

use std::ffi::{c_char, c_int};
use std::path::{Path, PathBuf};
use std::process::Command;

use libloading::Library;

/// Returns the path of the library that cargo built for this test.
fn library() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let name = "libavsg_ascendcl_sim.so";
    [deps.parent().unwrap().join(name), deps.join(name)]
        .into_iter()
        .find(|path| path.exists())
        .unwrap_or_else(|| {
            panic!("{name} is not beside {}; build the package avsg-sim-so", deps.display())
        })
}

fn exported(path: &Path) -> Vec<String> {
    let out = Command::new("nm").args(["-D", "--defined-only"]).arg(path).output().unwrap();
    assert!(out.status.success());
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().last().map(str::to_owned)).collect()
}

#[test]
fn the_library_exports_only_symbols_of_the_runtime() {
    let symbols = exported(&library());
    assert!(symbols.iter().all(|name| name.starts_with("acl")), "{symbols:?}");
    assert!(symbols.len() > 50 && symbols.iter().any(|name| name == "aclrtLaunchKernelWithConfig"));
}

#[test]
fn the_library_can_be_loaded_by_its_path() {
    // SAFETY: the library is the simulator, which has no initialisers that run at loading.
    let library = unsafe { Library::new(library()) }.unwrap();
    type Init = unsafe extern "C" fn(*const c_char) -> c_int;
    // SAFETY: the header declares `aclInit` with this signature.
    let init = unsafe { library.get::<Init>(b"aclInit\0") }.unwrap();
    // SAFETY: the header declares `aclrtSetDevice` with this signature.
    let set = unsafe { library.get::<unsafe extern "C" fn(i32) -> c_int>(b"aclrtSetDevice\0") };
    let set = set.unwrap();
    // SAFETY: a null configuration is valid, and the library stays loaded during the calls.
    unsafe {
        assert_eq!(init(std::ptr::null()), 0);
        assert_eq!((set(0), set(1)), (0, 107_001));
    }
}
