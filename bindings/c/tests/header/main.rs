//! `bindings/c/include/avsg.h` is the header that cbindgen generates from `bindings/c/src`, and it compiles as C99
//! to C17 and C++11 to C++20, `avsg.hpp` also without exceptions. The tests regenerate the file if the environment variable `BLESS` is
//! set.

mod generate;
mod install;

use std::fs;
use std::process::Command;

use generate::{header, root};

const HEADER: &str = include_str!("../../include/avsg.h");

#[test]
fn the_header_in_the_repository_is_up_to_date() {
    let new = header();
    if std::env::var_os("BLESS").is_some() {
        return fs::write(root().join("bindings/c/include/avsg.h"), &new).unwrap();
    }
    let differs = HEADER.lines().zip(new.lines()).find(|(old, new)| old != new);
    assert!(HEADER == new, "run BLESS=1 cargo test -p avsg-capi --test header; first: {differs:?}");
}

#[test]
fn a_decode_loop_is_the_first_part_of_the_header() {
    let (part, _) = HEADER.split_once("// ---- Part 2").unwrap();
    let (_, part_one) = part.split_once("// ---- Part 1").unwrap();
    let functions: Vec<&str> =
        part_one.lines().filter(|line| line.contains('(') && !line.contains("//")).collect();
    assert_eq!(functions.len(), 12, "{functions:#?}");
    assert!(part.lines().count() <= 250, "Part 1 ends in line {}", part.lines().count());
}

/// Returns the names of the structs that begin with their size.
fn sized_structs() -> Vec<String> {
    let structs = HEADER.split("typedef struct ").skip(1);
    let sized = structs.filter(|text| text.contains("size_t size;"));
    sized.map(|text| text.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn the_cpp_wrapper_has_every_function_of_the_header() {
    let wrapper = fs::read_to_string(root().join("bindings/c/include/avsg.hpp")).unwrap();
    // A C++ program reads these three from the header itself.
    let plain = ["avsg_abi_version", "avsg_version", "avsg_devices"];
    let mut wrapped = 0;
    let lines = HEADER.lines().filter(|line| !line.contains("//"));
    let names = lines.filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next());
    for function in names.filter(|name| name.starts_with("avsg_")) {
        let forms = [format!("{function}("), format!("{function}>")];
        let named = forms.iter().any(|form| wrapper.contains(form));
        assert!(named || plain.contains(&function), "avsg.hpp does not call {function}");
        wrapped += usize::from(named);
    }
    assert!(wrapped == 48, "{wrapped} functions are wrapped");
    assert!(sized_structs().len() >= 11, "{:?}", sized_structs());
}

#[test]
fn the_header_compiles_as_c_and_cpp() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("avsg.h"), HEADER).unwrap();
    let strict = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"];
    let include = "#include \"avsg.h\"\n#include \"avsg.h\"\n";
    let version = "return avsg_abi_version() == AVSG_ABI_VERSION ? AVSG_OK : AVSG_INTERNAL; }\n";
    let (mut c, mut cpp) = (String::new(), String::new());
    for name in sized_structs() {
        c += &format!("  {{ {name} value = AVSG_INIT({name}); if (value.size == 0) return 1; }}\n");
        cpp += &format!("  if (avsg::init<{name}>().size != sizeof({name})) return 1;\n");
    }
    let c = format!("{include}int main(void) {{\n{c}  {version}");
    let cpp = format!("#include \"avsg.hpp\"\n{include}int main() {{\n{cpp}  {version}");
    let old_cpp = format!("{include}int main(void) {{ avsg_engine_config c; (void)c; {version}");
    fs::copy(root().join("bindings/c/include/avsg.hpp"), folder.path().join("avsg.hpp")).unwrap();
    let mut compiled = 0;
    for (compilers, file, body, options) in [
        (["gcc", "clang"], "user.c", &c, &["-std=c99", "-std=c11", "-std=c17"][..]),
        (["g++", "clang++"], "old.cpp", &old_cpp, &["-std=c++11", "-std=c++14"][..]),
        (
            ["g++", "clang++"],
            "user.cpp",
            &cpp,
            &["-std=c++17", "-std=c++20", "-fno-exceptions"][..],
        ),
    ] {
        let source = folder.path().join(file);
        fs::write(&source, body).unwrap();
        for compiler in compilers.into_iter().filter(|compiler| install::have(compiler)) {
            for option in options {
                let mut command = Command::new(compiler);
                command.args(strict).arg(option);
                let out = command.arg(&source).output().unwrap();
                let text = String::from_utf8_lossy(&out.stderr);
                assert!(out.status.success(), "{compiler} {option}: {text}");
                compiled += 1;
            }
        }
    }
    assert!(compiled > 0, "no compiler is installed; install gcc or clang");
}
