//! From a kernel's C++ to a library that this machine runs: the C++ compiler against the shim, on first use.
//!
//! The result is kept under the hash of the text, so that a kernel is compiled once per machine.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, fs, io, process};

use crate::compiler;

/// Compiles `source`, if nobody did so before. `shim` is the folder of `kernel_operator.h`.
pub(crate) fn compile(source: &Path, shim: &Path) -> Result<PathBuf, String> {
    let text = fs::read(source).map_err(|e| format!("{}: {e}", source.display()))?;
    let mut hasher = DefaultHasher::new();
    (&text, FLAGS).hash(&mut hasher);
    // A kernel's own headers lie beside it.
    for folder in [source.parent().unwrap_or(Path::new(".")), shim, &shim.join("shim")] {
        hash_headers(folder, &mut hasher).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let library = cache()?.join(format!("{:016x}.so", hasher.finish()));
    let turn = turn(&library);
    let _compiling = turn.lock().unwrap_or_else(PoisonError::into_inner);
    if library.exists() {
        return Ok(library);
    }
    // Under a name of its own first: another process may be compiling the same text.
    let fresh = library.with_extension(format!("{}.tmp", process::id()));
    let compiler = compiler::cpp().ok_or(
        "a C++ compiler is needed to run kernels in the simulator, and neither CXX nor the system's \
         c++ starts; install g++",
    );
    let done = compiler?
        .args(FLAGS)
        .arg("-I")
        .arg(shim)
        .args(["-x", "c++"])
        .arg(source)
        .arg("-o")
        .arg(&fresh)
        .output()
        .map_err(|e| format!("the C++ compiler: {e}"))?;
    if !done.status.success() {
        let words = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{} does not compile: {words}", source.display()));
    }
    fs::rename(&fresh, &library).map_err(|e| format!("{}: {e}", library.display()))?;
    Ok(library)
}

/// Keeps a kernel's text as a file, under its hash, for [`compile`] to read.
pub(crate) fn keep(text: &[u8]) -> Result<PathBuf, String> {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let source = cache()?.join(format!("{:016x}.cpp", hasher.finish()));
    let failed = |e: io::Error| format!("{}: {e}", source.display());
    let fresh = source.with_extension(format!("{}.tmp", process::id()));
    fs::write(&fresh, text).map_err(failed)?;
    fs::rename(&fresh, &source).map_err(failed)?;
    Ok(source)
}

/// Where compiled kernels are kept.
fn cache() -> Result<PathBuf, String> {
    let folder = env::var_os("AVSG_SIM_CACHE")
        .map_or_else(|| env::temp_dir().join("avsg-sim-kernels"), PathBuf::from);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

// Without -g: it would take a third of the time, and the shim names lines itself. -O1 takes a third more than
// -Og, and its kernels run as long.
const FLAGS: [&str; 5] = ["-std=c++17", "-Og", "-fPIC", "-shared", "-pthread"];

/// The libraries that threads of this process are at.
static AT: Mutex<BTreeMap<PathBuf, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());

/// The lock of a library: who waits for it finds the library there.
fn turn(library: &Path) -> Arc<Mutex<()>> {
    let mut at = AT.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(at.entry(library.to_owned()).or_default())
}

/// What is included is part of what is compiled.
fn hash_headers(folder: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let all = fs::read_dir(folder)?.map(|entry| entry.map(|e| e.path()));
    let mut headers: Vec<PathBuf> = all.collect::<io::Result<_>>()?;
    headers.retain(|path| path.extension().is_some_and(|end| end == "h"));
    headers.sort();
    headers.iter().try_for_each(|path| fs::read(path).map(|text| text.hash(hasher)))
}
