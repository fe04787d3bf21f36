//! nvcc, the compiler of CUDA, from the folder that `NVCC_BIN` names or from Python packages that are installed on first
//! use.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The package that has nvcc.
pub const PACKAGE: &str = "nvidia-cuda-nvcc";

/// Returns the folder of nvcc: the one that `NVCC_BIN` names, or that of Python packages in `folder`, into which pip
/// installs them if it does not exist ([`PACKAGE`] has 0.3 GB).
///
/// # Errors
/// If the packages cannot be installed or have no nvcc.
pub fn find(folder: &Path, packages: &[&str]) -> Result<PathBuf, String> {
    if let Some(bin) = env::var_os("NVCC_BIN") {
        return Ok(bin.into());
    }
    let remedy = "set NVCC_BIN to the folder of nvcc";
    if !folder.exists() {
        let pip = ["-m", "pip", "install", "--quiet", "--target"];
        let output = Command::new("python3").args(pip).arg(folder).args(packages).output();
        let words = output.map_or_else(
            |error| Some(error.to_string()),
            |o| (!o.status.success()).then(|| String::from_utf8_lossy(&o.stderr).into_owned()),
        );
        if let Some(words) = words {
            // A part of the packages would be taken for all of them.
            let _ = fs::remove_dir_all(folder);
            return Err(format!("pip cannot install {packages:?}: {words}; {remedy}"));
        }
    }
    let versions = fs::read_dir(folder.join("nvidia")).into_iter().flatten().flatten();
    let found =
        versions.map(|version| version.path().join("bin")).find(|b| b.join("nvcc").exists());
    found.ok_or_else(|| format!("{} has no nvidia/*/bin/nvcc; {remedy}", folder.display()))
}

/// Returns whether a kernel keeps registers in memory, by what the compiler has said of each one.
pub fn spills(words: &str) -> bool {
    let kept = " 0 bytes spill stores, 0 bytes spill loads";
    words.matches(kept).count() != words.matches("bytes stack frame").count()
}

/// Compiles a file to machine code for `sm_<arch>`, with some flags more, and returns what the compiler says: registers,
/// spills and shared memory of each function. A warning is an error.
///
/// # Errors
/// If nvcc does not start or refuses the file: its words.
pub fn compile(
    bin: &Path,
    arch: u32,
    flags: &[&str],
    file: &Path,
    out: &Path,
) -> Result<String, String> {
    let mut command = Command::new(bin.join("nvcc"));
    command.args(["-std=c++17", "-Werror", "all-warnings", "-Xptxas", "-v", "-cubin"]).args(flags);
    command.arg(format!("-arch=sm_{arch}")).arg(file).arg("-o").arg(out);
    let output = command.output().map_err(|error| format!("{}: {error}", bin.display()))?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.success() {
        true => Ok(words),
        false => Err(format!("{}, sm_{arch}: {words}", file.display())),
    }
}
