//! `capi/install.sh` installs the library, and programs find it by pkg-config and by CMake. The
//! shared library exports the functions of the header and nothing else.

use std::fs;
use std::process::Command;

use crate::generate::root;

/// Runs a command, which must succeed, and returns what it printed.
fn run(command: &mut Command) -> String {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&out.stderr));
    text
}

/// Returns whether a tool is installed, and prints a line if not.
pub fn have(tool: &str) -> bool {
    let runs = Command::new(tool).arg("--version").output().is_ok_and(|out| out.status.success());
    if !runs {
        println!("skipped: no {tool} on this machine");
    }
    runs
}

/// One test checks everything, because an installation builds the library.
#[test]
fn an_installed_library_is_found_and_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (prefix, root) = (folder.path().join("prefix"), root());
    let mut install = Command::new(root.join("capi/install.sh"));
    install.args(["--profile", "dev", "--prefix"]).arg(&prefix);
    run(&mut install);
    let lib = prefix.join("lib");

    let table = run(Command::new("nm").args(["-D", "--defined-only"]).arg(lib.join("libavsg.so")));
    let names: Vec<&str> = table.lines().filter_map(|l| l.split_whitespace().last()).collect();
    let others: Vec<_> = names.iter().filter(|name| !name.starts_with("avsg_")).collect();
    assert!(others.is_empty() && names.len() > 30, "{others:?} among {}", names.len());
    let header = fs::read_to_string(prefix.join("include/avsg.h")).unwrap();
    for name in names {
        assert!(header.contains(&format!("{name}(")), "{name} is exported, but not declared");
    }

    let source = root.join("examples/c/decode.c");
    if have("pkg-config") {
        let pkg_config = |options: &[&str]| {
            let mut command = Command::new("pkg-config");
            command.env("PKG_CONFIG_PATH", lib.join("pkgconfig")).args(options).arg("avsg");
            run(&mut command).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(pkg_config(&["--modversion"]), [env!("CARGO_PKG_VERSION")]);
        let program = folder.path().join("decode");
        let mut cc = avsg_sim::compiler::c().expect("a C compiler, which linked the library");
        cc.arg(&source).arg("-o").arg(&program).args(pkg_config(&["--cflags", "--libs"]));
        run(&mut cc);
        let text = run(Command::new(&program).env("LD_LIBRARY_PATH", &lib));
        assert!(text.contains(" 0 wrong"), "{text}");
    }
    if have("cmake") {
        // The CMake package must work after its prefix was moved.
        let moved = folder.path().join("moved");
        fs::rename(&prefix, &moved).unwrap();
        let project = format!(
            "cmake_minimum_required(VERSION 3.10)\nproject(user C)\nfind_package(avsg {} REQUIRED)\n\
             add_executable(shared {source})\ntarget_link_libraries(shared avsg::avsg)\n\
             add_executable(static {source})\ntarget_link_libraries(static avsg::avsg_static)\n",
            env!("CARGO_PKG_VERSION"),
            source = source.display(),
        );
        fs::write(folder.path().join("CMakeLists.txt"), project).unwrap();
        let build = folder.path().join("build");
        let mut configure = Command::new("cmake");
        configure.arg("-S").arg(folder.path()).arg("-B").arg(&build);
        run(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", moved.display())));
        run(Command::new("cmake").arg("--build").arg(&build));
        for program in ["shared", "static"] {
            let text = run(&mut Command::new(build.join(program)));
            assert!(text.contains(" 0 wrong"), "{program}: {text}");
        }
    }
}
