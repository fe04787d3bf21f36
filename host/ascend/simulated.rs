//! The simulated device, complete: its runtime, and the kernels of a geometry emitted for it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::{env, fs};

use avsg_device::kernels::KernelName;
use avsg_device::params::Params;
use avsg_linker::ascendc::ascendc;
use avsg_linker::ascendc::kernels::{Abi, Kernels};

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

fn emitted(params: &Params) -> Result<Kernels> {
    ascendc(params, Abi::Direct).map_err(|error| {
        let limit = format!("a vector core cannot run it: {error}");
        let remedy = "choose fewer slots, a smaller spread or a smaller K";
        Error::invalid("geometry", params, limit, remedy)
    })
}

/// The kernels of a geometry as AscendC, each a text of its own, in the order of `KernelName::ALL`.
///
/// # Errors
/// If the geometry does not fit a vector core's memory.
pub(super) fn texts(params: &Params) -> Result<[String; KernelName::ALL.len()]> {
    let kernels = emitted(params)?;
    Ok(KernelName::ALL.map(|name| kernels.whole(&kernels.kernels[name as usize].text)))
}

/// Writes the kernels of a geometry, as AscendC, into a folder of the system's temporary one, and
/// returns it: for who wants files, to compile for a device or to change.
///
/// # Errors
/// If the geometry does not fit a vector core's memory, or the files cannot be written.
pub fn emit(params: &Params) -> Result<PathBuf> {
    let kernels = emitted(params)?;
    let mut hasher = DefaultHasher::new();
    kernels.files().for_each(|(_, text)| text.hash(&mut hasher));
    let folder = env::temp_dir().join(format!("avsg-kernels-{:016x}", hasher.finish()));
    let refused = |source| Error::Os {
        call: "write",
        what: format!("kernels in {}", folder.display()),
        source,
        remedy: "set TMPDIR to a folder that can be written",
    };
    fs::create_dir_all(&folder).map_err(refused)?;
    for (name, text) in kernels.files() {
        let file = folder.join(&name);
        if fs::read_to_string(&file).is_ok_and(|there| there == text) {
            continue;
        }
        // Replaced as a whole: another process may be reading it.
        let fresh = folder.join(format!("{name}.{}", std::process::id()));
        fs::write(&fresh, text).map_err(refused)?;
        fs::rename(&fresh, &file).map_err(refused)?;
    }
    Ok(folder)
}
