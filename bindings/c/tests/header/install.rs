//! `bindings/c/install.sh` installs the library, and programs find it by pkg-config and by CMake. The
//! shared library and the archive export the functions of the header and nothing else.

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

/// Returns the names that a library exports.
fn exports(table: &mut Command) -> Vec<String> {
    let table = run(table.arg("--defined-only"));
    let words = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut names: Vec<_> =
        words.filter(|words| words.len() == 3).map(|words| words[2].to_owned()).collect();
    names.sort_unstable();
    names
}

/// One test checks everything, because an installation builds the library.
#[test]
fn an_installed_library_is_found_and_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (prefix, root) = (folder.path().join(r"a prefix & | \ # '"), root());
    let script = root.join("bindings/c/install.sh");
    let mut install = Command::new(&script);
    install.args(["--profile", "dev", "--libdir", "lib64/sub", "--prefix"]).arg(&prefix);
    run(&mut install);
    let lib = prefix.join("lib64/sub");
    for (option, folder) in [("--libdir", "../lib"), ("--libdir", "/lib"), ("--prefix", "/a$b")] {
        let out = Command::new(&script).args([option, folder]).output().unwrap();
        let error = String::from_utf8(out.stderr).unwrap();
        assert!(
            !out.status.success() && error.contains(", but ") && error.contains(folder),
            "{error}"
        );
    }

    let names = exports(Command::new("nm").arg("-D").arg(lib.join("libavsg.so")));
    let others: Vec<_> = names.iter().filter(|name| !name.starts_with("avsg_")).collect();
    assert!(others.is_empty() && names.len() > 30, "{others:?} among {}", names.len());
    let header = fs::read_to_string(prefix.join("include/avsg.h")).unwrap();
    for name in &names {
        assert!(header.contains(&format!("{name}(")), "{name} is exported, but not declared");
    }
    let of_archive = exports(Command::new("nm").arg("-g").arg(lib.join("libavsg.a")));
    assert!(of_archive == names, "{} names: {:?}", of_archive.len(), of_archive.first());

    let source = root.join("bindings/examples/c/decode.c");
    if have("pkg-config") {
        let pkg_config = |options: &str| {
            // As a build script passes the flags on, and each in a line.
            let script =
                format!(r#"eval "set -- $(pkg-config {options} avsg)"; printf '%s\n' "$@""#);
            let mut shell = Command::new("sh");
            shell.env("PKG_CONFIG_PATH", lib.join("pkgconfig")).args(["-c", &script]);
            run(&mut shell).lines().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(pkg_config("--modversion"), [env!("CARGO_PKG_VERSION")]);
        let mut archive = pkg_config("--static --libs-only-l");
        archive[0] = lib.join("libavsg.a").to_str().unwrap().to_owned();
        for libraries in [pkg_config("--libs"), archive] {
            let program = folder.path().join("decode");
            let mut cc = avsg_sim::compiler::c().expect("a C compiler, which linked the library");
            cc.arg(&source).arg("-o").arg(&program).args(pkg_config("--cflags")).args(libraries);
            run(&mut cc);
            let text = run(Command::new(&program).env("LD_LIBRARY_PATH", &lib));
            assert!(text.contains(" 0 wrong"), "{text}");
        }
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
        run(configure.arg(format!("-Davsg_DIR={}/lib64/sub/cmake/avsg", moved.display())));
        run(Command::new("cmake").arg("--build").arg(&build));
        for program in ["shared", "static"] {
            let text = run(&mut Command::new(build.join(program)));
            assert!(text.contains(" 0 wrong"), "{program}: {text}");
        }
    }
}
