//! The simulated device: its runtime, and the emitted kernels of any geometry.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avsg_device::params::Params;
use avsg_linker::ascend::ascendc;
use avsg_linker::ascend::kernels::Abi;
use spin::Mutex;

use super::acl::{Acl, Context, Source};
use crate::{Error, Result, invalid};

/// Returns the simulator's functions in this process.
pub fn source() -> Source {
    // SAFETY: the simulator's functions have the signatures of the list, which both crates share.
    unsafe { Source::process("the simulated Ascend runtime", avsg_sim::resolve) }
}

/// Returns a context on the simulator's first device.
///
/// # Errors
/// If the options in `AVSG_SIM` are invalid.
pub fn context() -> Result<Arc<Context>> {
    Context::for_device(Arc::new(Acl::open(&source())?), 0)
}

/// The texts that were made, because the linker takes longer than the rest of an engine's creation. No
/// call waits for the lock, which another thread may have had when this process was forked.
static TEXTS: Mutex<Vec<(Params, Arc<str>)>> = Mutex::new(Vec::new());

/// Returns all kernels of a geometry as one text of AscendC.
pub(super) fn text(params: &Params) -> Result<Arc<str>> {
    let known = |texts: &Vec<(Params, Arc<str>)>| {
        texts.iter().find(|(known, _)| known == params).map(|(_, text)| Arc::clone(text))
    };
    if let Some(text) = TEXTS.try_lock().and_then(|texts| known(&texts)) {
        return Ok(text);
    }
    let kernels = ascendc(params, Abi::Direct).map_err(|error| {
        invalid!("geometry" is params, but "a vector core cannot run it: {error}";
            "choose fewer slots, a smaller spread or a smaller K")
    })?;
    let text: Arc<str> = kernels.together().into();
    if let Some(mut texts) = TEXTS.try_lock() {
        texts.push((*params, Arc::clone(&text)));
    }
    Ok(text)
}

/// Compiles files of kernels at once, so that loading them takes no time. Compile errors are reported when
/// a file is loaded.
///
/// # Errors
/// If a file cannot be read.
pub fn compile(files: &[&Path]) -> Result<()> {
    let read = |file: &&Path| {
        let refused =
            |error| Error::os("read", file.to_string_lossy(), error, "pass files of kernels");
        fs::read(file).map_err(refused)
    };
    avsg_sim::compile_ahead(&files.iter().map(read).collect::<Result<Vec<_>>>()?);
    Ok(())
}

/// Writes all kernels of a geometry, as one file of AscendC, into a folder of its own in the simulator's
/// cache and returns the file's path. It has the text that an engine without kernels loads, so the
/// simulator compiles a geometry once for both.
///
/// # Errors
/// If the geometry does not fit a vector core's memory, or the file cannot be written.
pub fn emit(params: &Params) -> Result<PathBuf> {
    let text = text(params)?;
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let name = format!("kernels-{:016x}/avsg_kernels.cpp", hasher.finish());
    avsg_sim::store(&name, text.as_bytes()).map_err(|why| {
        invalid!("folder of kernels" is "refused", but "{why}";
            "name a folder of your own in AVSG_SIM_CACHE, which can be written")
    })
}
