//! The simulated device, complete: its runtime, and the kernels of a geometry emitted for it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::{env, fs};

use avsg_device::kernels::KernelName;
use avsg_device::params::Params;
use avsg_linker::ascendc::ascendc;
use avsg_linker::ascendc::kernels::Abi;

use super::acl::owned::Context;
use super::acl::{Acl, Source};
use crate::{Error, Result};

/// The simulator of this process.
pub fn source() -> Source {
    // SAFETY: the simulator's functions have the signatures of the header that both share.
    unsafe { Source::process("the simulated Ascend runtime", avsg_sim::resolve) }
}

/// Its first device.
///
/// # Errors
/// If its options (`AVSG_SIM`) are none.
pub fn context() -> Result<Arc<Context>> {
    Context::open(Arc::new(Acl::open(&source())?), 0)
}

/// The kernels of a geometry as AscendC, each a text of its own, in the order of `KernelName::ALL`.
///
/// # Errors
/// If the geometry does not fit a vector core's memory.
pub(super) fn texts(params: &Params) -> Result<[String; KernelName::ALL.len()]> {
    let kernels = ascendc(params, Abi::Direct).map_err(|error| {
        let limit = format!("a vector core cannot run it: {error}");
        let remedy = "choose fewer slots, a smaller spread or a smaller K";
        Error::invalid("geometry", params, limit, remedy)
    })?;
    Ok(KernelName::ALL.map(|name| kernels.whole(&kernels.kernels[name as usize].text)))
}

/// Writes the kernels of a geometry, as AscendC, into a folder below the system's temporary folder, and returns the
/// path of that folder. Each file holds one kernel with its headers pasted in, which is the text that an engine
/// without a folder loads, so the simulator compiles a geometry once for both.
///
/// # Errors
/// If the geometry does not fit a vector core's memory, or the files cannot be written.
pub fn emit(params: &Params) -> Result<PathBuf> {
    let texts = texts(params)?;
    let mut hasher = DefaultHasher::new();
    texts.hash(&mut hasher);
    let folder = env::temp_dir().join(format!("avsg-kernels-{:016x}", hasher.finish()));
    let refused = |source| Error::Os {
        call: "write",
        what: format!("kernels in {}", folder.display()),
        source,
        remedy: "set TMPDIR to a folder that can be written",
    };
    fs::create_dir_all(&folder).map_err(refused)?;
    for (kernel, text) in KernelName::ALL.iter().zip(&texts) {
        let name = format!("{}.cpp", kernel.entry().to_string_lossy());
        let file = folder.join(&name);
        if fs::read_to_string(&file).is_ok_and(|written| written == *text) {
            continue;
        }
        // Replaced as a whole: another process may be reading it.
        let fresh = folder.join(format!("{name}.{}", std::process::id()));
        fs::write(&fresh, text).map_err(refused)?;
        fs::rename(&fresh, &file).map_err(refused)?;
    }
    Ok(folder)
}
