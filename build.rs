//! The build script. With the feature `kernels` it records the kernels of the default geometries, and
//! embeds them as objects, if CANN and CMake are found. With AVSG_REQUIRE_CANN=1 it is an error if one
//! of them is not found.

#[cfg(feature = "kernels")]
fn main() -> anyhow::Result<()> {
    use std::env;
    use std::path::Path;

    use anyhow::Context as _;
    use avsg_linker::ascend::toolchain::Toolchain;
    use avsg_linker::bridge;

    // The kernels are linked into this script, so Cargo rebuilds it when they change; it reads no
    // other file.
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ASCEND_HOME_PATH");
    println!("cargo::rerun-if-env-changed=AVSG_REQUIRE_CANN");
    let out = env::var_os("OUT_DIR").context("OUT_DIR")?;
    let required = env::var_os("AVSG_REQUIRE_CANN").is_some_and(|required| required == "1");
    for warning in bridge::embed(Path::new(&out), Toolchain::find(), required)? {
        println!("cargo::warning={warning}");
    }
    Ok(())
}

#[cfg(not(feature = "kernels"))]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
