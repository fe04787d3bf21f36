//! The search for Ascend's compiler and its command line. A shell script replaces the compiler.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use avsg_linker::toolchain::{Error, Toolchain};

/// Returns a new empty folder in the target folder.
fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("toolchain").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a scratch folder");
    dir
}

/// Writes a compiler that writes its arguments to the object file and refuses sources with `wrong`
/// in their names.
fn write_fake_compiler(at: &Path) {
    let text = "#!/bin/sh\nfor last; do :; done\necho \"$@\" > \"$last\"\n\
                case \"$*\" in *wrong*) echo 'error: wrong' >&2; exit 3;; esac\n";
    fs::create_dir_all(at.parent().expect("a folder")).expect("a folder");
    fs::write(at, text).expect("a script");
    fs::set_permissions(at, fs::Permissions::from_mode(0o755)).expect("a program");
}

#[test]
fn the_compiler_of_the_toolkit_comes_before_those_in_path() {
    let dir = scratch("order");
    let (home, path) = (dir.join("cann"), dir.join("bin"));
    write_fake_compiler(&path.join("ccec"));
    let found = Toolchain::find_in(Some(&home), Some(path.as_os_str())).expect("on PATH");
    assert_eq!((found.compiler, found.includes), (path.join("ccec"), vec![]));
    write_fake_compiler(&home.join("compiler/ccec_compiler/bin/bisheng"));
    fs::create_dir_all(home.join("compiler/tikcpp/tikcfw")).expect("headers");
    let found = Toolchain::find_in(Some(&home), Some(path.as_os_str())).expect("in the toolkit");
    assert_eq!(found.compiler, home.join("compiler/ccec_compiler/bin/bisheng"));
    assert_eq!(found.includes, [home.join("compiler/tikcpp/tikcfw")]);
}

#[test]
fn a_missing_compiler_is_reported_with_the_places_searched() {
    let dir = scratch("absent");
    let error = Toolchain::find_in(Some(&dir.join("cann")), Some(dir.as_os_str())).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Missing(_)));
    for part in ["cann/bin/bisheng", "absent/ccec", "ASCEND_HOME_PATH"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn kernels_are_compiled_for_vector_cores_without_automatic_synchronisation() {
    let dir = scratch("compile");
    write_fake_compiler(&dir.join("bisheng"));
    let tool = Toolchain::find_in(None, Some(dir.as_os_str())).expect("on PATH");
    let (source, object) = (dir.join("k.cpp"), dir.join("k.o"));
    fs::write(&source, "").expect("a source");
    tool.compile(&source, &object).expect("compiled");
    let arguments = fs::read_to_string(&object).expect("an object");
    for option in ["--cce-aicore-arch=dav-c220-vec", "--cce-auto-sync=off", "-O3", "k.cpp -o"] {
        assert!(arguments.contains(option), "{arguments}");
    }
    let error = tool.compile(&dir.join("wrong.cpp"), &object).unwrap_err();
    assert!(error.to_string().contains("error: wrong"), "{error}");
    let deleted = Toolchain { compiler: dir.join("gone"), ..tool };
    assert!(matches!(deleted.compile(&source, &object), Err(Error::Failed(_))));
}
