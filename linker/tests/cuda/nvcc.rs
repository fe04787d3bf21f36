//! The thorough tier compiles the emitted files as they are by nvcc, from Python packages in the build folder: without a
//! warning, without a register in memory, and with bulk copies where the GPU has them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::tier;
use avsg_device::params::{Lifetime, Params};
use avsg_linker::cuda::{Options, cuda};

/// Returns nvcc, from `NVCC` or from a folder of Python packages that is made if it does not exist.
fn nvcc() -> Option<PathBuf> {
    if let Some(nvcc) = env::var_os("NVCC") {
        return Some(nvcc.into());
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-packages");
    if !folder.exists() {
        let pip = ["-m", "pip", "install", "--quiet", "--target"];
        let packages =
            Command::new("python3").args(pip).arg(&folder).arg("nvidia-cuda-nvcc").output();
        if !packages.is_ok_and(|output| output.status.success()) {
            println!("skipped: pip cannot install nvidia-cuda-nvcc; set NVCC to a compiler");
            return None;
        }
    }
    let versions = fs::read_dir(folder.join("nvidia")).ok()?.flatten();
    versions.map(|version| version.path().join("bin/nvcc")).find(|nvcc| nvcc.exists())
}

/// Compiles a file for an architecture to machine code or to its text, and returns what the compiler says.
fn compile(nvcc: &Path, file: &Path, arch: u32, to: &str) -> String {
    let mut command = Command::new(nvcc);
    command.args(["-std=c++17", "-Werror", "all-warnings", "-Xptxas", "-v", to]);
    let output = command
        .arg(format!("-arch=sm_{arch}"))
        .arg(file)
        .arg("-o")
        .arg(file.with_extension(arch.to_string()));
    let output = output.output().expect("nvcc starts");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}, sm_{arch}: {words}", file.display());
    words
}

#[test]
fn nvcc_compiles_the_files_without_warnings_and_spills() {
    if !tier::thorough() {
        return;
    }
    let Some(nvcc) = nvcc() else { return };
    let wide = Params { spread: 2, retries: 7, ..Params::wide(2048, 4, 8192) };
    let learned = Params { lifetime: Lifetime::Learned, page: 16, ..wide };
    let spread = Params { spread: 4, retries: 3, ..wide };
    let geometries = [(learned, 1024), (spread, 512), (Params::paper(2048, 4, 8192), 1024)];
    for (n, (p, threads)) in geometries.iter().enumerate() {
        let kernels = cuda(p, Options { threads: *threads, ..Options::default() }).unwrap();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cuda-files{n}"));
        fs::create_dir_all(&folder).unwrap();
        kernels.files().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
        for name in ["avsg_plan", "avsg_step", "avsg_transfer"] {
            let file = folder.join(name).with_extension("cu");
            for arch in [80, 90, 100] {
                let words = compile(&nvcc, &file, arch, "-cubin");
                let what = format!("{name} of {p}, {threads} threads, sm_{arch}: {words}");
                // The compiler says this of each function.
                let functions = words.matches("bytes stack frame").count();
                let kept = words.matches(" 0 bytes spill stores, 0 bytes spill loads").count();
                assert!(functions > 0 && kept == functions, "{what}");
                if name == "avsg_step" {
                    compile(&nvcc, &file, arch, "-ptx");
                    let text = fs::read_to_string(file.with_extension(arch.to_string())).unwrap();
                    assert_eq!(text.contains("cp.async.bulk.shared"), arch >= 90, "{what}");
                }
            }
        }
    }
}
