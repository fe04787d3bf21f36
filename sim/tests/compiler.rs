//! The choice of the C++ compiler and of its flags.

use std::env;
use std::process::Command;

use avsg_sim::compiler;

const CHILD: &str = "AVSG_SIM_COMPILER";

/// Returns the command of the compiler that a child process with these variables finds.
fn compiler_command(variables: &[(&str, &str)]) -> String {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "child", "--nocapture"]).env(CHILD, "1");
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
