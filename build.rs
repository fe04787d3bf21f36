//! With the feature `kernels`: records the kernels, so that one that cannot be recorded, or breaks a law
//! of the kernel language, does not build; then embeds those of the default geometries as AscendC, and as
//! objects where Ascend's compiler is found. AVSG_REQUIRE_CANN=1 makes its absence an error.

#[cfg(feature = "kernels")]
fn main() -> anyhow::Result<()> {
    use std::env;
    use std::path::Path;

    use anyhow::Context as _;
    use avsg_linker::bridge;
    use avsg_linker::toolchain::Toolchain;

    // Cargo rebuilds this script when the kernels or the linker change; it reads nothing else.
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ASCEND_HOME_PATH");
    println!("cargo::rerun-if-env-changed=AVSG_REQUIRE_CANN");
    let out = env::var_os("OUT_DIR").context("OUT_DIR")?;
    let required = env::var_os("AVSG_REQUIRE_CANN").is_some_and(|required| required == "1");
    bridge::check()?;
    for warning in bridge::embed(Path::new(&out), Toolchain::find(), required)? {
        println!("cargo::warning={warning}");
    }
    Ok(())
}

#[cfg(not(feature = "kernels"))]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
