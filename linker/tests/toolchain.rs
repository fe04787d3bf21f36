//! Finding Ascend's compiler and calling it, with a script in its place.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use avsg_linker::toolchain::{Error, Toolchain};

/// A fresh folder, removed at the end of the test run with the target folder.
fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("toolchain").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a scratch folder");
    dir
}

/// A compiler that writes its arguments where the object belongs, and refuses sources with `wrong`.
fn script(at: &Path) {
    let text = "#!/bin/sh\nfor last; do :; done\necho \"$@\" > \"$last\"\n\
                case \"$*\" in *wrong*) echo 'error: wrong' >&2; exit 3;; esac\n";
    fs::create_dir_all(at.parent().expect("a folder")).expect("a folder");
    fs::write(at, text).expect("a script");
    fs::set_permissions(at, fs::Permissions::from_mode(0o755)).expect("a program");
}

#[test]
fn the_toolkits_compiler_comes_before_the_paths() {
    let dir = scratch("order");
    let (home, path) = (dir.join("cann"), dir.join("bin"));
    script(&path.join("ccec"));
    let found = Toolchain::find_in(Some(&home), Some(path.as_os_str())).expect("on PATH");
    assert_eq!((found.compiler, found.includes), (path.join("ccec"), vec![]));
    script(&home.join("compiler/ccec_compiler/bin/bisheng"));
    fs::create_dir_all(home.join("compiler/tikcpp/tikcfw")).expect("headers");
    let found = Toolchain::find_in(Some(&home), Some(path.as_os_str())).expect("in the toolkit");
    assert_eq!(found.compiler, home.join("compiler/ccec_compiler/bin/bisheng"));
    assert_eq!(found.includes, [home.join("compiler/tikcpp/tikcfw")]);
}

#[test]
fn absence_says_where_it_looked() {
    let dir = scratch("absent");
    let error = Toolchain::find_in(Some(&dir.join("cann")), Some(dir.as_os_str())).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Missing(_)));
    for part in ["cann/bin/bisheng", "absent/ccec", "ASCEND_HOME_PATH"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_kernel_is_compiled_for_vector_cores_without_automatic_flags() {
    let dir = scratch("compile");
    script(&dir.join("bisheng"));
    let tool = Toolchain::find_in(None, Some(dir.as_os_str())).expect("on PATH");
    let (source, object) = (dir.join("k.cpp"), dir.join("k.o"));
    fs::write(&source, "").expect("a source");
    tool.compile(&source, &object).expect("compiled");
    let said = fs::read_to_string(&object).expect("an object");
    for option in ["--cce-aicore-arch=dav-c220-vec", "--cce-auto-sync=off", "-O3", "k.cpp -o"] {
        assert!(said.contains(option), "{said}");
    }
    let error = tool.compile(&dir.join("wrong.cpp"), &object).unwrap_err();
    assert!(error.to_string().contains("error: wrong"), "{error}");
    let gone = Toolchain { compiler: dir.join("gone"), ..tool };
    assert!(matches!(gone.compile(&source, &object), Err(Error::Failed(_))));
}
