//! Sets the soname of `libavsg.so`, which ends with the interface version, so that a loader rejects
//! another version.

use std::fs;
use std::path::Path;

fn main() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/version.rs");
    println!("cargo::rerun-if-changed={}", source.display());
    let text = fs::read_to_string(&source).expect("bindings/c/src/version.rs");
    let version = text
        .split_once("AVSG_ABI_VERSION: u32 = ")
        .and_then(|(_, rest)| rest.split_once(';'))
        .map(|(number, _)| number)
        .expect("AVSG_ABI_VERSION in bindings/c/src/version.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libavsg.so.{version}");
}
