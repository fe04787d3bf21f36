//! From a kernel's C++ to a library that this machine runs: g++ against the shim, on first use.
//!
//! The result is kept under the hash of the text, so that a kernel is compiled once per machine.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io, process};

/// Compiles `source`, if nobody did so before. `shim` is the folder of `kernel_operator.h`.
pub(crate) fn compile(source: &Path, shim: &Path) -> Result<PathBuf, String> {
    let text = fs::read(source).map_err(|e| format!("{}: {e}", source.display()))?;
    let mut hasher = DefaultHasher::new();
    (&text, FLAGS).hash(&mut hasher);
    // A kernel's own headers lie beside it.
    for folder in [source.parent().unwrap_or(Path::new(".")), shim, &shim.join("shim")] {
        hash_headers(folder, &mut hasher).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let folder = env::var_os("AVSG_SIM_CACHE")
        .map_or_else(|| env::temp_dir().join("avsg-sim-kernels"), PathBuf::from);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let library = folder.join(format!("{:016x}.so", hasher.finish()));
    if library.exists() {
        return Ok(library);
    }
    // Under a name of its own first: another process may be compiling the same text.
    let fresh = folder.join(format!("{:016x}.{}.tmp", hasher.finish(), process::id()));
    let compiler = env::var_os("CXX").unwrap_or_else(|| "g++".into());
    let done = Command::new(&compiler)
        .args(FLAGS)
        .arg("-I")
        .arg(shim)
        .args(["-x", "c++"])
        .arg(source)
        .arg("-o")
        .arg(&fresh)
        .output()
        .map_err(|e| {
            let compiler = compiler.display();
            format!("{compiler} is needed to run kernels in the simulator: {e}; install g++")
        })?;
    if !done.status.success() {
        let words = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{} does not compile: {words}", source.display()));
    }
    fs::rename(&fresh, &library).map_err(|e| format!("{}: {e}", library.display()))?;
    Ok(library)
}

// Without -g: it would take a third of the time, and the shim names lines itself.
const FLAGS: [&str; 5] = ["-std=c++17", "-O1", "-fPIC", "-shared", "-pthread"];

/// What is included is part of what is compiled.
fn hash_headers(folder: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let all = fs::read_dir(folder)?.map(|entry| entry.map(|e| e.path()));
    let mut headers: Vec<PathBuf> = all.collect::<io::Result<_>>()?;
    headers.retain(|path| path.extension().is_some_and(|end| end == "h"));
    headers.sort();
    headers.iter().try_for_each(|path| fs::read(path).map(|text| text.hash(hasher)))
}
