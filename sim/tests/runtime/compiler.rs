//! The choice of the C++ compiler and of its flags.

use std::env;
use std::process::Command;

use avsg_sim::compiler;

const CHILD: &str = "AVSG_SIM_COMPILER";

/// Returns the command of the compiler that a child process with these variables finds.
fn compiler_command(variables: &[(&str, &str)]) -> String {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "compiler::child", "--nocapture"]).env(CHILD, "1");
    child.env_remove("CXX").env_remove("CXXFLAGS").envs(variables.iter().copied());
    let output = child.output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let line = output.lines().find_map(|line| line.split_once("found: "));
    line.unwrap_or_else(|| panic!("{output}")).1.to_owned()
}

#[test]
fn child() {
    if env::var_os(CHILD).is_some() {
        let words = |c: Command| {
            let words = std::iter::once(c.get_program()).chain(c.get_args());
            words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        println!("found: {}", compiler::cpp().map_or("nothing".into(), words));
    }
}

#[test]
fn the_variables_select_the_compiler_and_only_wall_is_added() {
    assert_eq!(compiler_command(&[("CXX", "/nowhere/c++")]), "nothing");
    if compiler::cpp().is_none() {
        println!("skipped: no C++ compiler here");
        return;
    }
    assert_eq!(compiler_command(&[]), "c++ -Wall", "the default compiler");
    assert_eq!(
        compiler_command(&[("CXX", "c++"), ("CXXFLAGS", "-DX=1 -g0")]),
        "c++ -Wall -DX=1 -g0"
    );
}

const CACHE_CHILD: &str = "AVSG_SIM_TEST_CACHE_CHILD";

/// Loads the kernel file that a variable names, in a process of its own.
#[test]
fn cache_child() {
    use avsg_sim::entries::{aclInit, aclrtBinaryLoadFromFile, aclrtSetDevice};
    use std::ptr::{null, null_mut};
    let Some(path) = env::var_os(CACHE_CHILD) else { return };
    let path = std::ffi::CString::new(path.into_encoded_bytes()).unwrap();
    let mut binary = null_mut();
    // SAFETY: every pointer is null or valid during the calls.
    let codes = unsafe {
        let init = [aclInit(null()), aclrtSetDevice(0)];
        (init, aclrtBinaryLoadFromFile(path.as_ptr(), null_mut(), &mut binary))
    };
    assert_eq!(codes, ([0; 2], 0));
}

/// Variables that do not change the compiler do not make it compile a kernel again.
#[test]
fn processes_with_other_variables_share_a_compiled_kernel() {
    if compiler::cpp().is_none() {
        println!("skipped: no C++ compiler here");
        return;
    }
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("shared_cache");
    let _ = std::fs::remove_dir_all(&folder);
    let cache = folder.join("cache");
    std::fs::create_dir_all(&folder).unwrap();
    let kernel = folder.join("kernel.cpp");
    std::fs::write(&kernel, "extern \"C\" int avsg_shim_launch() { return 0; }\n").unwrap();
    for (name, value) in [("AVSG_SIM", "hang=a"), ("AVSG_SIM", "hang=b"), ("SOME_VARIABLE", "x")] {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["--exact", "compiler::cache_child"]).env(CACHE_CHILD, &kernel);
        child.env("AVSG_SIM_CACHE", &cache).env(name, value);
        assert!(child.status().unwrap().success(), "{name}={value}");
    }
    let files = cache.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let libraries = files.filter(|path| path.extension().is_some_and(|end| end == "so")).count();
    assert_eq!(libraries, 1, "the kernel is compiled once");
}
