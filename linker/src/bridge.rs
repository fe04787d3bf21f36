//! Writes the kernels of the default geometries as a Rust file that the host library embeds.
//!
//! A build script calls [`check`] and [`embed`], and the host includes the file that [`embed`]
//! writes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use avsg_device::params::{Lifetime, Params};

use crate::ascend::kernels::{Abi, Kernels};
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
    shapes.into_iter().map(|(slots, tokens, page)| Params {
        spread: 2,
        retries: 7,
        page,
        ..Params::wide(2048, tokens, slots)
    })
}

/// Records Stage One of many geometries and checks that each one keeps the rules of the kernel
/// language.
///
/// # Errors
/// If a geometry breaks a rule: the first such geometry.
pub fn check() -> Result<(), Error> {
    for slots in [4096, 8192, 16384] {
        let wide = Params { lifetime: Lifetime::frequency(), ..Params::wide(2048, 1, slots) };
        let compact = Params { spread: 2, retries: 7, ..wide };
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

/// Writes the kernels of [`geometries`] into the folder `out`, builds them if there is a
/// toolchain, and writes [`FILE`] there: a slice of the host's `Embedded`. Returns the warnings that
/// the build script should print.
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
        let name = format!("kernels{n}");
        let folder = out.join(&name);
        write_texts(&folder, &kernels)?;
        let names: Vec<_> = kernels.kernels.iter().map(|kernel| kernel.name).collect();
        let soc = soc::OF_THE_PAPER.name;
        let objects = match toolchain.as_ref().map(|tool| tool.build(&folder, &names, soc)) {
            Some(Err(refused)) if required => return Err(refused.into()),
            Some(Err(refused)) => {
                warnings.push(format!("no objects of {p}: {refused}"));
                None
            }
            Some(Ok(())) => {
                let object = |kernel: &_| toolchain::object(Path::new(&name), kernel);
                Some(list("include_bytes", &names, object))
            }
            None => None,
        };
        let objects = objects.map_or("None".into(), |list| format!("Some({list})"));
        let text = |kernel: &_| Path::new(&name).join(format!("{kernel}.cpp"));
        let (params, texts) = (expression(&p), list("include_str", &names, text));
        entries += &format!(
            "    Embedded {{\n        params: {params},\n        texts: {texts},\n        \
             objects: {objects},\n    }},\n"
        );
    }
    write(&out.join(FILE), &format!("&[\n{entries}]\n"))?;
    Ok(warnings)
}

/// Writes each kernel as one file with its headers included, because the host compiles the embedded
/// text without other files.
fn write_texts(folder: &Path, kernels: &Kernels) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|e| Error::File(folder.into(), e))?;
    kernels.kernels.iter().try_for_each(|kernel| {
        write(&folder.join(format!("{}.cpp", kernel.name)), &kernels.whole(&kernel.text))
    })
}

fn write(file: &Path, text: &str) -> Result<(), Error> {
    fs::write(file, text).map_err(|e| Error::File(file.into(), e))
}

/// Returns a Rust array of the kernels' files, in the order of the kernels.
fn list(include: &str, kernels: &[&str], file: impl Fn(&str) -> PathBuf) -> String {
    let files = kernels.iter().map(|kernel| format!("{include}!(\"{}\")", file(kernel).display()));
    format!("[{}]", files.collect::<Vec<_>>().join(", "))
}

/// Returns a geometry as a Rust expression.
fn expression(p: &Params) -> String {
    let Params { table, lifetime, k, tokens, slots, spread, retries, page } = p;
    let lifetime = match lifetime {
        Lifetime::Constant(l) => format!("Constant({l})"),
        Lifetime::Frequency(rule) => format!("Frequency({rule:?})"),
    };
    format!(
        "Params {{ table: Table::{table:?}, lifetime: Lifetime::{lifetime}, k: {k}, \
         tokens: {tokens}, slots: {slots}, spread: {spread}, retries: {retries}, page: {page} }}"
    )
}
