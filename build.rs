//! Records the kernels at build time, so that one that cannot be recorded, or breaks a law of the
//! kernel language, does not build. Then writes the default geometry's AscendC into OUT_DIR, and
//! its objects where Ascend's compiler is found; AVSG_REQUIRE_CANN=1 makes its absence an error.

use std::path::PathBuf;
use std::{env, fs};

use anyhow::{Context, Result};
use avsg_device::params::{Lifetime, Params};
use avsg_linker::check::check;
use avsg_linker::record::record_stage_one;
use avsg_linker::toolchain::Toolchain;
use avsg_linker::write::ascendc;
use avsg_linker::write::kernels::Abi;

fn main() -> Result<()> {
    // Cargo rebuilds this script when the kernels or the linker change; it reads nothing else.
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ASCEND_HOME_PATH");
    println!("cargo::rerun-if-env-changed=AVSG_REQUIRE_CANN");
    for slots in [4096, 8192, 16384] {
        let wide = Params { lifetime: Lifetime::frequency(), ..Params::wide(2048, 1, slots) };
        let compact = Params { spread: 2, retries: 7, ..wide };
        let lru = |p| Params { lifetime: Lifetime::Constant(127), ..p };
        for p in [Params::paper(2048, 1, slots), wide, compact, lru(wide), lru(compact)] {
            for page in [0, 128] {
                let p = Params { page, tokens: slots / p.k, ..p };
                let name = || {
                    let Params { table, k, tokens, slots, spread, retries, page, .. } = p;
                    format!(
                        "Stage One of {table:?}, K {k}, N_q {tokens}, S {slots}, spread {spread}, \
                         R {retries}, page {page}"
                    )
                };
                record_stage_one(&p).and_then(|tape| check(&tape)).with_context(name)?;
            }
        }
    }
    objects()
}

/// The kernels of the default geometry for a 910B, and their objects.
fn objects() -> Result<()> {
    let required = env::var_os("AVSG_REQUIRE_CANN").is_some_and(|required| required == "1");
    let toolchain = match Toolchain::find() {
        Err(missing) if required => return Err(missing.into()),
        found => found.ok(),
    };
    let out = PathBuf::from(env::var_os("OUT_DIR").context("OUT_DIR")?);
    let p = Params { spread: 2, retries: 7, ..Params::wide(2048, 1, 8192) };
    let all = ascendc(&p, Abi::Direct)?;
    for (name, text) in all.files() {
        fs::write(out.join(&name), text).with_context(|| out.join(&name).display().to_string())?;
    }
    for kernel in &all.kernels {
        let source = out.join(format!("{}.cpp", kernel.name));
        let Some(toolchain) = &toolchain else { continue };
        match toolchain.compile(&source, &source.with_extension("o")) {
            Err(refused) if required => return Err(refused.into()),
            Err(refused) => println!("cargo::warning=no object of {}: {refused}", kernel.name),
            Ok(()) => {}
        }
    }
    Ok(())
}
