//! Records the kernels at build time, so that one that cannot be recorded, or breaks a law of the
//! kernel language, does not build. Writes nothing.

use anyhow::{Context, Result};
use avsg_device::params::{Lifetime, Params};
use avsg_linker::check::check;
use avsg_linker::record::record_stage_one;

fn main() -> Result<()> {
    // Cargo rebuilds this script when the kernels or the linker change; it reads nothing else.
    println!("cargo::rerun-if-changed=build.rs");
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
    Ok(())
}
