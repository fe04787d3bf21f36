//! The simulated device: its runtime, and the emitted kernels of any geometry.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avsg_device::kernels::KernelName;
use avsg_device::params::Params;
use avsg_linker::ascend::ascendc;
use avsg_linker::ascend::kernels::Abi;

use super::acl::{Acl, Context, Source};
use crate::{Error, Result, invalid};

/// Returns the simulator's functions in this process.
pub fn source() -> Source {
    // SAFETY: the simulator's functions have the signatures of `acl.h`, which both crates share.
    unsafe { Source::process("the simulated Ascend runtime", avsg_sim::resolve) }
}

/// Returns a context on the simulator's first device.
///
/// # Errors
/// If the options in `AVSG_SIM` are invalid.
pub fn context() -> Result<Arc<Context>> {
    Context::for_device(Arc::new(Acl::open(&source())?), 0)
}

/// Returns the kernels of a geometry as AscendC, one text per kernel, in the order of
/// `KernelName::ALL`.
///
/// # Errors
/// If the geometry does not fit a vector core's memory.
pub(super) fn texts(params: &Params) -> Result<[String; KernelName::ALL.len()]> {
    let kernels = ascendc(params, Abi::Direct).map_err(|error| {
        invalid!("geometry" is params, but "a vector core cannot run it: {error}";
            "choose fewer slots, a smaller spread or a smaller K")
    })?;
    Ok(KernelName::ALL.map(|name| kernels.whole(&kernels.kernels[name as usize].text)))
}

/// Compiles the kernels in the files of a folder at once, so that loading them takes no time.
/// Compile errors are reported when a kernel is loaded.
///
/// # Errors
/// If a file cannot be read.
pub fn compile(folder: &Path) -> Result<()> {
    let refused = |source| Error::Os {
        call: "read",
        what: format!("kernels in {}", folder.display()),
        source,
        remedy: "pass a folder of kernels",
    };
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).map_err(refused)? {
        let path = entry.map_err(refused)?.path();
        if path.extension().is_some_and(|end| end == "cpp") {
            texts.push(fs::read(&path).map_err(refused)?);
        }
    }
    avsg_sim::compile_ahead(&texts);
    Ok(())
}

/// Writes the kernels of a geometry, as AscendC, into a folder of the simulator's cache and returns its
/// path. Each file holds one kernel with its headers pasted in: the same text that an
/// engine without a folder loads, so the simulator compiles a geometry once for both.
///
/// # Errors
/// If the geometry does not fit a vector core's memory, or the files cannot be written.
pub fn emit(params: &Params) -> Result<PathBuf> {
    let texts = texts(params)?;
    let mut hasher = DefaultHasher::new();
    texts.hash(&mut hasher);
    let cache = avsg_sim::cache_folder().map_err(|why| {
        invalid!("folder of kernels" is "unsafe", but "{why}";
            "name a folder of your own in AVSG_SIM_CACHE")
    })?;
    let folder = cache.join(format!("kernels-{:016x}", hasher.finish()));
    let refused = |source| Error::Os {
        call: "write",
        what: format!("kernels in {}", folder.display()),
        source,
        remedy: "set AVSG_SIM_CACHE to a folder that can be written",
    };
    fs::create_dir_all(&folder).map_err(refused)?;
    for (kernel, text) in KernelName::ALL.iter().zip(&texts) {
        let name = format!("{}.cpp", kernel.entry().to_string_lossy());
        let file = folder.join(&name);
        if fs::read_to_string(&file).is_ok_and(|present| present == *text) {
            continue;
        }
        // The file is replaced as a whole, because another process may be reading it.
        let fresh = folder.join(format!("{name}.{}", std::process::id()));
        fs::write(&fresh, text).map_err(refused)?;
        fs::rename(&fresh, &file).map_err(refused)?;
    }
    Ok(folder)
}
