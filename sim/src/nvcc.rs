//! nvcc, the compiler of CUDA, from the variable `NVCC` or from Python packages that are installed on first use.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Returns nvcc: the program that `NVCC` names, or that of the package `nvidia-cuda-nvcc` in a folder, into which pip
/// installs it (0.3 GB) if the folder does not exist.
///
/// # Errors
/// If the package cannot be installed or has no nvcc.
pub fn find(folder: &Path) -> Result<PathBuf, String> {
    if let Some(nvcc) = env::var_os("NVCC") {
        return Ok(nvcc.into());
    }
    let remedy = "set NVCC to a compiler";
    if !folder.exists() {
        let pip = ["-m", "pip", "install", "--quiet", "--target"];
        let mut command = Command::new("python3");
        let output = command.args(pip).arg(folder).arg("nvidia-cuda-nvcc").output();
        let words = output.map_or_else(
            |error| Some(error.to_string()),
            |o| (!o.status.success()).then(|| String::from_utf8_lossy(&o.stderr).into_owned()),
        );
        if let Some(words) = words {
            // A part of the package would be taken for all of it.
            let _ = fs::remove_dir_all(folder);
            return Err(format!("pip cannot install nvidia-cuda-nvcc: {words}; {remedy}"));
        }
    }
    let versions = fs::read_dir(folder.join("nvidia")).into_iter().flatten().flatten();
    let found = versions.map(|version| version.path().join("bin/nvcc")).find(|nvcc| nvcc.exists());
    found.ok_or_else(|| format!("{} has no nvidia/*/bin/nvcc; {remedy}", folder.display()))
}

/// Returns whether a kernel keeps registers in memory, by what the compiler has said of each one.
pub fn spills(words: &str) -> bool {
    let kept = " 0 bytes spill stores, 0 bytes spill loads";
    words.matches(kept).count() != words.matches("bytes stack frame").count()
}

/// Compiles a file for `sm_<arch>` with some flags more, such as `-cubin` for machine code or `-ptx` for its text, and
/// returns what the compiler says: registers, spills and shared memory of each function. A warning is an error.
///
/// # Errors
/// If nvcc does not start or refuses the file: its words.
pub fn compile(
    nvcc: &Path,
    arch: u32,
    flags: &[&str],
    file: &Path,
    out: &Path,
) -> Result<String, String> {
    let mut command = Command::new(nvcc);
    command.args(["-std=c++17", "-Werror", "all-warnings", "-Xptxas", "-v"]).args(flags);
    command.arg(format!("-arch=sm_{arch}")).arg(file).arg("-o").arg(out);
    let output = command.output().map_err(|error| format!("{}: {error}", nvcc.display()))?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.success() {
        true => Ok(words),
        false => Err(format!("{}, sm_{arch}: {words}", file.display())),
    }
}
