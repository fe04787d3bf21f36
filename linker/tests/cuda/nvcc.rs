//! The thorough tier compiles the emitted files as they are by nvcc, from Python packages in the build folder: without a
//! warning, without a register in memory, and with bulk copies where the GPU has them.

use std::fs;
use std::path::Path;

use super::tier;
use avsg_device::params::{Lifetime, Params};
use avsg_linker::cuda::{Options, cuda};
use avsg_sim::nvcc;

/// Compiles a file for an architecture to machine code or to its text, and returns what the compiler says.
fn compile(nvcc: &Path, file: &Path, arch: u32, to: &str) -> String {
    let out = file.with_extension(arch.to_string());
    nvcc::compile(nvcc, arch, &[to], file, &out).unwrap_or_else(|words| panic!("{words}"))
}

#[test]
fn nvcc_compiles_the_files_without_warnings_and_spills() {
    if !tier::thorough() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-packages");
    let nvcc = match nvcc::find(&folder) {
        Ok(nvcc) => nvcc,
        Err(why) => return println!("skipped: {why}"),
    };
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
                assert!(words.contains("bytes stack frame") && !nvcc::spills(&words), "{what}");
                if name == "avsg_step" {
                    compile(&nvcc, &file, arch, "-ptx");
                    let text = fs::read_to_string(file.with_extension(arch.to_string())).unwrap();
                    assert_eq!(text.contains("cp.async.bulk.shared"), arch >= 90, "{what}");
                }
            }
        }
    }
}
