//! From the linker to the library: the kernels of the default geometries, for a host to embed.
//!
//! A build script calls [`check`] and [`embed`]. The host includes the Rust file that the second one writes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use avsg_device::params::{Lifetime, Params};

use crate::ascendc::kernels::{Abi, Kernels};
use crate::ascendc::{Failed, ascendc};
use crate::check::{Refused, check as check_tape};
use crate::record::record_stage_one;
use crate::toolchain::{self, Toolchain};

/// The name of the Rust file that [`embed`] writes.
pub const FILE: &str = "embedded.rs";

/// Why nothing can be embedded.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
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

/// The geometries whose kernels a library embeds, where they fit a vector core. Kernels of N_q tokens serve
/// fewer as well, so each is here with the most that its slots hold.
pub fn geometries() -> impl Iterator<Item = Params> {
    let shapes = [(8192, 4, 0), (8192, 4, 128), (4096, 2, 0), (4096, 2, 128)];
    shapes.into_iter().map(|(slots, tokens, page)| Params {
        spread: 2,
        retries: 7,
        page,
        ..Params::wide(2048, tokens, slots)
    })
}

/// Records Stage One of many geometries and proves of each that it keeps the laws of the kernel language.
///
/// # Errors
/// The first geometry of which that is not so.
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

/// Writes the kernels of [`geometries`] into `out`, compiles them where a compiler was found, and writes
/// [`FILE`] there: a slice of the host's `Embedded`. Returns what a build should warn of.
///
/// # Errors
/// If a file cannot be written, or the kernels of a geometry break a law; where objects are `required`,
/// also if there is no compiler or it refuses a kernel.
pub fn embed(
    out: &Path,
    toolchain: Result<Toolchain, toolchain::Error>,
    required: bool,
) -> Result<Vec<String>, Error> {
    let toolchain = match toolchain {
        Err(missing) if required => return Err(missing.into()),
        found => found.ok(),
    };
    let (mut entries, mut warnings) = (String::new(), Vec::new());
    for (n, p) in geometries().enumerate() {
        let kernels = match ascendc(&p, Abi::Direct) {
            Err(Failed::TooLarge(_)) => continue,
            made => made.map_err(|failed| Error::Failed(p.to_string(), failed))?,
        };
        let name = format!("kernels{n}");
        let folder = out.join(&name);
        write_texts(&folder, &kernels)?;
        let objects = match toolchain.as_ref().map(|tool| compile(tool, &folder, &kernels)) {
            Some(Err(refused)) if required => return Err(refused.into()),
            Some(Err(refused)) => {
                warnings.push(format!("no objects of {p}: {refused}"));
                None
            }
            Some(Ok(())) => Some(list("include_bytes", &name, &kernels, "o")),
            None => None,
        };
        let objects = objects.map_or("None".into(), |list| format!("Some({list})"));
        let (params, texts) = (expression(&p), list("include_str", &name, &kernels, "cpp"));
        entries += &format!(
            "    Embedded {{\n        params: {params},\n        texts: {texts},\n        \
             objects: {objects},\n    }},\n"
        );
    }
    write(&out.join(FILE), &format!("&[\n{entries}]\n"))?;
    Ok(warnings)
}

/// Each kernel as one file: what lies in memory has no headers beside it.
fn write_texts(folder: &Path, kernels: &Kernels) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|e| Error::File(folder.into(), e))?;
    kernels.kernels.iter().try_for_each(|kernel| {
        write(&folder.join(format!("{}.cpp", kernel.name)), &kernels.whole(&kernel.text))
    })
}

fn compile(tool: &Toolchain, folder: &Path, kernels: &Kernels) -> Result<(), toolchain::Error> {
    kernels.kernels.iter().try_for_each(|kernel| {
        let source = folder.join(format!("{}.cpp", kernel.name));
        tool.compile(&source, &source.with_extension("o"))
    })
}

fn write(file: &Path, text: &str) -> Result<(), Error> {
    fs::write(file, text).map_err(|e| Error::File(file.into(), e))
}

/// The kernels' files as Rust: an array in the kernels' own order.
fn list(include: &str, folder: &str, kernels: &Kernels, end: &str) -> String {
    let file = |name| format!("{include}!(\"{folder}/{name}.{end}\")");
    let files: Vec<_> = kernels.kernels.iter().map(|kernel| file(kernel.name)).collect();
    format!("[{}]", files.join(", "))
}

/// A geometry as Rust.
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
