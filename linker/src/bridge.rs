//! Builds the kernels of the default geometries, and writes a Rust file that embeds them in the host
//! library.
//!
//! A build script calls [`check`] and [`embed`], and the host includes the file that [`embed`]
//! writes.

use std::path::{Path, PathBuf};
use std::{fs, io};

use avsg_device::params::{Lifetime, Params};

use crate::ascend::kernels::Abi;
use crate::ascend::soc;
use crate::ascend::toolchain::{self, Toolchain};
use crate::ascend::{Failed, ascendc};
use crate::check::{Refused, check as check_tape};
use crate::record::record_stage_one;

/// The name of the Rust file that [`embed`] writes.
pub const FILE: &str = "embedded.rs";

/// The reason why the kernels cannot be checked or embedded.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says it")]
pub enum Error {
    #[error("Stage One of {0}: {1}")]
    Refused(String, Refused),
    #[error("the kernels of {0}: {1}")]
    Failed(String, Failed),
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    #[error("AVSG_REQUIRE_CANN is 1, but {0}")]
    Cann(#[from] toolchain::Error),
}

/// Returns the geometries whose kernels a library embeds if they fit a vector core. Kernels for N_q
/// tokens also serve fewer tokens, so each geometry has the largest N_q with N_q K <= S.
pub fn geometries() -> impl Iterator<Item = Params> {
    let shapes = [(8192, 4, 0), (8192, 4, 128), (4096, 2, 0), (4096, 2, 128)];
    shapes
        .into_iter()
        .map(|(slots, tokens, page)| Params { page, ..Params::compact(2048, tokens, slots) })
}

/// Records Stage One of many geometries and checks that each one keeps the rules of the kernel
/// language.
///
/// # Errors
/// If a geometry breaks a rule: the first such geometry.
pub fn check() -> Result<(), Error> {
    for slots in [4096, 8192, 16384] {
        let wide = Params { lifetime: Lifetime::Learned, ..Params::wide(2048, 1, slots) };
        let compact = Params { lifetime: Lifetime::Learned, ..Params::compact(2048, 1, slots) };
        let lru = |p| Params { lifetime: Lifetime::Constant(127), ..p };
        for p in [Params::paper(2048, 1, slots), wide, compact, lru(wide), lru(compact)] {
            for page in [0, 128] {
                let p = Params { page, tokens: slots / p.k, ..p };
                let checked = record_stage_one(&p).and_then(|tape| check_tape(&tape));
                checked.map_err(|refused| Error::Refused(p.to_string(), refused))?;
            }
        }
    }
    Ok(())
}

/// Builds the kernels of [`geometries`] in folders of `out` if there is a toolchain, and writes [`FILE`]
/// there: a slice of the host's `Embedded`. Returns the warnings that the build script should print.
///
/// # Errors
/// If a file cannot be written, or the kernels of a geometry break a rule of the kernel language.
/// If objects are `required`, also if there is no toolchain, or it rejects a kernel.
pub fn embed(
    out: &Path,
    toolchain: Result<Toolchain, toolchain::Error>,
    required: bool,
) -> Result<Vec<String>, Error> {
    let toolchain = match toolchain {
        Err(missing) if required => return Err(missing.into()),
        tool => tool.ok(),
    };
    let (mut entries, mut warnings) = (String::new(), Vec::new());
    for (n, p) in geometries().enumerate() {
        let kernels = match ascendc(&p, Abi::Direct) {
            Err(Failed::TooLarge(_)) => continue,
            result => result.map_err(|failed| Error::Failed(p.to_string(), failed))?,
        };
        let mut objects = String::from("None");
        if let Some(tool) = &toolchain {
            let name = format!("kernels{n}");
            let folder = out.join(&name);
            kernels.write(&folder).map_err(|error| Error::File(folder.clone(), error))?;
            let names: Vec<_> = kernels.kernels.iter().map(|kernel| kernel.name).collect();
            match tool.build(&folder, &names, soc::OF_THE_PAPER.name) {
                Err(refused) if required => return Err(refused.into()),
                Err(refused) => warnings.push(format!("no objects of {p}: {refused}")),
                Ok(()) => objects = format!("Some({})", includes(Path::new(&name), &names)),
            }
        }
        let params = expression(&p);
        entries += &format!("    Embedded {{ params: {params}, objects: {objects} }},\n");
    }
    let file = out.join(FILE);
    fs::write(&file, format!("&[\n{entries}]\n")).map_err(|error| Error::File(file, error))?;
    Ok(warnings)
}

/// Returns a Rust array of the kernels' objects, in the order of the kernels.
fn includes(folder: &Path, kernels: &[&str]) -> String {
    let object = |kernel: &&str| toolchain::object(folder, kernel).display().to_string();
    let all = kernels.iter().map(|kernel| format!("include_bytes!(\"{}\")", object(kernel)));
    format!("[{}]", all.collect::<Vec<_>>().join(", "))
}

/// Returns a geometry as a Rust expression.
fn expression(p: &Params) -> String {
    let Params { table, lifetime, k, tokens, slots, spread, retries, page } = p;
    let lifetime = match lifetime {
        Lifetime::Constant(l) => format!("Constant({l})"),
        Lifetime::Learned => "Learned".into(),
    };
    format!(
        "Params {{ table: Table::{table:?}, lifetime: Lifetime::{lifetime}, k: {k}, \
         tokens: {tokens}, slots: {slots}, spread: {spread}, retries: {retries}, page: {page} }}"
    )
}
