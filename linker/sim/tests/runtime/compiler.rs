//! The choice of the C++ compiler and of its flags.

use std::env;
use std::ffi::CString;
use std::path::Path;
use std::process::Command;
use std::ptr::{null, null_mut};

use avsg_sim::compiler;
use avsg_sim::entries::{aclInit, aclrtBinaryLoadFromFile, aclrtSetDevice};

/// The kernel file that a child process loads; none if it only prints its compiler.
const KERNEL: &str = "AVSG_SIM_TEST_KERNEL";

/// Returns a process that runs [`child`].
fn child_with(kernel: &str) -> Command {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "compiler::child", "--nocapture"]).env(KERNEL, kernel);
    child
}

/// Prints the command of the compiler, and loads the kernel file that a variable names.
#[test]
fn child() {
    let Some(kernel) = env::var_os(KERNEL) else { return };
    let words = |c: Command| {
        let words = std::iter::once(c.get_program()).chain(c.get_args());
        words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    };
    println!("found: {}", compiler::cpp().map_or("nothing".into(), words));
    if !kernel.is_empty() {
        let (path, mut binary) = (CString::new(kernel.into_encoded_bytes()).unwrap(), null_mut());
        // SAFETY: every pointer is null or valid during the calls.
        let codes = unsafe {
            let init = [aclInit(null()), aclrtSetDevice(0)];
            (init, aclrtBinaryLoadFromFile(path.as_ptr(), null_mut(), &mut binary))
        };
        assert_eq!(codes, ([0; 2], 0));
    }
}

#[test]
fn the_variables_select_the_compiler_and_only_wall_is_added() {
    let command = |variables: &[(&str, &str)]| {
        let mut child = child_with("");
        child.env_remove("CXX").env_remove("CXXFLAGS").envs(variables.iter().copied());
        let output = String::from_utf8(child.output().unwrap().stdout).unwrap();
        let line = output.lines().find_map(|line| line.split_once("found: "));
        line.unwrap_or_else(|| panic!("{output}")).1.to_owned()
    };
    assert_eq!(command(&[("CXX", "/nowhere/c++")]), "nothing");
    if compiler::cpp().is_none() {
        println!("skipped: no C++ compiler here");
        return;
    }
    assert_eq!(command(&[]), "c++ -Wall", "the default compiler");
    let chosen = command(&[("CXX", "c++"), ("CXXFLAGS", "-DX=1 -g0")]);
    assert_eq!(chosen, "c++ -Wall -DX=1 -g0");
}

/// Variables that do not change the compiler do not make it compile a kernel again.
#[test]
fn processes_with_other_variables_share_a_compiled_kernel() {
    if compiler::cpp().is_none() {
        println!("skipped: no C++ compiler here");
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shared_cache");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let (cache, kernel) = (folder.join("cache"), folder.join("kernel.cpp"));
    std::fs::write(&kernel, "extern \"C\" int avsg_shim_launch() { return 0; }\n").unwrap();
    for (name, value) in [("AVSG_SIM", "hang=a"), ("AVSG_SIM", "hang=b"), ("SOME_VARIABLE", "x")] {
        let mut child = child_with(kernel.to_str().unwrap());
        child.env("AVSG_SIM_CACHE", &cache).env(name, value);
        assert!(child.status().unwrap().success(), "{name}={value}");
    }
    let files = cache.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let libraries = files.filter(|path| path.extension().is_some_and(|end| end == "so")).count();
    assert_eq!(libraries, 1, "the kernel is compiled once");
}
