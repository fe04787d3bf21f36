//! `host/ascend/acl/sys.rs` is the unedited output of bindgen for `host/ascend/acl/acl.h`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::{env, fs};

use avsg_testkit::alone;

const HEADER: &str = "host/ascend/acl/acl.h";
const BINDINGS: &str = "host/ascend/acl/sys.rs";

/// Opening comment of the generated file.
const NOTE: &str = "\
// Generated from acl.h by `BLESS=1 cargo test --test alone acl_sys`; do not edit.
//
// C enumerations are the 32-bit integers that they are on x86-64 and aarch64. Handles are pointers that are never
// followed here. Sizes of structs are compared with a C compiler's in result.rs.";

/// Returns the bindings, formatted by rustfmt, or `None` if libclang is missing.
fn generate() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // libclang comes without the compiler's own headers, so those of the C compiler are used.
    let gcc = avsg_sim::compiler::c()?.arg("-print-file-name=include").output().ok()?;
    let include = String::from_utf8(gcc.stdout).ok()?;
    let builder = bindgen::builder()
        .header(root.join(HEADER).to_str()?)
        .clang_arg(format!("-I{}", include.trim()))
        .allowlist_file(format!(".*/{HEADER}"))
        .use_core()
        .merge_extern_blocks(true)
        .layout_tests(false)
        .disable_header_comment()
        .raw_line(NOTE);
    // bindgen panics without libclang. The hook keeps the message off the terminal.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let bindings = catch_unwind(AssertUnwindSafe(|| builder.generate().map(|b| b.to_string())));
    std::panic::set_hook(hook);
    bindings.ok().map(|text| text.expect("the header compiles"))
}

#[test]
fn the_committed_bindings_are_those_of_the_header() {
    let _turn = alone::turn();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(text) = generate() else {
        println!("skipped: no libclang here (LIBCLANG_PATH names its folder)");
        return;
    };
    let path = root.join(BINDINGS);
    if env::var_os("BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let same = fs::read_to_string(path).unwrap() == text;
    assert!(same, "run BLESS=1 cargo test --test alone acl_sys");
}
