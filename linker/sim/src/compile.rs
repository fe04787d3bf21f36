//! Compiles the C++ of a kernel against the shim to a shared library, on first use.
//!
//! The library is stored under the hash of everything that was compiled, so that a kernel is
//! compiled once per machine.

use std::collections::hash_map::DefaultHasher;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs, io, iter};

use crate::cache::cache_folder;
use crate::compiler;

/// Compiles `source` against the shim with some flags more, unless its library exists, and returns the
/// library.
pub(crate) fn compile(source: &Path, flags: &[&str]) -> Result<PathBuf, String> {
    let shim = &shim_folder();
    let text = fs::read(source).map_err(|e| format!("{}: {e}", source.display()))?;
    let mut compiler = compiler::cpp().ok_or(
        "a C++ compiler is needed to run kernels in the simulator, and neither CXX nor the system's \
         c++ starts; install g++",
    )?;
    let mut hasher = DefaultHasher::new();
    // The command also has this process's environment, which does not change what is compiled.
    let words: Vec<_> = iter::once(compiler.get_program()).chain(compiler.get_args()).collect();
    (&text, FLAGS, flags, words, compiler::cpp_version()).hash(&mut hasher);
    // A kernel file may include headers from its own folder.
    let own = source.parent().unwrap_or(Path::new("."));
    for folder in [own, shim, &shim.join("ascend")] {
        hash_headers(folder, &mut hasher).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let library = cache_folder()?.join(format!("{:016x}.so", hasher.finish()));
    let _compiling = lock(&library)?;
    if library.exists() {
        return Ok(library);
    }
    let temporary = library.with_extension("tmp");
    let done = compiler
        .args(FLAGS)
        .args(flags)
        .arg("-I")
        .arg(shim)
        .args(["-x", "c++"])
        .arg(source)
        .arg("-o")
        .arg(&temporary)
        .output()
        .map_err(|e| format!("the C++ compiler: {e}"))?;
    if !done.status.success() {
        let words = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{} does not compile: {words}", source.display()));
    }
    fs::rename(&temporary, &library).map_err(|e| format!("{}: {e}", library.display()))?;
    Ok(library)
}

/// Stores the text of a kernel in a file named by its hash, for [`compile`], and returns its path.
pub(crate) fn store_source(text: &[u8]) -> Result<PathBuf, String> {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    store(&format!("{:016x}.cpp", hasher.finish()), text)
}

/// Stores a text in a file below the folder that `AVSG_SIM_CACHE` names, and returns its path. The file is replaced as a
/// whole, because another process may be reading it.
///
/// # Errors
/// If the folder is not safe, or the file cannot be written.
pub fn store(name: &str, text: &[u8]) -> Result<PathBuf, String> {
    let file = cache_folder()?.join(name);
    let failed = |e: io::Error| format!("{}: {e}", file.display());
    fs::create_dir_all(file.with_file_name("")).map_err(failed)?;
    let _writing = lock(&file)?;
    let temporary = file.with_extension("tmp");
    fs::write(&temporary, text).map_err(failed)?;
    fs::rename(&temporary, &file).map_err(failed)?;
    Ok(file)
}

/// Compiler flags. -g is left out because it takes a third of the compile time and the shim's
/// messages name the lines. -O1 takes a third more time than -Og, and its kernels are not faster.
const FLAGS: [&str; 5] = ["-std=c++17", "-Og", "-fPIC", "-shared", "-pthread"];

/// Returns the folder of the shim's headers: `AVSG_SHIM`, or the one in the source tree of this
/// crate.
fn shim_folder() -> PathBuf {
    env::var_os("AVSG_SHIM")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("shim"), PathBuf::from)
}

/// Takes the lock of a file of the cache, under which one thread of all processes makes the file and the
/// others wait for it.
fn lock(file: &Path) -> Result<File, String> {
    let path = file.with_extension("lock");
    let locked = File::create(&path).and_then(|lock| lock.lock().map(|()| lock));
    locked.map_err(|e| format!("{}: {e}", path.display()))
}

/// Hashes the headers of a folder, because they are a part of what is compiled.
fn hash_headers(folder: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let all = fs::read_dir(folder)?.map(|entry| entry.map(|e| e.path()));
    let mut headers: Vec<PathBuf> = all.collect::<io::Result<_>>()?;
    headers.retain(|path| path.extension().is_some_and(|end| end == "h"));
    headers.sort();
    headers.iter().try_for_each(|path| fs::read(path).map(|text| text.hash(hasher)))
}
