//! Builds the kernels of the default geometries, and writes a Rust file that embeds them in the host
//! library.
//!
//! A build script calls [`embed`], and the host includes the file that it writes.

use std::path::{Path, PathBuf};
use std::{fs, io};

use avsg_device::params::{Lifetime, Params};

use crate::ascend::kernels::Abi;
use crate::ascend::soc;
use crate::ascend::toolchain::{self, Toolchain};
use crate::ascend::{Failed, ascendc};

/// The name of the Rust file that [`embed`] writes.
pub const FILE: &str = "embedded.rs";

/// The reason why the kernels cannot be embedded.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says it")]
pub enum EmbedError {
    #[error("the kernels of {0}: {1}")]
    Failed(String, Failed),
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    #[error("AVSG_REQUIRE_CANN is 1, but {0}")]
    Cann(#[from] toolchain::Error),
}

/// Returns the geometries whose kernels a library embeds. Kernels for N_q
/// tokens also serve fewer tokens, so each geometry has the largest N_q with N_q K <= S.
pub fn geometries() -> impl Iterator<Item = Params> {
    let shapes = [(8192, 4, 0), (8192, 4, 128), (4096, 2, 0), (4096, 2, 128)];
    shapes
        .into_iter()
        .map(|(slots, tokens, page)| Params { page, ..Params::compact(2048, tokens, slots) })
}

/// Writes [`FILE`] into the folder `out`: a slice of the host's `Embedded`, with the kernels of
/// [`geometries`], which it builds in folders of `out`, as objects if there is a toolchain. Without one it
/// lowers no kernel. Returns the warnings that the build script should print.
///
/// # Errors
/// If a file cannot be written, or the kernels of a geometry break a rule of the kernel language or do not
/// fit a vector core. If objects are `required`, also if there is no toolchain, or it rejects a kernel.
pub fn embed(
    out: &Path,
    toolchain: Result<Toolchain, toolchain::Error>,
    required: bool,
) -> Result<Vec<String>, EmbedError> {
    let toolchain = match toolchain {
        Err(missing) if required => return Err(missing.into()),
        tool => tool.ok(),
    };
    let (mut entries, mut warnings) = (String::new(), Vec::new());
    for (n, p) in geometries().enumerate() {
        let mut objects = String::from("None");
        if let Some(tool) = &toolchain {
            let name = format!("kernels{n}");
            let folder = out.join(&name);
            let kernels = ascendc(&p, Abi::Direct);
            let kernels = kernels.map_err(|failed| EmbedError::Failed(p.to_string(), failed))?;
            kernels.write(&folder).map_err(|error| EmbedError::File(folder.clone(), error))?;
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
    fs::write(&file, format!("&[\n{entries}]\n")).map_err(|error| EmbedError::File(file, error))?;
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
